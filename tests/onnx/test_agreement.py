"""A file agrees with its model, or `to_onnx` refuses and names what other packages converted."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from auxcst_sklearn.onnx import to_onnx
from tests.factories import small_mlp
from tests.onnx.files import assert_agrees, run, table
from tests.onnx.unusual import with_unusual

Rule = BayesMinimumRiskClassifier
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = {k: np.digitize(X[:, 0] + RNG.normal(size=300), [0.8, 1.5][: k - 1]) for k in (2, 3)}
NAN = np.where(RNG.uniform(size=X.shape) < 0.2, np.nan, X)
COST = {2: [[0, 1], [4, 0]], 3: [[0, 1, 2], [3, 0, 1], [9, 3, 0]]}

FOREST = RandomForestClassifier(3, random_state=0)
MIXED = [("logistic", LogisticRegression()), ("forest", FOREST), ("bayes", GaussianNB())]
SHALLOW = DecisionTreeClassifier(max_depth=3)
NEIGHBOURS = KNeighborsClassifier(15, weights="distance")
AGREES = {
    "boosting of stumps": AdaBoostClassifier(n_estimators=5),
    "vote": VotingClassifier(MIXED[::2], voting="soft", flatten_transform=False),
    "bag of columns": BaggingClassifier(LogisticRegression(), n_estimators=3, max_features=0.5),
    "bag of trees": BaggingClassifier(n_estimators=2, random_state=0),
    "bag of forests": BaggingClassifier(FOREST, n_estimators=2, random_state=0),
    "bag of boosting": BaggingClassifier(
        GradientBoostingClassifier(n_estimators=5, random_state=0), n_estimators=2, random_state=0
    ),
    "calibrated forest": CalibratedClassifierCV(FOREST, method="sigmoid"),
    "stack": StackingClassifier(MIXED, cv=2),
    "stack of raw scores": StackingClassifier(MIXED[:2], SHALLOW, cv=2, passthrough=True),
    "one for each class": OneVsRestClassifier(LogisticRegression()),
}
REFUSED = {
    "neighbours": NEIGHBOURS,
    "neighbours in a bag": BaggingClassifier(NEIGHBOURS, n_estimators=2),
    "vote of trees": VotingClassifier(MIXED[1:], voting="soft", flatten_transform=False),
    "products": make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression()),
}


def fitted(classifier, n_classes=2, rows=X):
    return Rule(classifier, cost_matrix=COST[n_classes]).fit(rows, Y[n_classes])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("classifier", AGREES.values(), ids=AGREES)
def test_files_of_ensembles_agree(classifier, n_classes):
    model = fitted(classifier, n_classes)

    assert_agrees(model, X[::-1] * 1.1, to_onnx(model, with_unusual(X[:5])))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", REFUSED)
def test_files_that_differ_or_do_not_load_are_refused(name, n_classes):
    model = fitted(REFUSED[name], n_classes)
    rows = with_unusual(X[:50])
    with pytest.raises(ValueError, match=r"The file (differs|cannot be run).*Other packages conv"):
        to_onnx(model, rows)


def test_a_discriminant_analysis_of_two_classes_is_refused():
    with pytest.raises(ValueError, match=r"differs .*Other packages converted LinearDiscriminant"):
        to_onnx(fitted(LinearDiscriminantAnalysis()), X)


def test_the_error_has_the_largest_difference_and_its_place():
    rows = np.arange(12.0)[:, np.newaxis]
    model = Rule(KNeighborsClassifier(3, weights="distance")).fit(rows, np.arange(12) % 2)
    place = r"the probability of [01] is 0\.\d+ instead of [01].0 in row \d+ of X. Other"
    with pytest.raises(ValueError, match=rf"differs .* in \d+.\d% of the rows; {place}"):
        to_onnx(model, rows)


TREES = {
    "boosting": GradientBoostingClassifier(n_estimators=5, random_state=0),
    "boosting from zero": GradientBoostingClassifier(n_estimators=5, init="zero", random_state=0),
    "forest": FOREST,
    "tree": DecisionTreeClassifier(random_state=0),
    "stumps": AdaBoostClassifier(n_estimators=3, random_state=0),
    "calibrated": GradientBoostingClassifier(n_estimators=2),
    "bagged forests": BaggingClassifier(FOREST, n_estimators=3, random_state=0),
    "bagged boosting": BaggingClassifier(GradientBoostingClassifier(n_estimators=2), 2),
    "stacked": StackingClassifier([("tree", DecisionTreeClassifier(random_state=0))], cv=2),
}


@pytest.mark.parametrize("name", TREES)
def test_trees_compare_in_single_precision(name):
    """New values lie at the thresholds, half-way between those of the training."""
    x = np.repeat([[0.5, 0.1], [0.9, 0.3], [0.5, 0.3]], 40, axis=0)
    new = np.array([[0.7, 0.2], [0.6, 0.2], [0.8, 0.2], [0.7, 0.1]])
    new = np.vstack([new, np.nextafter(new, 0), np.nextafter(new, 1), new.astype(np.float32)])
    calibration = "sigmoid" if name == "calibrated" else None
    model = Rule(TREES[name], calibration=calibration, cv=2).fit(x, np.repeat([0, 1, 0], 40))

    assert_agrees(model, new, to_onnx(model, with_unusual(x)), sure=0)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_thresholds_between_two_neighbouring_floats(dtype):
    """The threshold is between two numbers of float32, and the nearest one may be the larger."""
    below = np.linspace(0.3, 0.9, 7).astype(np.float32)
    for a in below:
        x = np.repeat([[a], [np.nextafter(a, np.float32(1))]], 40, axis=0).astype(dtype)
        for classifier in (FOREST, BaggingClassifier(FOREST, n_estimators=2, random_state=0)):
            model = Rule(classifier).fit(x, np.repeat([0, 1], 40))
            assert_agrees(model, x, to_onnx(model, x[:2]), sure=0)


def test_a_file_that_onnxruntime_cannot_load_is_refused():
    pytest.importorskip("onnxruntime", minversion="1.22", reason="older ones load it")
    model = fitted(GradientBoostingClassifier(n_estimators=5, init="zero"), 3)
    with pytest.raises(ValueError, match="cannot be run: .* Other packages converted GradientBoo"):
        to_onnx(model, X)


@pytest.mark.parametrize("classifier", [FOREST, DecisionTreeClassifier(max_depth=5)])
def test_gaps_make_the_result_of_trees_unknown(classifier):
    file, gaps = to_onnx(fitted(classifier, 3), X), np.isnan(NAN).any(axis=1)
    found = run(file, NAN)
    assert np.isnan(found["cost"][gaps]).all()
    np.testing.assert_array_equal(found["index"] == -1, gaps)
    with pytest.raises(ValueError, match="differs .* converted"):
        to_onnx(fitted(classifier, 3), NAN)


@pytest.mark.parametrize("classifier", [FOREST, BaggingClassifier(n_estimators=3)])
def test_gaps_in_trees_are_refused(classifier):
    with pytest.raises(ValueError, match="r has trees that split missing values, which skl2onnx"):
        to_onnx(fitted(classifier, 3, NAN), NAN)


def prepared(encoder, filled="mean"):
    return make_column_transformer(
        (make_pipeline(SimpleImputer(strategy=filled), StandardScaler()), ["size", "gap"]),
        (encoder, ["colour", "rank"]),
    )


ONE_HOT = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
UNKNOWN = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
ORDINAL = OrdinalEncoder(**UNKNOWN, encoded_missing_value=-2)
PIPELINES = {
    "logistic": make_pipeline(prepared(ONE_HOT), Rule()),
    "forest": Rule(make_pipeline(prepared(ORDINAL, "median"), FOREST)),
    "boosting": Rule(
        make_pipeline(
            make_column_transformer((SimpleImputer(strategy="median"), ["size", "gap"])),
            HistGradientBoostingClassifier(max_iter=20, random_state=0),
        )
    ),
}


@pytest.mark.parametrize("model", PIPELINES.values(), ids=PIPELINES)
def test_pipelines_with_gaps_and_new_categories(model):
    rows, new = (table(300, seed).drop(columns="shop").astype({"rank": float}) for seed in (0, 1))
    new.loc[:20, "colour"], new.loc[10:30, "rank"] = "never seen", 7.0
    model.fit(rows, (rows["size"] + (rows["colour"] == "red") > 0.5).to_numpy())

    assert_agrees(model, new, to_onnx(model, with_unusual(rows[:20])))


def test_costs_that_are_known_when_deciding():
    cost = RNG.uniform(1, 9, size=(300, 3, 4))
    known = {"decisions": ["a", "b", "c", "d"]}
    members = [("trees", FOREST), ("logistic", LogisticRegression())]
    ensemble = CostSensitiveEnsembleClassifier(members, cv=2, random_state=0, **known)
    for model in (ensemble, Rule(AGREES["vote"], **known)):
        model.fit(X, Y[3], cost=cost)
        assert_agrees(model, X, to_onnx(model, X[:5]), cost, cost_matrices=cost)
    with pytest.raises(ValueError, match="The file differs"):
        to_onnx(Rule(REFUSED["neighbours"], **known).fit(X, Y[3], cost=cost), X)


@pytest.mark.slow
def test_an_isotonic_step_is_no_difference():
    """The rows lie at steps of the calibration, and networks compute in float32."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4))
    y = rows[:, 0] + rng.normal(size=300) > 0.5
    network = FrozenEstimator(small_mlp().fit(rows, y))
    model = Rule(CalibratedClassifierCV(network, method="isotonic")).fit(rows, y)

    to_onnx(model, rows)
