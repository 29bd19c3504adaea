import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from auxcst_sklearn import BayesMinimumRiskClassifier
from auxcst_sklearn._checks.data import check_frame, check_labels, label_index
from auxcst_sklearn.costs import cost_vectors
from auxcst_sklearn.costs._validation import check_cost, check_cost_matrix
from auxcst_sklearn.metrics import mean_cost
from tests.factories import small_mlp

CLASSES = np.array(["a", "b", "c"])
MATRIX = np.array([[0.0, 1, 2], [3, 0, 4], [5, 6, 0]])


def test_check_cost_matches_columns_by_label():
    cost = np.arange(6.0).reshape(2, 3)
    shuffled = [2, 0, 1]

    for frame in (
        pd.DataFrame(cost[:, shuffled], columns=CLASSES[shuffled]),
        pl.DataFrame(cost[:, shuffled], schema=CLASSES[shuffled].tolist()),
    ):
        np.testing.assert_array_equal(check_cost(frame, n_samples=2, classes=CLASSES), cost)


def test_check_cost_matches_text_columns_with_integer_classes():
    frame = pl.DataFrame(np.array([[1.0, 2.0]]), schema=["7", "3"])

    found = check_cost(frame, n_samples=1, classes=np.array([3, 7]))

    np.testing.assert_array_equal(found, [[2.0, 1.0]])


def test_check_cost_matrix_matches_rows_and_columns_by_label():
    frame = pd.DataFrame(MATRIX, index=CLASSES, columns=CLASSES).loc[
        ["b", "c", "a"], ["c", "a", "b"]
    ]

    np.testing.assert_array_equal(check_cost_matrix(frame, classes=CLASSES), MATRIX)


def test_check_cost_does_not_write_to_the_caller():
    cost = np.ones((2, 3), dtype=np.float32)
    cost.flags.writeable = False

    check_cost(cost, n_samples=2, classes=CLASSES)


@pytest.mark.parametrize(
    "y",
    [
        ["a", None, "b"],
        np.array(["a", np.nan, "b"], dtype=object),
        pd.Series(["a", None, "b"], dtype="category"),
        pd.Series(["a", None, "b"], dtype="string"),
        pd.array([0, None, 1], dtype="Int64"),
        pl.Series(["a", None, "b"]),
        np.array([0, None, 1], dtype=object),
    ],
)
def test_missing_labels_are_named(y):
    with pytest.raises(ValueError, match="Input y contains NaN .* 1 of 3 rows, first in row 1"):
        check_labels(y, "y")


MASKED = np.ma.array([0.0, 1, 1], mask=[0, 1, 0])


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("X", lambda: small_mlp().fit(MASKED[:, None], [0, 1, 1])),
        ("X", lambda: small_mlp().fit([[0], [1]], [0, 1]).predict(MASKED[:, None])),
        ("y", lambda: small_mlp().fit([[0], [1], [2]], MASKED)),
        ("y", lambda: cost_vectors(MASKED, [[0, 1], [1, 0]])),
        (
            "sample_weight",
            lambda: small_mlp().fit([[0], [1], [2]], [0, 1, 1], sample_weight=MASKED),
        ),
        ("y_pred", lambda: mean_cost([0, 1, 1], MASKED, cost_matrix=[[0, 1], [1, 0]])),
    ],
)
def test_masked_values_are_refused(name, use):
    with pytest.raises(ValueError, match=rf"^{name} holds 1 masked values"):
        use()


def test_an_array_without_masked_values_is_accepted():
    check_frame(pd.DataFrame({"_mask": [0, 1]}))
    assert mean_cost(np.ma.array([0, 1]), [1, 1], cost_matrix=[[0, 1], [1, 0]]) == 0.5


def test_matrices_of_each_sample_match_by_label():
    frame = pd.DataFrame(MATRIX, index=list("abc"), columns=list("abc"))
    shuffled = frame.loc[list("cab"), list("bca")]

    found = mean_cost(["a", "b"], ["c", "a"], cost=[shuffled, 10 * frame], classes=CLASSES)

    assert found == (2 + 30) / 2


def test_a_series_of_texts_is_explained():
    with pytest.raises(ValueError, match="cost of type Series cannot be read as numbers"):
        mean_cost([0, 1], [1, 0], cost=pd.Series(["1,000", "20"]))


@pytest.mark.parametrize("y", [["nan", "None"], [0.0, 1.0], [[1], [2, 3]], None])
def test_other_labels_are_not_missing(y):
    check_labels(y, "y")


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (np.array([2, 0, 2]), np.array([2, 1, 0])),
        (np.array(["b", "a", "b"]), np.array(["b", "c", "a"], dtype=object)),
        (np.array([True, False, True]), np.array([True, False])),
    ],
)
def test_label_index_finds_labels_in_any_order(y, classes):
    index = label_index(y, classes, name="y")

    assert classes[index].tolist() == y.tolist()


@pytest.mark.parametrize(
    ("y", "classes", "unknown"),
    [
        (np.array([0, 5, 9]), np.array([0, 1]), r"\[5, 9\]"),
        (np.array([0, 1]), np.array(["0", "1"]), r"\[0, 1\]"),
        (np.array(["z"]), np.array(["a", "b"]), r"\['z'\]"),
    ],
)
def test_label_index_names_unknown_labels(y, classes, unknown):
    with pytest.raises(ValueError, match=f"y holds labels that are not among .*{unknown}"):
        label_index(y, classes, name="y")


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("labels", [[3, 1, 2], [30, 7, 12]])
def test_text_columns_match_numbers_everywhere_alike(frame, labels):
    matrix = np.array([[0.0, 1, 5], [2, 0, 1], [1, 8, 0]])  # in the order of the sorted labels
    order = np.argsort(np.argsort(labels))
    y = np.array(sorted(labels))[[0, 1, 2, 2, 1, 0, 0, 1, 2]]
    cost = matrix[np.searchsorted(sorted(labels), y)]
    framed = FRAMES[frame]({str(k): cost[:, j] for k, j in zip(labels, order, strict=True)})
    columns = FRAMES[frame]({str(k): matrix[order][:, j] for k, j in zip(labels, order)})
    if frame == "pandas":
        columns.index = list(map(str, labels))

    y_pred = np.roll(y, 1)
    expected = cost[np.arange(9), np.searchsorted(sorted(labels), y_pred)].mean()

    assert mean_cost(y, y_pred, cost=framed) == pytest.approx(expected)
    assert mean_cost(y, y_pred, cost_matrix=columns) == pytest.approx(expected)
    own_order = np.array(labels)
    vectors = cost_vectors(y, columns, classes=own_order)
    np.testing.assert_array_equal(vectors.values[:, np.argsort(labels)], cost)
    X = np.eye(3)[np.searchsorted(sorted(labels), y)]
    models = [small_mlp().fit(X, y, cost=c).predict_cost(X) for c in (framed, cost)]
    np.testing.assert_array_equal(*models)


def test_a_class_that_only_the_columns_name_is_one_of_the_classes():
    cost = pd.DataFrame(np.ones((4, 3)), columns=["1", "2", "3"])

    model = small_mlp(max_epochs=1).fit(np.eye(4), [1, 2, 1, 2], cost=cost)

    assert model.classes_.tolist() == [1, 2, 3]


@pytest.mark.parametrize("use", ["mean_cost", "fit"])
def test_many_numbers_as_text_are_refused_everywhere(use):
    """A meta-estimator may have encoded texts, which sort otherwise."""
    y = np.arange(12)
    cost = pd.DataFrame(np.ones((12, 12)), columns=list(map(str, y)))

    call = {
        "mean_cost": lambda: mean_cost(y, y, cost=cost),
        "fit": lambda: small_mlp().fit(np.eye(12), y, cost=cost),
    }[use]

    with pytest.raises(ValueError, match="texts sort in another order"):
        call()


def test_columns_of_several_levels_are_refused():
    columns = pd.MultiIndex.from_product([["cost"], [0, 1]])
    cost = pd.DataFrame(np.ones((4, 2)), columns=columns)

    for call in (
        lambda: mean_cost([0, 1, 0, 1], [0, 0, 0, 0], cost=cost),
        lambda: small_mlp().fit(np.eye(4), [0, 1, 0, 1], cost=cost),
    ):
        with pytest.raises(ValueError, match="several levels"):
            call()


def test_labels_that_stand_twice_or_nowhere_are_refused():
    cost = np.ones((3, 3))
    with pytest.raises(ValueError, match="must name each label once"):
        mean_cost([0, 1, 2], [0, 1, 2], cost=cost, classes=[0, 1, 1])
    with pytest.raises(ValueError, match=r"y_true holds labels that are not.*\[7\]"):
        mean_cost([0, 1, 7], [0, 1, 2], cost=cost, classes=[0, 1, 2])


# --- DataFrames in another order ----------------------------------------------------------


@pytest.fixture
def shuffled():
    """A problem of which the costs, with an index, are in another order."""
    rng = np.random.default_rng(0)
    index = rng.permutation(40)
    X = pd.DataFrame(rng.normal(size=(40, 3)), index)
    y = pd.Series(CLASSES[rng.integers(3, size=40)], index)
    cost = pd.DataFrame(MATRIX[np.searchsorted(CLASSES, y)], index, columns=CLASSES)
    return X, y, cost


def test_labels_encoded_by_a_meta_estimator_are_explained(shuffled):
    X, y, _ = shuffled
    matrix = pd.DataFrame(MATRIX, CLASSES, CLASSES)
    model = VotingClassifier([("a", small_mlp(cost_matrix=matrix))])
    with pytest.raises(ValueError, match="encoded as .*, as from a VotingClassifier"):
        model.fit(X, y)


ENCODED = {
    "labelled matrix": lambda y: {"cost_matrix": pd.DataFrame(MATRIX, *[np.unique(y)] * 2)},
    "classes": lambda y: {"classes": np.unique(y).tolist()},
    "both": lambda y: {"cost_matrix": MATRIX, "classes": np.unique(y).tolist()},
}


@pytest.mark.parametrize("parameters", ENCODED.values(), ids=ENCODED)
@pytest.mark.parametrize("model", [small_mlp(), BayesMinimumRiskClassifier(GaussianNB())])
@pytest.mark.parametrize("labels", [CLASSES, np.array([10, 20, 30])])
def test_labels_encoded_by_cross_val_predict_are_explained(shuffled, labels, model, parameters):
    X, y, cost = shuffled
    y = labels[np.searchsorted(CLASSES, y)]
    model = clone(model).set_params(**parameters(y))
    with pytest.raises(ValueError, match="if y arrived encoded as .* cross_val_predict"):
        cross_val_predict(model, X, y, method="predict_proba", cv=2)
    with sklearn.config_context(enable_metadata_routing=True):
        given = {"cost": cost.set_axis(labels, axis=1)}
        model.set_params(cost_matrix=None, classes=None)
        with pytest.raises(ValueError, match="if y arrived encoded as .* cross_val_predict"):
            cross_val_predict(model, X, y, method="predict_proba", cv=2, params=given)


@pytest.mark.parametrize("dtype", ["bool", "boolean", "int64", "Int64"])
def test_a_matrix_from_a_file_with_true_and_false(dtype):
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = pd.Series(X[:, 0] > 0).astype(dtype)
    matrix = pd.DataFrame([[5.0, 0], [0, 1]], index=["True", "False"], columns=["False", "True"])
    assert mean_cost(y, 1 - y.astype(int), cost_matrix=matrix) == 1 + 4 * (X[:, 0] > 0).mean()
    for model in (small_mlp(), BayesMinimumRiskClassifier()):
        found = clone(model).set_params(cost_matrix=matrix).fit(X, y)
        expected = clone(model).set_params(cost_matrix=[[0, 1], [5, 0]]).fit(X, y.astype(int))
        np.testing.assert_array_equal(found.predict_cost(X), expected.predict_cost(X))


def test_a_file_read_without_its_index_is_explained():
    frame = pd.DataFrame(MATRIX, CLASSES, CLASSES).reset_index()
    with pytest.raises(ValueError, match="labels of rows as its index.*index_col=0"):
        check_cost_matrix(frame, classes=CLASSES)
