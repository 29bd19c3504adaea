import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Perceptron
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn.metrics import make_cost_scorer

MATRIX = np.array([[0.0, 1, 4], [2, 0, 1], [9, 30, 0]])
HAS_TEMPERATURE = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X[:, :2], y  # the classes overlap in these two features


def bayes_decision(probability, matrices):
    """The expected costs and the cheapest class, one sum at a time."""
    n, n_classes = probability.shape
    risk = np.zeros((n, n_classes))
    for i in range(n):
        for prediction in range(n_classes):
            for true in range(n_classes):
                risk[i, prediction] += probability[i, true] * matrices[i][true][prediction]
    return risk, risk.argmin(axis=1)


# -------------------------------------------------------------------- the decision


def test_decides_by_the_expected_cost(iris):
    X, y = iris
    model = BayesMinimumRiskClassifier(GaussianNB(), cost_matrix=MATRIX).fit(X, y)
    probability = GaussianNB().fit(X, y).predict_proba(X)
    risk, choice = bayes_decision(probability, [MATRIX] * len(y))
    np.testing.assert_array_equal(model.predict_proba(X), probability)
    np.testing.assert_allclose(model.predict_cost(X), risk)
    np.testing.assert_array_equal(model.predict(X), choice)
    assert (choice != probability.argmax(axis=1)).any()
    assert model.score(X, y) == pytest.approx(-MATRIX[y, choice].mean())


def test_without_costs_every_mistake_costs_one(iris):
    X, y = iris
    model = BayesMinimumRiskClassifier(GaussianNB()).fit(X, y)
    np.testing.assert_allclose(model.predict_cost(X), 1 - model.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), GaussianNB().fit(X, y).predict(X))
    assert model.score(X, y) == pytest.approx((model.predict(X) == y).mean())


@pytest.mark.parametrize(
    "named", [{"cost_matrix": pd.DataFrame(MATRIX)}, {"cost_matrix": MATRIX, "classes": [0, 1, 2]}]
)
def test_a_class_without_examples_has_no_probability(iris, named):
    X, y = iris
    known = y != 1
    model = BayesMinimumRiskClassifier(GaussianNB(), **named).fit(X[known], y[known])
    probability = model.predict_proba(X)
    np.testing.assert_array_equal(
        probability[:, [0, 2]], GaussianNB().fit(X[known], y[known]).predict_proba(X)
    )
    assert not probability[:, 1].any()
    _, choice = bayes_decision(probability, [MATRIX] * len(y))
    np.testing.assert_array_equal(model.predict(X), choice)
    assert model.score(X, y) == pytest.approx(-MATRIX[y, choice].mean())


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic", *["temperature"] * HAS_TEMPERATURE])
def test_calibration_is_that_of_scikit_learn(iris, calibration):
    X, y = iris
    base = LinearSVC(random_state=0)  # has no probabilities of its own
    model = BayesMinimumRiskClassifier(base, cost_matrix=MATRIX, calibration=calibration, cv=3)
    model.fit(X, y)
    calibrated = CalibratedClassifierCV(base, method=calibration, cv=3).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), calibrated.predict_proba(X))
    _, choice = bayes_decision(calibrated.predict_proba(X), [MATRIX] * len(y))
    np.testing.assert_array_equal(model.predict(X), choice)


@pytest.mark.skipif(not HAS_TEMPERATURE, reason="needs scikit-learn 1.8")
def test_the_temperature_of_scikit_learn_is_right_for_codes_and_strings_alone(iris):
    X, y = iris
    model = BayesMinimumRiskClassifier(
        LinearSVC(random_state=0), cost_matrix=MATRIX, calibration="temperature", cv=3
    )
    expected = model.fit(X, y).predict_proba(X)
    for names in (np.array(["a", "b", "c"]), np.array(["a", "b", "c"], object)):
        np.testing.assert_array_equal(model.fit(X, names[y]).predict_proba(X), expected)
    with pytest.raises(ValueError, match=r"wrong for the labels \[1, 2, 3\]; expected 0 .. K-1"):
        model.fit(X, y + 1)  # of which scikit-learn makes probabilities near 1 / 3


# ------------------------------------------------------------- with scikit-learn


def test_fitted_classifier_is_not_trained_again(iris):
    X, y = iris
    fitted = GaussianNB().fit(X, y)
    model = BayesMinimumRiskClassifier(FrozenEstimator(fitted), cost_matrix=MATRIX).fit(X, y[::-1])
    np.testing.assert_array_equal(model.predict_proba(X), fitted.predict_proba(X))
    with pytest.raises(ValueError, match="estimator.classes_ contains labels that are not among"):
        BayesMinimumRiskClassifier(FrozenEstimator(fitted)).fit(X, y % 2)


def test_estimator_of_the_caller_stays_unfitted(iris):
    base = GaussianNB()
    BayesMinimumRiskClassifier(base).fit(*iris)
    assert not hasattr(base, "classes_")


class Listener(ClassifierMixin, BaseEstimator):
    """Remembers what reached its fit, and predicts the shares of the classes."""

    def fit(self, X, y, sample_weight=None, note=None):
        self.heard_ = {"sample_weight": sample_weight, "note": note}
        self.classes_, self.count_ = np.unique(y, return_counts=True)
        return self

    def predict_proba(self, X):
        return np.tile(self.count_ / self.count_.sum(), (len(X), 1))


def test_weights_and_parameters_reach_the_estimator_without_routing(iris):
    X, y = iris
    weight = np.arange(len(y))
    model = BayesMinimumRiskClassifier(Listener()).fit(X, y, weight, note="hello")
    assert model.estimator_.heard_["note"] == "hello"
    assert model.estimator_.heard_["sample_weight"] is weight
    heard = BayesMinimumRiskClassifier(Listener()).fit(X, y).estimator_.heard_
    assert heard == {"sample_weight": None, "note": None}


def test_routing_hands_on_what_the_estimator_requests(iris):
    X, y = iris
    weight = np.arange(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        listener = Listener().set_fit_request(sample_weight=True, note=False)
        model = BayesMinimumRiskClassifier(listener).fit(X, y, sample_weight=weight)
        assert model.estimator_.heard_["sample_weight"] is weight
        with pytest.raises(UnsetMetadataPassedError):
            BayesMinimumRiskClassifier(Listener()).fit(X, y, sample_weight=weight)
        # a router around it needs no request of its own
        search = GridSearchCV(
            model, {"classes": [None]}, scoring=make_cost_scorer(cost_matrix=MATRIX)
        )
        search.fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(
            search.best_estimator_.estimator_.heard_["sample_weight"], weight
        )


def test_weights_reach_the_calibration(iris):
    X, y = iris
    weight = np.random.RandomState(0).uniform(0.1, 5, size=len(y))
    expected = (
        CalibratedClassifierCV(GaussianNB(), cv=3).fit(X, y, sample_weight=weight).predict_proba(X)
    )
    for routing in (False, True):
        with sklearn.config_context(enable_metadata_routing=routing):
            base = GaussianNB().set_fit_request(sample_weight=True) if routing else GaussianNB()
            model = BayesMinimumRiskClassifier(base, calibration="sigmoid", cv=3)
            model.fit(X, y, sample_weight=weight)
            np.testing.assert_array_equal(model.predict_proba(X), expected)


# ------------------------------------------------------------------------- errors


def test_estimator_without_probabilities(iris):
    with pytest.raises(TypeError, match="Perceptron.* has no predict_proba.*calibration="):
        BayesMinimumRiskClassifier(Perceptron()).fit(*iris)


def test_a_class_is_not_an_estimator(iris):
    with pytest.raises(TypeError, match="instance of scikit-learn estimator instead of a class"):
        BayesMinimumRiskClassifier(GaussianNB).fit(*iris)


@pytest.mark.parametrize("wrap", [clone, make_pipeline])
def test_a_stacking_classifier_has_probabilities_after_its_fit(iris, wrap):
    parts = [("tree", DecisionTreeClassifier(max_depth=2)), ("nb", GaussianNB())]
    stack = wrap(StackingClassifier(parts, cv=2))
    model = BayesMinimumRiskClassifier(stack).fit(*iris)

    np.testing.assert_array_equal(model.predict(iris[0]), stack.fit(*iris).predict(iris[0]))

    stack = wrap(StackingClassifier(parts, final_estimator=Perceptron(), cv=2))
    with pytest.raises(TypeError, match="has no predict_proba"):
        model.set_params(estimator=stack).fit(*iris)
    assert model.score(*iris) > 0.7


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"estimator": "logistic"}, "'estimator' parameter"),
        ({"calibration": "platt"}, "'calibration' parameter"),
        ({"cost_matrix": np.zeros((3, 4))}, "shape .3, 4.; expected .3, 3."),
        ({"cost_matrix": np.full((3, 3), np.nan)}, "cost_matrix contains nan"),
        ({"classes": [0, 1]}, "y contains labels that are not among the classes"),
    ],
)
def test_parameters_out_of_range(iris, params, message):
    with pytest.raises(ValueError, match=message):
        BayesMinimumRiskClassifier(**params).fit(*iris)


@pytest.mark.parametrize(
    "make",
    [
        KNeighborsClassifier,
        LinearDiscriminantAnalysis,
        lambda: FrozenEstimator(GaussianNB().fit([[0.0], [1], [2]], [0, 1, 2])),
        lambda: CostSensitiveAuxMLP(1, 8, max_epochs=2, random_state=0),
    ],
)
@pytest.mark.parametrize("routing", [False, True])
def test_any_classifier_with_probabilities(iris, make, routing):
    X, y = iris[0][:, :1], iris[1]

    with sklearn.config_context(enable_metadata_routing=routing):
        model = BayesMinimumRiskClassifier(make(), cost_matrix=MATRIX).fit(X, y)

    expected = (model.predict_proba(X) @ MATRIX).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(X), expected)


class Undecided(GaussianNB):
    def predict_proba(self, X):
        p = super().predict_proba(X)
        p[2] = np.nan
        return p


def test_probabilities_that_are_not_finite_are_refused(iris):
    model = BayesMinimumRiskClassifier(Undecided(), cost_matrix=MATRIX).fit(*iris)

    for call in (model.predict, model.predict_cost, model.predict_proba):
        with pytest.raises(ValueError, match=r"1 of 150 rows such as \[nan, nan, nan\]"):
            call(iris[0])


def test_weights_count_in_the_costs_of_training_that_decide_where_none_are_given(iris):
    X, y = iris
    vectors, weight = np.random.RandomState(0).uniform(-1, 5, size=(150, 3)), np.arange(150) % 3
    model = BayesMinimumRiskClassifier(GaussianNB()).fit(X, y, weight, cost=vectors)
    expected = [np.average(vectors[y == k], axis=0, weights=weight[y == k]) for k in range(3)]
    np.testing.assert_allclose(model.cost_matrix_, expected)
