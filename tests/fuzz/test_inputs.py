"""Any input either works, or raises a ValueError or TypeError that names the argument."""

from __future__ import annotations

import re
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB

from auxcst_sklearn import BayesMinimumRiskClassifier, CSAEPretrainedMLP
from auxcst_sklearn.losses import LOSSES
from tests.factories import QUICK, small_cnn, small_mlp, small_net, small_stack
from tests.fuzz.conftest import examples
from tests.fuzz.inputs import checked, costs, features, labels, weights

TMP = Path(tempfile.mkdtemp())
# A message names an argument, or says what scikit-learn says of X.
NAMED = re.compile(
    r"\b(X|y|cost|cost_matrix|sample_weight|classes|n_features|feature|label|column|row|sample"
    r"|learning_rate|image_shape|alpha|weight|module|groups)s?\b|Found array|Complex|Found input"
    r"|could not convert string|at least one array or dtype",
    re.IGNORECASE,
)


def make_module():
    return torch.nn.Sequential(torch.nn.LazyLinear(6), torch.nn.ReLU(), torch.nn.Linear(6, 3))


KINDS = {
    "mlp": lambda loss: small_mlp(max_epochs=1, loss=loss),
    "stack": lambda loss: small_stack(max_epochs=2, loss=loss, n_networks=2),
    "csae": lambda loss: CSAEPretrainedMLP(2, 4, pretrain_epochs=1, max_epochs=1, **QUICK),
    "cnn": lambda loss: small_cnn(max_epochs=1, loss=loss),
    "bayes": lambda loss: BayesMinimumRiskClassifier(GaussianNB()),
}


# Libraries that are imported at the first fit add filters of warnings.
KINDS["mlp"]("one_sided").fit(np.eye(12), [0, 1] * 6)


def allowed(error):
    return isinstance(error, (ValueError, TypeError)) and NAMED.search(str(error))


check_call = partial(checked, allowed=allowed)


@pytest.mark.parametrize("kind", KINDS)
@examples(12)
@given(data=st.data())
def test_fit_and_predict(kind, data):
    X = data.draw(features(TMP), label="X")
    n = X.value.shape[0] if hasattr(X.value, "shape") else len(X.value)
    y = data.draw(labels(n), label="y")
    k = len(set(map(str, y)))
    cost = data.draw(costs(n, k, TMP), label="cost")
    weight = data.draw(weights(n), label="weight")
    model = KINDS[kind](data.draw(st.sampled_from(["bayes_risk", *LOSSES]), label="loss"))

    def fit():
        return model.fit(X.value, y, cost=cost.value, sample_weight=weight)

    ours = kind != "bayes"  # its classifier is scikit-learn's, with messages of its own
    refuses = allowed if ours else lambda error: isinstance(error, (ValueError, TypeError))
    if check_call(fit, X.value, y, cost.value, weight, allowed=refuses) is None:
        assert not hasattr(model, "classes_") or kind == "bayes"
        return
    assert len(model.classes_) == k
    known = cost.value if np.ndim(cost.value) == 3 else None
    for method in ("predict", "predict_cost"):
        found = check_call(lambda m=method: getattr(model, m)(X.value), X.value)
        if found is None and not ours:  # probabilities may be NaN, which it refuses
            continue
        assert found is not None
        assert len(found) == n
        if method == "predict":
            assert set(map(str, found)) <= set(map(str, model.classes_))
        else:
            assert np.isfinite(found).all()
    if known is not None and ours and hasattr(model, "predict_proba"):
        assert len(model.predict(X.value, cost=known)) == n


@examples(25)
@given(data=st.data())
def test_predict_of_any_rows(fitted, data):
    X = data.draw(features(TMP), label="X")
    found = check_call(lambda: fitted.predict_cost(X.value), X.value)
    if found is not None:
        assert np.isfinite(found).all()
        assert found.shape[1] == 3
    check_call(lambda: fitted.predict_proba(X.value), X.value)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return small_stack().fit(X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 0))


@examples(25)
@given(data=st.data())
def test_a_module_of_the_users(data):
    X = data.draw(features(TMP, d=3), label="X")
    n = X.value.shape[0] if hasattr(X.value, "shape") else len(X.value)
    y = data.draw(labels(n), label="y")
    model = small_net(make_module, max_epochs=1)
    check_call(lambda: model.fit(X.value, y), X.value, y)
