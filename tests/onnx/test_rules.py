"""Files of the Bayes rule and of ensembles, whose members are of every kind."""

import logging
import warnings

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from auxcst_sklearn.onnx import to_onnx
from tests.factories import small_mlp, small_stack, table_boosting
from tests.onnx.files import run, table

Rule, Ensemble = BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier


def labels(X, n_classes):
    noise = np.random.default_rng(1).normal(size=len(X))
    value = X["size"] + X["gap"].isna() + 2 * (X["colour"] == "red") + 0.3 * noise
    return np.array(["a", "b", "c"])[np.digitize(value, [0.5, 1.5][: n_classes - 1])]


X, Z = table(900, 0), table(3000, 2)
Z.loc[:20, "colour"] = "never seen"
NUMBERS, MORE_NUMBERS = (part[["size", "rank"]].to_numpy(float) for part in (X, Z))
COSTS = {2: np.array([[0, 1], [4, 0]]), 3: np.array([[0, 1, 2], [3, 0, 1], [9, 3, 0]])}


def prepared():
    return make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["size", "gap", "rank"]),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["colour", "shop"]),
    )


def assert_same_decisions(model, rows, file, cost=None, **more):
    """Decisions of every row, also where two costs are equal; costs and probabilities."""
    found, last, inner = run(file, rows, **more), model, rows
    if hasattr(model, "steps"):
        last, inner = model[-1], model[:-1].transform(rows)
    expected = last.predict_cost(inner, cost)
    np.testing.assert_allclose(found["cost"], expected, rtol=1e-5, atol=1e-5 * expected.max())
    np.testing.assert_allclose(found["probability"], last.predict_proba(inner), atol=1e-6)
    np.testing.assert_array_equal(last.classes_[found["index"]], last.predict(inner, cost))
    one = run(file, rows[:1], **{name: value[:1] for name, value in more.items()})
    np.testing.assert_allclose(one["cost"], found["cost"][:1], rtol=1e-5)


QUICKLY = {"max_iter": 10, "random_state": 0}
OF_TABLES = {
    "boosting": lambda: Rule(table_boosting(**QUICKLY)),
    "isotonic": lambda: Rule(table_boosting(**QUICKLY), calibration="isotonic"),
    "pipeline": lambda: Rule(make_pipeline(prepared(), LogisticRegression())),
    "at the end": lambda: make_pipeline(prepared(), Rule(calibration="sigmoid")),
}
OF_NUMBERS = {
    "hist": lambda: Rule(HistGradientBoostingClassifier(categorical_features=[1], **QUICKLY)),
    "isotonic": lambda: Rule(RandomForestClassifier(9, random_state=0), calibration="isotonic"),
    "ties": lambda: Rule(RandomForestClassifier(10, random_state=0)),
    "tree": lambda: Rule(DecisionTreeClassifier(min_samples_leaf=5)),
    "gradient": lambda: Rule(GradientBoostingClassifier(n_estimators=5)),
    "svc": lambda: Rule(LinearSVC(), calibration="sigmoid"),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("make", OF_TABLES.values(), ids=OF_TABLES)
def test_rules_of_tables(make, n_classes):
    model = make()
    (model[-1] if hasattr(model, "steps") else model).cost_matrix = COSTS[n_classes]
    model.fit(X, labels(X, n_classes))
    assert_same_decisions(model, Z, to_onnx(model, X[:5]))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("make", OF_NUMBERS.values(), ids=OF_NUMBERS)
def test_rules_of_numbers(make, n_classes):
    model = make().set_params(cost_matrix=COSTS[n_classes])
    model.fit(NUMBERS, labels(X, n_classes))
    assert_same_decisions(model, MORE_NUMBERS, to_onnx(model, NUMBERS[:5]))


@pytest.mark.parametrize("estimator", [table_boosting(**QUICKLY), GaussianNB()])
def test_calibration_by_a_temperature(estimator):
    pytest.importorskip("sklearn", minversion="1.8")
    model = Rule(estimator, cost_matrix=COSTS[2], calibration="temperature")
    model.fit(NUMBERS, labels(X, 2))
    assert_same_decisions(model, MORE_NUMBERS, to_onnx(model, NUMBERS[:5]))


def test_thresholds_that_single_precision_would_move():
    rng = np.random.default_rng(0)
    x = 1e9 + rng.permutation(400)[:, None] * 1e-3  # float32 has steps of 64 here
    model = Rule(HistGradientBoostingClassifier(**QUICKLY)).fit(x, x[:, 0] > np.median(x))
    assert_same_decisions(model, x, to_onnx(model, x))


@pytest.mark.slow
def test_an_ensemble_with_known_costs():
    """Of members that read integers, missing values and categories in ways of their own."""
    members = [
        ("network", small_stack(max_epochs=30)),
        ("boosting", table_boosting(early_stopping=True, **QUICKLY)),
        ("forest", make_pipeline(prepared(), RandomForestClassifier(5, random_state=0))),
        ("logistic", make_pipeline(prepared(), LogisticRegression())),
    ]
    known = np.random.default_rng(0).uniform(1, 9, size=(len(Z), 1, 1)) * COSTS[3]
    model = Ensemble(members, cv=2, random_state=0).fit(X, labels(X, 3), cost=known[: len(X)])
    assert model.named_estimators_["network"] != "drop"
    assert len(model.estimators_) > 1
    file = to_onnx(model, X[:5])
    assert [value.name for value in file.graph.input] == [*X.columns, "cost_matrices"]
    assert_same_decisions(model, Z, file, known, cost_matrices=known)


@pytest.mark.slow
def test_an_ensemble_whose_network_has_learnt_costs():
    members = [("network", small_stack(max_epochs=30)), ("boosting", table_boosting(**QUICKLY))]
    cost = np.exp(NUMBERS[:, :1]) * np.asarray(COSTS[3])[(np.arange(len(X)) % 3)]
    y = np.array(["a", "b", "c"])[np.arange(len(X)) % 3]
    model = Ensemble(members, cv=2, random_state=0).fit(NUMBERS, y, cost=cost)
    assert model.cost_estimators_
    assert_same_decisions(model, MORE_NUMBERS, to_onnx(model, NUMBERS[:5]))


@pytest.mark.slow
def test_a_class_that_a_fold_lacks_has_its_column():
    y = np.where(np.arange(len(X)) == 7, "z", labels(X, 2))
    members = [("boosting", table_boosting(**QUICKLY)), ("logistic", LogisticRegression())]
    members.append(("network", small_stack(max_epochs=10)))
    model = Ensemble(members, classes=["0", "a", "b", "z"], random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the class with one row
        model.fit(NUMBERS, y)
    assert_same_decisions(model, MORE_NUMBERS, to_onnx(model, NUMBERS[:5]))


@pytest.mark.slow
def test_a_calibrated_network_and_no_line_of_noise(capfd, recwarn, caplog):
    model = Rule(small_mlp(), cost_matrix=COSTS[2], calibration="sigmoid", cv=2)
    model.fit(X, labels(X, 2))
    recwarn.clear()
    with caplog.at_level(logging.WARNING):
        file = to_onnx(model, X[:5])
    assert (*capfd.readouterr(), caplog.text, list(recwarn)) == ("", "", "", [])
    assert_same_decisions(model, Z, file)


class OwnForest(RandomForestClassifier):
    """Predicts in a way of its own."""

    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


STRINGS = make_column_transformer((StandardScaler(), ["size"]), ("passthrough", ["colour"]))


@pytest.mark.parametrize(
    ("classifier", "rows", "message"),
    [
        (OwnForest(3), NUMBERS, "OwnForest cannot be converted by skl2onnx: .*OwnForest.*own conv"),
        (
            make_pipeline(STRINGS, table_boosting(categorical_features=[1])),
            X[["size", "colour"]].astype({"colour": "category"}),
            "strings",
        ),
    ],
)
def test_what_cannot_be_converted_is_named(classifier, rows, message):
    model = Rule(classifier).fit(rows, labels(X, 2))
    with pytest.raises(ValueError, match=message):
        to_onnx(model, rows)
