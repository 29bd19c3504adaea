"""What several docstrings say about the same argument is the same, with the right defaults."""

import inspect
import re
from collections import defaultdict

import pytest

import auxcst_sklearn
from auxcst_sklearn import decisions, metrics, plotting

docscrape = pytest.importorskip("numpydoc.docscrape")

ESTIMATORS = [
    getattr(auxcst_sklearn, name)
    for name in sorted(auxcst_sklearn.__all__)
    if isinstance(getattr(auxcst_sklearn, name), type)
]
# Parameters whose meaning or default differs, so that estimators describe them in their own words.
OWN = {
    *("alpha", "batch_size", "combine_heads", "cv", "depth", "dropout", "early_stopping"),
    *("head_input", "image_shape", "learning_rate", "loss", "n_networks", "patience"),
    *("random_state", "schedule", "validation_fraction", "verbose", "width", "estimator"),
    *("estimators",),
}
OWN_ATTRIBUTES = {"cost_matrix_", "hidden_layers_", "n_features_in_", "feature_names_in_", "net_"}
OWN_ATTRIBUTES |= {"temperature_", "image_shape_"}
METHODS = ["predict", "decide", "predict_cost", "score", "fit", "partial_fit"]


def entries(documented, section):
    doc = docscrape.FunctionDoc(documented)[section]
    for names, kind, text in doc:
        for name in re.split(", ", names):
            yield name, (re.sub(r",? default=.*", "", kind), " ".join(text)), kind


def different(documented, section, own):
    texts = defaultdict(set)
    for one in documented:
        for name, text, _ in entries(one, section):
            texts[name].add(text)
    return {name: found for name, found in texts.items() if len(found) > 1 and name not in own}


@pytest.mark.parametrize(("section", "own"), [("Parameters", OWN), ("Attributes", OWN_ATTRIBUTES)])
def test_estimators_describe_what_they_share_alike(section, own):
    assert not different(ESTIMATORS, section, own)


@pytest.mark.parametrize("documented", ESTIMATORS, ids=lambda one: one.__name__)
def test_the_source_describes_every_parameter_and_its_default(documented):
    source = inspect.getsource(documented)
    doc = inspect.cleandoc(documented.__doc__)
    assert all(line.strip() in source for line in doc.splitlines() if "  " not in line.strip())
    parameters = inspect.signature(documented).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    shown = {name: kind for name, _, kind in entries(documented, "Parameters")}
    assert shown.keys() == defaults.keys()
    for name, kind in shown.items():
        stated = re.search("default=(.*)", kind)
        value = eval(stated[1]) if stated else inspect.Parameter.empty  # noqa: S307
        assert value == defaults[name], name


@pytest.mark.parametrize("method", METHODS)
def test_methods_describe_what_they_share_alike(method):
    of_fit = {"X", "y", "cost", "groups", "sample_weight", "**fit_params"}
    functions = {getattr(kind, method) for kind in ESTIMATORS if hasattr(kind, method)}
    assert not different(functions, "Parameters", of_fit if "fit" in method else set())


def test_decisions_describe_their_arguments_alike():
    methods = [getattr(auxcst_sklearn.CostSensitiveAuxMLP, name) for name in METHODS[:3]]
    assert not different(methods, "Parameters", set())


def test_metrics_describe_their_arguments_alike():
    functions = [metrics.mean_cost, metrics.savings_score, metrics.cost_difference]
    functions.append(plotting.CostConfusionDisplay.from_predictions)
    assert not different(functions, "Parameters", {"y_true", "classes"})
    assert not different([decisions.assign, decisions.shadow_prices], "Parameters", set())
