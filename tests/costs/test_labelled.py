"""LabelledCosts: a value that keeps the labels of its classes and decisions."""

import copy
import operator
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, shuffle

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from auxcst_sklearn.costs import (
    LabelledCosts,
    binary_cost_matrices,
    cost_matrices,
    cost_vectors,
    ordinal_cost_matrix,
    randomized_proportional_cost_matrix,
    tree_distance_cost_matrix,
)
from auxcst_sklearn.metrics import cost_scorer, make_cost_scorer, mean_cost, savings_score
from tests.factories import small_mlp

N = 60
RNG = np.random.default_rng(0)
LIMIT = RNG.lognormal(4, 1, N)
TERMS = {
    "good": {"approve": 0, "refuse": 0.1 * LIMIT, "review": 12},
    "bad": {"approve": LIMIT, "refuse": 0, "review": 15},
}
DECISIONS = ["approve", "refuse", "review"]
Y = np.where(np.arange(N) % 3 == 0, "bad", "good")
X = (Y == "bad")[:, None] + RNG.normal(size=(N, 2))
C = cost_matrices(TERMS)
M = cost_matrices({k: {d: len(k + d) for d in DECISIONS} for k in TERMS})
VECTORS = cost_vectors(Y, C)
PLAIN = np.asarray(C)


def names(costs):
    """The classes and decisions of costs, None for a plain array."""
    if type(costs) is np.ndarray:
        return None
    classes = costs.classes
    return (None if classes is None else classes.tolist()), costs.decisions.tolist()


BOTH = (["bad", "good"], DECISIONS)


def test_what_the_helpers_return_has_names():
    assert names(C) == names(M) == names(cost_matrices(pd.DataFrame(TERMS).T)) == BOTH
    binary = {"fp_cost": 1, "fn_cost": LIMIT, "classes": ["x", "a"], "pos_label": "x"}
    assert names(binary_cost_matrices(**binary)) == (["a", "x"], ["a", "x"])
    assert names(randomized_proportional_cost_matrix([3, 1, 1])) == ([1, 3], [1, 3])
    assert names(tree_distance_cost_matrix({"b": "x/b", "a": "a"})) == (["b", "a"], ["b", "a"])
    assert names(ordinal_cost_matrix(["lo", "hi"])) == (["lo", "hi"], ["lo", "hi"])
    assert names(cost_vectors([0, 2, 2], [[0, 1], [1, 0]])) == (None, [0, 2])
    assert names(VECTORS) == names(cost_vectors(Y, M)) == (None, DECISIONS)
    for plain in (ordinal_cost_matrix(2), tree_distance_cost_matrix(["a", "b"])):
        assert names(plain) is None


ROWS = {
    "integer": 7,
    "integer of numpy": np.int64(-1),
    "slice": slice(3, 9),
    "reversed": slice(None, None, -1),
    "list": [5, 1, 1],
    "mask": np.arange(N) > 9,
    "none": np.array([], int),
    "all": ...,
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("costs", [C, VECTORS], ids=["matrices", "vectors"])
def test_selected_rows_keep_the_labels(costs, rows):
    for found in (costs[rows], costs[rows, ...]):
        assert_array_equal(found.values, np.asarray(costs)[rows])
        assert names(found) == names(costs)


def test_rows_of_a_matrix_are_its_classes():
    assert names(M[[1, 0]]) == (["good", "bad"], DECISIONS)
    assert names(M[1:]) == (["good"], DECISIONS)
    assert names(M[0]) == (None, DECISIONS)
    assert_array_equal(M[::-1][1].values, M[0].values)
    assert float(M[0][2]) == len("badreview")
    with pytest.raises(ValueError, match=r"each once.*cost_vectors\(y, cost_matrix\)"):
        M[[0, 0]]


def frozen_view(array):
    """What ``DataFrame.to_numpy()`` returns: read-only, in memory that the frame may change."""
    view = array[:]
    view.flags.writeable = False
    return view


def test_costs_are_a_value():
    assert (C.shape, C.ndim, C.dtype, len(C)) == ((N, 2, 3), 3, np.float64, N)
    same = LabelledCosts(PLAIN, ["bad", "good"], DECISIONS)
    renamed = LabelledCosts(PLAIN, ["good", "bad"], DECISIONS)
    dearer = LabelledCosts(PLAIN + 1, ["bad", "good"], DECISIONS)
    assert same == C
    assert [other == C for other in (C[:9], PLAIN, renamed, dearer)] == [False] * 4
    assert (PLAIN == C) is False
    for name in ("values", "classes", "decisions"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(C, name)[0] = 1
        with pytest.raises(AttributeError, match="cannot be set"):
            setattr(C, name, 1)
    frame = pd.DataFrame(M.values, M.classes, M.decisions)
    assert LabelledCosts(frame, frame.index, frame.columns) == M
    assert_array_equal(pd.DataFrame(M, M.classes, M.decisions), frame)
    source = PLAIN.copy()
    for values in (source, frozen_view(source)):
        costs = LabelledCosts(values, ["bad", "good"], DECISIONS)
        source[:] = 0
        assert costs == C
        source[:] = PLAIN
    mixed = LabelledCosts(M.values, [0, 1], [0, 1, "review"])
    assert mixed.decisions.tolist() == [0, 1, "review"]


def test_arrays_are_what_numpy_sees():
    assert np.asarray(C) is not C
    assert np.asarray(C, dtype=np.float32).dtype == np.float32
    assert np.shares_memory(np.asarray(C), C.values)
    copied = np.array(C)
    copied[:] = 0
    assert C.values.any()
    for function in (np.sort, np.ravel, np.argmin, np.concatenate, np.mean, list):
        assert type(function(C)) in (np.ndarray, np.intp, np.float64, list)
    assert_array_equal(np.swapaxes(C, 1, 2), PLAIN.swapaxes(1, 2))
    assert_array_equal(np.where(PLAIN > 9, C, 0), np.where(PLAIN > 9, PLAIN, 0))


@pytest.mark.parametrize(
    "change",
    [
        lambda costs: costs * 1.1,
        lambda costs: 1.1 * costs,
        lambda costs: costs + costs,
        lambda costs: PLAIN - costs,
        lambda costs: operator.iadd(PLAIN.copy(), costs),
        lambda costs: costs / LIMIT[:, None, None],
        lambda costs: -costs,
        lambda costs: costs @ PLAIN[0].T,
        lambda costs: operator.setitem(costs, 0, 1),
        lambda costs: np.maximum(costs, 0),
    ],
)
def test_arithmetic_and_assignment_are_refused(change):
    with pytest.raises(TypeError):
        change(C)
    assert_array_equal(C.values, PLAIN)


@pytest.mark.filterwarnings("ignore:you are shuffling")
def test_numpy_cannot_shuffle_them():
    for shuffle_rows in (np.random.default_rng(0).shuffle, np.random.RandomState(0).shuffle):
        with pytest.raises(TypeError):
            shuffle_rows(C)
    assert_array_equal(C.values, PLAIN)


def test_only_rows_are_selected():
    for key in (None, True, np.eye(2, dtype=int), (..., slice(None)), (slice(None), 0)):
        with pytest.raises(TypeError, match="Only rows can be selected"):
            C[key]


@pytest.mark.parametrize(
    ("classes", "decisions", "message"),
    [
        (["bad", "good"], DECISIONS[:2], r"decisions are .*expected 3 labels"),
        (["bad"], DECISIONS, r"classes are \['bad'\]; expected 2 labels"),
        (["bad", "bad"], DECISIONS, "each once"),
        (None, DECISIONS, r"values has shape \(60, 2, 3\); expected a row for each class"),
    ],
)
def test_labels_that_do_not_fit_are_refused(classes, decisions, message):
    with pytest.raises(ValueError, match=message):
        LabelledCosts(PLAIN, classes, decisions)


def through_skops(value):
    io = pytest.importorskip("skops.io")
    file = io.dumps(value)
    return io.loads(file, trusted=io.get_untrusted_types(data=file))


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        lambda costs: clone(costs, safe=False),
        lambda costs: pickle.loads(pickle.dumps(costs)),
        through_skops,
    ],
    ids=["copy", "deepcopy", "clone", "pickle", "skops"],
)
@pytest.mark.parametrize("costs", [C, VECTORS, M])
def test_copies_and_files_are_the_same_value(costs, copied):
    found = copied(costs)
    assert found == costs
    with pytest.raises(ValueError, match="read-only"):
        found.values[0] = 1


def test_splits_of_scikit_learn_keep_the_labels():
    train, test, C_train, C_test = train_test_split(X, C, random_state=0)
    assert names(C_train) == names(C_test) == BOTH
    assert (len(C_train), len(C_test)) == (len(train), len(test))
    again = shuffle(C, random_state=0)
    assert names(again) == BOTH
    assert_array_equal(again.values, shuffle(PLAIN, random_state=0))
    assert names(_safe_indexing(C, np.arange(N) > 5)) == BOTH


class Recorder(ClassifierMixin, BaseEstimator):
    """A classifier that writes down the labels of the costs that reach it."""

    __metadata_request__fit = {"cost": True}  # noqa: RUF012

    def fit(self, X, y, cost=None):
        assert len(cost) == len(X)
        self.classes_, self.names_ = np.unique(y), names(cost)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_routed_costs_keep_their_labels():
    model = Recorder()
    with sklearn.config_context(enable_metadata_routing=True):
        folds = cross_validate(model, X, Y, params={"cost": C}, cv=3, return_estimator=True)
        pipeline = make_pipeline(StandardScaler(), model)
        search = GridSearchCV(pipeline, {"standardscaler__with_mean": [True, False]}, cv=2)
        search.fit(X, Y, cost=C)
    assert [fold.names_ for fold in folds["estimator"]] == [BOTH] * 3
    assert search.best_estimator_[-1].names_ == BOTH


@pytest.mark.slow
def test_memory_maps_keep_the_labels(tmp_path):
    joblib.dump({"cost": C}, tmp_path / "costs")
    mapped = joblib.load(tmp_path / "costs", mmap_mode="r")["cost"]
    assert mapped == C
    assert names(mapped[3:5]) == BOTH
    assert isinstance(mapped.values, np.memmap)
    of_workers = joblib.Parallel(2, max_nbytes=100)(joblib.delayed(in_worker)(C) for _ in range(2))
    assert of_workers == [(BOTH, True)] * 2


def in_worker(costs):
    return names(costs), isinstance(costs.values, np.memmap)


# ---------------------------------------------------------------- estimators that hold them

MODELS = {
    "rule": lambda **p: BayesMinimumRiskClassifier(LogisticRegression(), **p),
    "network": small_mlp,
    "ensemble": lambda **p: CostSensitiveEnsembleClassifier(
        [("logistic", LogisticRegression())], random_state=0, **p
    ),
}
ORDER = [2, 0, 1]


def reordered(costs):
    """Costs with the classes reversed, and the decisions in another order."""
    values = costs.values[..., ::-1, :][..., ORDER]
    return LabelledCosts(values, costs.classes[::-1], costs.decisions[ORDER])


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_decisions_are_matched_by_name(model):
    named = [DECISIONS[j] for j in ORDER]
    first = model().fit(X, Y, cost=C)
    assert first.decisions_.tolist() == DECISIONS
    expected = first.decide(X, C)
    for fitted in (
        model(decisions=named).fit(X, Y, cost=C),
        model().fit(X, Y, cost=reordered(C)),
        model(decisions=DECISIONS).fit(X, Y, cost=reordered(C)),
    ):
        assert_array_equal(fitted.decide(X, reordered(C)), expected)
        score = fitted.score(X, Y, cost=reordered(C))
        assert score == pytest.approx(first.score(X, Y, cost=C))
    of_classes = model(cost_matrix=M).fit(X, Y)
    other = model(cost_matrix=reordered(M), decisions=named).fit(X, Y)
    assert_array_equal(other.decisions_, named)
    expected = of_classes.predict_cost(X)[:, ORDER]
    np.testing.assert_allclose(other.predict_cost(X), expected, rtol=1e-5)


def test_metrics_match_decisions_by_name():
    model = MODELS["rule"]().fit(X, Y, cost=C)
    decided = model.decide(X, C)
    paid = np.mean(
        [PLAIN[i, int(y == "good"), DECISIONS.index(d)] for i, (y, d) in enumerate(zip(Y, decided))]
    )
    named = {"classes": ["bad", "good"], "decisions": ["review", "approve", "refuse"]}
    for costs in (C, reordered(C), list(reordered(C))):
        assert mean_cost(Y, decided, cost=costs) == pytest.approx(paid)
        assert mean_cost(Y, decided, cost=costs, **named) == pytest.approx(paid)
        assert mean_cost(Y, decided, cost=cost_vectors(Y, costs), **named) == pytest.approx(paid)
        assert cost_scorer(model, X, Y, cost=costs) == pytest.approx(-paid)
    mixed = [*C[:9], *reordered(C)[9:]]  # each part of a list is matched
    assert mean_cost(Y, decided, cost=mixed) == pytest.approx(paid)
    scorers = [make_cost_scorer(cost_matrix=costs) for costs in (M, reordered(M))]
    assert scorers[0](model, X, Y) == scorers[1](model, X, Y)


@pytest.mark.parametrize("n_samples", [2, 3])
def test_a_matrix_with_as_many_classes_as_samples_is_no_cost_of_samples(n_samples):
    """Otherwise its first row would be the costs of the first sample."""
    y, matrix = Y[:n_samples], ordinal_cost_matrix(["bad", "good", "none"][:n_samples])
    for function in (mean_cost, savings_score):
        with pytest.raises(ValueError, match="cost contains a cost matrix; expected cost vectors"):
            function(y, y, cost=matrix)
    with pytest.raises(ValueError, match="cost contains a cost matrix; expected cost vectors"):
        MODELS["rule"]().fit(X[:n_samples], y, cost=matrix)


@pytest.mark.parametrize("kind", MODELS)
def test_saved_estimators_keep_the_names(kind, tmp_path):
    model = MODELS[kind](cost_matrix=M).fit(X, Y)
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    loaded = [pickle.loads(pickle.dumps(model)), clone(model), mapped, through_skops(model)]
    for other in loaded:
        assert names(other.cost_matrix) == BOTH
        assert_array_equal(np.asarray(other.cost_matrix), np.asarray(M))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the matrix is the one of the fit
        for other in (loaded[0], *loaded[2:]):
            assert_array_equal(other.decide(X), model.decide(X))


def test_later_blocks_have_the_decisions_of_the_first():
    model = small_mlp().partial_fit(X, Y, cost=C)
    model.partial_fit(X, Y, cost=PLAIN)
    model.partial_fit(X, Y, cost=reordered(C))
    assert model.decisions_.tolist() == DECISIONS
    with pytest.raises(ValueError, match="decisions of cost are .'approve', 'refuse'., but"):
        model.partial_fit(X, Y, cost=LabelledCosts(PLAIN[..., :2], C.classes, DECISIONS[:2]))


@pytest.mark.parametrize(
    "use",
    [
        lambda costs, amount: costs * amount,
        lambda costs, amount: amount * costs,
        lambda costs, amount: 1.1 * costs,
        lambda costs, amount: costs / 2,
        lambda costs, amount: costs + costs,
        lambda costs, amount: pd.Series(amount[: len(costs)].ravel()) * costs,
        lambda costs, amount: costs[:, :, 1],
        lambda costs, amount: costs[..., 0],
    ],
)
def test_arithmetic_and_slices_name_a_remedy_that_keeps_the_labels(use):
    amount = np.ones((len(PLAIN), 1, 1))
    with pytest.raises(TypeError, match=r"LabelledCosts\(costs.values \* amount, costs.cl"):
        use(C, amount)
    costs = C
    found = LabelledCosts(costs.values * amount, costs.classes, costs.decisions)
    assert found == C


@pytest.mark.parametrize(
    ("values", "classes", "cells"),
    [
        ([[0, 5], [20, 0.5]], ["good", "<bad>"], ["good", "&lt;bad&gt;", "20", "0.5"]),
        (np.zeros((9, 2, 2)), ["good", "bad"], ["sample", "(9, 2, 2)", "first 12 of 18 rows"]),
        ([3.0, 4.0], None, ["<td>3</td><td>4</td>"]),
    ],
)
def test_a_notebook_shows_a_table(values, classes, cells):
    html = LabelledCosts(values, classes, ["pay", "refuse"])._repr_html_()

    assert "<th>pay</th><th>refuse</th></tr>" in html
    assert not [cell for cell in cells if cell not in html]
    assert ("true class" in html) == (classes is not None)
