"""Costs keep the names of their classes and decisions, lose them, or are matched by them."""

import copy
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, shuffle

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from auxcst_sklearn.costs import (
    binary_cost_matrices,
    cost_matrices,
    cost_vectors,
    ordinal_cost_matrix,
    randomized_proportional_cost_matrix,
    tree_distance_cost_matrix,
)
from auxcst_sklearn.costs._named import CostArray
from auxcst_sklearn.metrics import (
    cost_difference,
    cost_scorer,
    make_cost_scorer,
    mean_cost,
    savings_score,
)
from tests.factories import small_mlp

N = 60
TERMS = {
    "good": {"approve": 0, "refuse": "0.1 * limit", "review": 12},
    "bad": {"approve": "limit", "refuse": 0, "review": 15},
}
DECISIONS = ["approve", "refuse", "review"]
RNG = np.random.default_rng(0)
LIMIT = RNG.lognormal(4, 1, N)
Y = np.where(np.arange(N) % 3 == 0, "bad", "good")
X = (Y == "bad")[:, None] + RNG.normal(size=(N, 2))
C = cost_matrices(TERMS, {"limit": LIMIT})
M = cost_matrices({k: {d: len(k + d) for d in DECISIONS} for k in TERMS})
PLAIN = np.asarray(C)


def names(costs):
    """The classes and decisions of an array, None for a plain one."""
    if type(costs) is np.ndarray:
        return None
    classes = costs.classes
    return (None if classes is None else classes.tolist()), costs.decisions.tolist()


BOTH = (["bad", "good"], DECISIONS)


def test_what_the_helpers_return_has_names():
    assert names(C) == names(M) == BOTH
    of_frame = pd.DataFrame(TERMS).T
    assert names(cost_matrices(of_frame, {"limit": LIMIT})) == BOTH
    binary = {"fp_cost": 1, "fn_cost": LIMIT, "classes": ["x", "a"], "pos_label": "x"}
    assert names(binary_cost_matrices(**binary)) == (["a", "x"], ["a", "x"])
    assert names(randomized_proportional_cost_matrix([3, 1, 1])) == ([1, 3], [1, 3])
    assert names(tree_distance_cost_matrix({"b": "x/b", "a": "a"})) == (["b", "a"], ["b", "a"])
    assert names(ordinal_cost_matrix(["lo", "hi"])) == (["lo", "hi"], ["lo", "hi"])
    assert names(cost_vectors([0, 2, 2], [[0, 1], [1, 0]])) == (None, [0, 2])
    assert names(cost_vectors(Y, C)) == names(cost_vectors(Y, M)) == (None, DECISIONS)
    for plain in (ordinal_cost_matrix(2), tree_distance_cost_matrix(["a", "b"])):
        assert names(plain) is None


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (lambda a: a[3:9], BOTH),
        (lambda a: a[[5, 1, 1]], BOTH),
        (lambda a: a[np.arange(N) > 9], BOTH),
        (lambda a: a[7], BOTH),
        (lambda a: a[np.array([], int)], BOTH),
        (lambda a: a[None], BOTH),
        (lambda a: np.take(a, [4, 2], axis=0), BOTH),
        (lambda a: a[:, :, [2, 0, 1]], (BOTH[0], ["review", "approve", "refuse"])),
        (lambda a: a[..., ::-1], (BOTH[0], DECISIONS[::-1])),
        (lambda a: np.flip(a, axis=-1), (BOTH[0], DECISIONS[::-1])),
        (lambda a: a[:, ::-1], (["good", "bad"], DECISIONS)),
        (lambda a: a[..., :2], (BOTH[0], DECISIONS[:2])),
        (lambda a: a[..., np.array([True, False, True])], (BOTH[0], ["approve", "review"])),
        (lambda a: a[np.ix_([3, 4], [1, 0], [2, 1])], (["good", "bad"], ["review", "refuse"])),
        (lambda a: a[0][np.ix_([1, 0], [2, 1])], (["good", "bad"], ["review", "refuse"])),
        (lambda a: a[:, 0], (None, DECISIONS)),
        (lambda a: a[np.arange(N), np.arange(N) % 2], (None, DECISIONS)),
        (lambda a: a[np.arange(2 * N).reshape(N, 2) % 2 == 0], (None, DECISIONS)),
        (lambda a: a[0][np.arange(N) % 2], (None, DECISIONS)),
        (lambda a: a[:, :, 0], None),
        (lambda a: a[..., None], None),
        (lambda a: a[..., [0, 0, 1]], None),
        (lambda a: a[0, :, [2, 0]], None),
        (lambda a: a[a > 1], None),
    ],
)
def test_a_selection_keeps_the_names_of_what_it_selects(select, expected):
    found = select(C)
    assert_array_equal(np.asarray(found), select(PLAIN))
    assert names(found) == expected


@pytest.mark.parametrize(
    "change",
    [
        lambda a: 2 * a + 1,
        lambda a: -a / 3,
        lambda a: a * LIMIT[:, None, None],
        lambda a: a[0] * LIMIT[:, None, None],
        lambda a: a - a.min(axis=-1, keepdims=True),
        lambda a: a + a,
        lambda a: a - a[0, 0],
        lambda a: np.maximum(a, 1),
        lambda a: a.clip(0, 9),
        lambda a: a.astype(np.float32),
        lambda a: a.copy(),
        lambda a: copy.deepcopy(a),
        lambda a: clone(a, safe=False),
        lambda a: pickle.loads(pickle.dumps(a)),
        lambda a: _safe_indexing(a, np.arange(5)),
        lambda a: train_test_split(X, a, random_state=0)[2],
        lambda a: shuffle(a, random_state=0),
    ],
)
def test_names_survive_arithmetic_and_copies(change):
    found = change(C)
    assert names(found) == BOTH
    np.testing.assert_allclose(np.asarray(found), change(PLAIN))


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.T,
        lambda a: a[0].T,
        lambda a: a.transpose(0, 2, 1),
        lambda a: np.swapaxes(a, 1, 2),
        lambda a: np.moveaxis(a, -1, 0),
        lambda a: a.reshape(-1, 2, 3),
        lambda a: a.ravel(),
        lambda a: a.sum(axis=0),
        lambda a: a.mean(axis=1),
        lambda a: np.max(a, axis=0),
        lambda a: np.concatenate([a, a]),
        lambda a: np.concatenate([a, a], axis=-1),
        lambda a: np.stack([a, a[..., ::-1]]),
        lambda a: np.sort(a),
        lambda a: np.cumsum(a, axis=0),
        lambda a: a.argsort(),
        lambda a: np.where(a > 1, a, 2 * a),
        lambda a: a @ np.ones((3, 3)),
        lambda a: a > 1,
        lambda a: np.where(a > 1, a, 0),
        np.asarray,
        np.array,
    ],
)
def test_everything_else_returns_a_plain_array(change):
    found = change(C)
    assert type(found) is np.ndarray
    assert_array_equal(found, change(PLAIN))


def test_in_place_operations_keep_names():
    costs = C.copy()
    costs *= 2
    costs += costs
    costs[3] = C[5]
    costs[:2] = M
    costs[:, :, [1, 0]] = C[:, :, [1, 0]]
    np.add(LIMIT[:, None, None], 1, out=costs)
    np.copyto(costs, PLAIN)
    assert names(costs) == BOTH
    for method in ("sort", "partition", "resize"):
        with pytest.raises(ValueError, match=r"np\.sort"):
            getattr(costs, method)(1)
    with pytest.raises(AttributeError):
        costs.flat = C
    with pytest.raises(ValueError, match="read-only"):
        C.decisions[0] = "refuse"
    plain = PLAIN.copy()
    plain += C
    plain[2] = C[2]
    assert type(plain) is np.ndarray


OTHER = C[..., [1, 0, 2]]
MIX = {
    "operator": lambda a, b: a + b,
    "operator of plain and named": lambda a, b: PLAIN * b - a,
    "comparison": lambda a, b: a < b,
    "function": lambda a, b: np.maximum(a, b),
    "rows": lambda a, b: a[0] + b[0],
    "row of a class": lambda a, b: a * b[0, 0],
    "row of decisions": lambda a, b: a[:, 0] + b[:, 1],
    "out": lambda a, b: np.add(b, 1, out=a),
    "in place": lambda a, b: a.__iadd__(b),
    "at": lambda a, b: np.add.at(a, 0, b[0]),
    "row assigned": lambda a, b: a.__setitem__(3, b[3]),
    "all assigned": lambda a, b: a.__setitem__(..., b),
    "mask assigned": lambda a, b: a.__setitem__(LIMIT > 50, b[LIMIT > 50]),
    "list assigned": lambda a, b: a.__setitem__(slice(2), [a[0], b[0]]),
    "class assigned": lambda a, b: a.__setitem__((slice(None), 1), b[:, 1]),
    "cells assigned": lambda a, b: a.__setitem__((np.arange(N), np.arange(N) % 2), b[:, 1]),
    "selection assigned": lambda a, b: a.__setitem__((..., [1, 0, 2]), a),
    "copyto": lambda a, b: np.copyto(a, b, where=PLAIN > 9),
    "put": lambda a, b: a.put(np.arange(a.size), b),
    "putmask": lambda a, b: np.putmask(a, PLAIN > 9, b),
    "place": lambda a, b: np.place(a, PLAIN > 9, b),
    "where": lambda a, b: np.where(PLAIN > 9, a, b),
    "reversed in place": lambda a, b: a.__iadd__(a[:, ::-1]),
    "matrix product in place": lambda a, b: np.matmul(a, np.eye(3)[::-1], out=a),
    "sum": lambda a, b: b.sum(axis=0, out=a[0]),
    "take": lambda a, b: a[:, :, :2].take([1, 0], axis=-1, out=a[:, :, :2]),
}


@pytest.mark.parametrize("mix", MIX.values(), ids=MIX)
def test_costs_in_another_order_are_refused(mix):
    costs = C.copy()
    with pytest.raises(ValueError, match=r"expected the same in the same order|out= has names"):
        mix(costs, OTHER)
    assert_array_equal(np.asarray(costs), PLAIN)
    assert names(costs) == BOTH


def test_the_error_shows_both_orders_and_how_to_reorder():
    reorder = (
        r"\['approve', 'refuse', 'review'\] and \['refuse', 'approve', 'review'\].*b\[\.\.\., "
    )
    with pytest.raises(ValueError, match=reorder + r"\[1, 0, 2\]\]"):
        C + OTHER
    np.testing.assert_array_equal(np.asarray(C + OTHER[..., [1, 0, 2]]), 2 * PLAIN)
    with pytest.raises(ValueError, match=r"The classes.*b\[\.\.\., \[1, 0\], :\]"):
        C + C[:, ::-1]
    np.testing.assert_array_equal(np.asarray(C + C[:, ::-1][..., [1, 0], :]), 2 * PLAIN)
    with pytest.raises(ValueError, match="Select the same labels"):
        C[..., :2] + C[..., 1:]


def test_rows_of_a_loop_have_names():
    assert [names(matrix) for matrix in C[:2]] == [BOTH, BOTH]
    assert [names(row) for row in C[0]] == [(None, DECISIONS)] * 2
    assert list(C[0, 0]) == list(PLAIN[0, 0])
    assert names(C.view()) == BOTH


def test_a_list_of_costs_is_matched_by_names():
    codes = np.searchsorted(["bad", "good"], Y)
    rows, expected = [C[i, k] for i, k in enumerate(codes)], mean_cost(Y, ["refuse"] * N, cost=C)
    model = MODELS["rule"]().fit(X, Y, cost=C)
    named = {"classes": ["bad", "good"], "decisions": ["review", "approve", "refuse"]}
    for costs in (list(C), list(OTHER), rows, [row[::-1] for row in rows]):
        assert mean_cost(Y, ["refuse"] * N, cost=costs, **named) == pytest.approx(expected)
    fitted = MODELS["rule"]().fit(X, Y, cost=list(OTHER))
    assert_array_equal(fitted.decide(X, list(OTHER)), model.decide(X, C))
    binary = [ordinal_cost_matrix(["good", "bad"], over_cost=4)[int(y == "bad")] for y in Y]
    vectors = np.where(codes[:, None], [4, 0], [0, 1])
    assert_array_equal(
        MODELS["rule"]().fit(X, Y, cost=binary).predict_cost(X),
        MODELS["rule"]().fit(X, Y, cost=vectors).predict_cost(X),
    )


@pytest.mark.parametrize("at", [0, N - 1])
def test_a_list_of_costs_in_two_orders_is_refused(at):
    costs = list(C)
    costs[at] = OTHER[at]
    model = MODELS["rule"]().fit(X, Y, cost=C)
    for call in (
        lambda: MODELS["rule"]().fit(X, Y, cost=costs),
        lambda: model.decide(X, costs),
        lambda: model.score(X, Y, cost=costs),
        lambda: mean_cost(Y, Y, cost=costs, decisions=DECISIONS),
        lambda: cost_vectors(Y, costs),
        lambda: mean_cost(Y, Y, cost=[c[0] for c in costs], decisions=DECISIONS),
    ):
        with pytest.raises(ValueError, match="expected the same in the same order"):
            call()


def test_names_survive_files_that_are_mapped_to_memory(tmp_path):
    joblib.dump({"cost": C}, tmp_path / "costs")
    mapped = joblib.load(tmp_path / "costs", mmap_mode="r")["cost"]
    assert names(mapped) == names(mapped[3:5]) == BOTH
    assert isinstance(mapped.base, np.memmap)
    in_workers = joblib.Parallel(2, max_nbytes=100)(joblib.delayed(names)(C) for _ in range(2))
    assert in_workers == [BOTH, BOTH]


# ---------------------------------------------------------------- matched by name

ORDERS = ([2, 0, 1], [0, 2, 1])
MODELS = {
    "rule": lambda **p: BayesMinimumRiskClassifier(LogisticRegression(), **p),
    "network": small_mlp,
    "ensemble": lambda **p: CostSensitiveEnsembleClassifier(
        [("logistic", LogisticRegression())], random_state=0, **p
    ),
}


def columns(costs, order):
    return costs[..., ::-1, :][..., order]


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_estimators_match_costs_by_name(model, order):
    named = [DECISIONS[j] for j in order]
    first = model().fit(X, Y, cost=C)
    assert first.decisions_.tolist() == DECISIONS
    expected = first.decide(X, C)

    for fitted in (
        model(decisions=named).fit(X, Y, cost=C),
        model().fit(X, Y, cost=columns(C, order)),
        model(decisions=DECISIONS).fit(X, Y, cost=columns(C, order)),
    ):
        assert_array_equal(fitted.decide(X, C), expected)
        assert_array_equal(fitted.decide(X, columns(C, order)), expected)
        assert fitted.score(X, Y, cost=columns(C, order)) == pytest.approx(
            first.score(X, Y, cost=C)
        )
    of_classes = model(cost_matrix=M).fit(X, Y)
    other = model(cost_matrix=columns(M, order), decisions=named).fit(X, Y)
    assert_array_equal(other.decisions_, named)
    np.testing.assert_allclose(
        other.predict_cost(X), of_classes.predict_cost(X)[:, order], rtol=1e-5
    )
    assert other.score(X, Y) == pytest.approx(of_classes.score(X, Y))


def test_metrics_scorers_and_displays_match_costs_by_name():
    model = MODELS["rule"]().fit(X, Y, cost=C)
    decided, order = model.decide(X, C), ORDERS[0]
    other = np.roll(decided, 1)
    paid = np.mean(
        [C[i, int(y == "good"), DECISIONS.index(d)] for i, (y, d) in enumerate(zip(Y, decided))]
    )
    for costs in (C, columns(C, order)):
        assert mean_cost(Y, decided, cost=costs) == pytest.approx(paid)
        named = {"classes": ["bad", "good"], "decisions": ["review", "approve", "refuse"]}
        assert mean_cost(Y, decided, cost=costs, **named) == pytest.approx(paid)
        assert mean_cost(Y, decided, cost=cost_vectors(Y, costs), **named) == pytest.approx(paid)
        assert savings_score(Y, decided, cost=costs) == savings_score(Y, decided, cost=C)
        assert cost_difference(Y, decided, other, cost=costs).mean == pytest.approx(
            paid - mean_cost(Y, other, cost=C)
        )
        assert cost_scorer(model, X, Y, cost=costs) == pytest.approx(-paid)
    scorers = [make_cost_scorer(cost_matrix=costs) for costs in (M, columns(M, order))]
    assert scorers[0](model, X, Y) == scorers[1](model, X, Y)


def test_rows_of_a_matrix_are_cost_vectors():
    """Few of them may look like a matrix, whose rows name classes."""
    codes = np.searchsorted(["bad", "good"], Y)
    other = columns(ordinal_cost_matrix(["good", "bad"], over_cost=7), [1, 0])
    for rows in (np.arange(N), np.array([0, 1]), np.array([1, 0]), np.array([0])):
        y, y_pred = Y[rows], Y[::-1][rows]
        vectors = ordinal_cost_matrix(["bad", "good"], under_cost=7)[codes[rows]]
        assert mean_cost(y, y_pred, cost=vectors) == mean_cost(y, y_pred, cost_matrix=other)


def test_displays_match_costs_by_name():
    pytest.importorskip("matplotlib")
    from auxcst_sklearn.plotting import CostConfusionDisplay, CostThresholdDisplay

    model, order = MODELS["rule"]().fit(X, Y, cost=C), ORDERS[0]
    found = [
        CostConfusionDisplay.from_estimator(model, X, Y, cost=costs)
        for costs in (C, columns(C, order))
    ]
    assert_array_equal(found[0].confusion_matrix, found[1].confusion_matrix)
    binary = binary_cost_matrices(
        fp_cost=2, fn_cost=LIMIT, classes=["bad", "good"], pos_label="bad"
    )
    model = MODELS["rule"]().fit(X, Y, cost=binary)
    found = [
        CostThresholdDisplay.from_estimator(model, X, Y, cost=costs, pos_label="bad")
        for costs in (binary, binary[:, ::-1, ::-1])
    ]
    assert found[0].bayes_cost == found[1].bayes_cost
    with pytest.raises(ValueError, match="decides between two classes"):
        CostThresholdDisplay.from_predictions(Y, model.predict_proba(X)[:, 0], cost=C[..., :2])


def test_names_reach_a_pipeline_in_a_search():
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), small_mlp(decisions=DECISIONS[::-1]))
        grid = {f"{pipeline.steps[-1][0]}__width": [4]}
        search = GridSearchCV(pipeline, grid, scoring=cost_scorer, cv=3)
        search.fit(X, Y, cost=C)
        shuffled = clone(search).fit(X, Y, cost=columns(C, ORDERS[0]))
    assert search.best_score_ == pytest.approx(shuffled.best_score_)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_class_that_has_no_row_is_named_by_the_costs(model):
    terms = {**TERMS, "new": dict.fromkeys(DECISIONS, 1)}
    costs = cost_matrices(terms, {"limit": LIMIT})
    fitted = model().fit(X, Y, cost=costs)
    assert fitted.classes_.tolist() == ["bad", "good", "new"]
    assert fitted.decide(X, costs).shape == (N,)


def test_other_names_than_the_labels_are_refused():
    model = MODELS["rule"]().fit(X, Y, cost=C)
    for call in (
        lambda: MODELS["rule"]().fit(X, np.char.replace(Y, "good", "fine"), cost=C),
        lambda: mean_cost(np.char.replace(Y, "good", "fine"), model.decide(X), cost=C),
        lambda: cost_vectors(np.char.replace(Y, "good", "fine"), C),
    ):
        with pytest.raises(ValueError, match="'bad', 'good'.*'fine'|'fine'.*'bad', 'good'"):
            call()
    others = ["approve", "refuse", "refer"]
    for call in (
        lambda: MODELS["rule"](decisions=others).fit(X, Y, cost=C),
        lambda: MODELS["rule"](decisions=others, cost_matrix=M).fit(X, Y),
        lambda: mean_cost(Y, model.decide(X), cost=C, decisions=others),
        lambda: model.decide(
            X, cost_matrices({k: dict.fromkeys(others, 1) for k in TERMS}) * np.ones((N, 1, 1))
        ),
    ):
        with pytest.raises(ValueError, match="'refer'.*'review'|'review'.*'refer'"):
            call()


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_permutation_of_the_classes_warns_once(model):
    costs = [[0, 30], [1, 0]]
    named = ordinal_cost_matrix(["good", "bad"])
    for matrix in (costs, named):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = model(cost_matrix=matrix, decisions=["good", "bad"]).fit(X, Y)
            fitted.score(X, Y)
            fitted.decide(X)
        found = [str(w.message) for w in caught if "decisions=" in str(w.message)]
        assert len(found) == 1
        assert "with names are matched by them, others are taken in this order" in found[0]
    with pytest.warns(UserWarning, match="decisions=.*taken in this order"):
        mean_cost(Y, Y, cost_matrix=costs, decisions=["good", "bad"])


@pytest.mark.parametrize("columns", [[" bad", "good"], ["Bad", "good"], ["good", "BAD "]])
def test_names_that_differ_by_spelling_only_are_refused(columns):
    alike = "differ only by spaces, capitals or the text of a number"
    with pytest.raises(ValueError, match=alike):
        cost_matrices({k: dict.fromkeys(columns, 1) for k in TERMS})
    matrix = np.array([[0, 1], [2, 0]])
    for given in ({"decisions": columns}, {"classes": ["bad", "good"], "decisions": columns}):
        with pytest.raises(ValueError, match=alike):
            mean_cost(Y, Y, cost_matrix=matrix, **given)
        with pytest.raises(ValueError, match=alike):
            MODELS["rule"](cost_matrix=matrix, **given).fit(X, Y)
    with pytest.raises(ValueError, match=alike):
        MODELS["rule"](cost_matrix=pd.DataFrame(matrix, ["bad", "good"], columns)).fit(X, Y)
    with pytest.raises(ValueError, match=alike):
        MODELS["rule"]().fit(X, np.char.title(Y), cost=C)


def test_keys_of_json_are_numbers_where_their_text_is_that_of_the_label():
    y = np.array([-2, 10, 1000])
    texts = ["-2", "10", "1000"]
    matrix = cost_matrices({a: {b: abs(int(a) - int(b)) for b in texts} for a in texts})
    assert mean_cost(y, y[[1, 1, 2]], cost_matrix=matrix) == 4
    for odd in (["-2", "10.0", "1000"], ["-2", "10", "1e3"]):
        matrix = cost_matrices({a: {b: float(a != b) for b in odd} for a in odd})
        with pytest.raises(ValueError, match="text of a number"):
            mean_cost(y, y, cost_matrix=matrix)
    with pytest.raises(ValueError, match="text of a number"):
        cost_matrices({"10": {"10.0": 0, "2": 1}, "2": {"10.0": 1, "2": 0}})
    with pytest.warns(UserWarning, match="sorted as"):
        cost_matrices({a: {b: float(a != b) for b in ("-2", "-1")} for a in ("-2", "-1")})


@pytest.mark.parametrize("kind", MODELS)
def test_a_transposed_matrix_warns_once(kind):
    model = MODELS[kind](cost_matrix=[[5, 1], [0, 8]])
    if kind == "mean":
        model.set_params(estimators=[("a", small_mlp()), ("b", small_mlp())])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y)
    assert sum("true class is not the cheapest" in str(w.message) for w in caught) == 1


@pytest.mark.parametrize("kind", MODELS)
def test_saved_estimators_keep_the_names(kind, tmp_path):
    model = MODELS[kind](cost_matrix=M).fit(X, Y)
    joblib.dump(model, tmp_path / "model")
    loaded = [
        pickle.loads(pickle.dumps(model)),
        clone(model),
        joblib.load(tmp_path / "model", mmap_mode="r"),
    ]
    io = pytest.importorskip("skops.io")
    file = io.dumps(model)
    loaded.append(io.loads(file, trusted=io.get_untrusted_types(data=file)))
    for other in loaded:
        assert names(other.cost_matrix) == BOTH
        assert_array_equal(np.asarray(other.cost_matrix), np.asarray(M))


def test_later_blocks_have_the_decisions_of_the_first():
    model = small_mlp().partial_fit(X, Y, cost=C)
    model.partial_fit(X, Y, cost=PLAIN)
    model.partial_fit(X, Y, cost=columns(C, ORDERS[0]))
    assert model.decisions_.tolist() == DECISIONS
    with pytest.raises(ValueError, match="training continues with the decisions"):
        model.partial_fit(X, Y, cost=C[..., :2])


def test_frames_in_another_order_are_refused_in_arithmetic_and_assignments():
    C = CostArray([[0.0, 1.0], [10.0, 0.0]], ["a", "b"], ["a", "b"])
    same = pd.DataFrame(np.asarray(C), index=["a", "b"], columns=["a", "b"])
    other = same.loc[["b", "a"], ["b", "a"]]
    np.testing.assert_array_equal(C + same, 2 * np.asarray(C))
    with pytest.raises(ValueError, match="expected the same in the same order"):
        C + other
    with pytest.raises(ValueError, match="expected the same in the same order"):
        C[:] = other
