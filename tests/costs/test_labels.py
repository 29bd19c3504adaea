"""Labels of costs match if they are equal: form of costs, type of labels, caller."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from auxcst_sklearn.costs import LabelledCosts, cost_vectors
from auxcst_sklearn.decisions import adjust_prior, assign
from auxcst_sklearn.metrics import compare_costs, cost_scorer, make_cost_scorer, mean_cost
from tests.factories import small_mlp

N = 36
RNG = np.random.default_rng(0)
CODES = np.arange(N) % 3
X = RNG.normal(size=(N, 2)) + np.eye(3)[CODES][:, :2]
MATRIX = np.array([[0.0, 2, 7], [3, 0, 1], [5, 4, 0]])
AMOUNT = RNG.uniform(0.5, 2, size=(N, 1, 1))


def rule(**parameters):
    return BayesMinimumRiskClassifier(GaussianNB(), **parameters)


def ensemble(**parameters):
    members = [("bayes", GaussianNB())]
    return CostSensitiveEnsembleClassifier(members, cv=2, random_state=0, **parameters)


def network(**parameters):
    return small_mlp(max_epochs=1, **parameters)


def confusion(y, **costs):
    pytest.importorskip("matplotlib")
    from auxcst_sklearn.plotting import CostConfusionDisplay

    return CostConfusionDisplay.from_predictions(y, other(y), labels=y, **costs).confusion_matrix


def other(y):
    """Predictions that are sometimes wrong."""
    return np.roll(np.asarray(y), 1)


# ------------------------------------------------------------------------------ the table

# Sorted labels, labels of samples, and labels of costs, all of which are equal.
LABELS = {
    "integers": ([-2, 7, 1000], np.array, list),
    "floats": ([0.0, 1.0, 2.0], np.array, lambda labels: list(map(int, labels))),
    "booleans": ([False, True], np.array, lambda labels: list(map(int, labels))),
    "integers, costs with booleans": ([0, 1], np.array, lambda labels: list(map(bool, labels))),
    "texts": (["1", "10", "9"], np.array, list),
    "objects": (["ant", "bee", "cat"], lambda y: np.array(y, object), list),
    "categories": (["ant", "bee", "cat"], lambda y: pd.Series(y, dtype="category"), pd.Categorical),
    "nullable": ([1, 2, 3], lambda y: pd.Series(y, dtype="Int64"), lambda y: pd.array(y, "Int64")),
    "numpy's scalars": ([1, 2, 3], list, lambda labels: [np.int8(label) for label in labels]),
}
FORMS = {
    "cost_matrix": {
        "frame": pd.DataFrame,
        "labelled": LabelledCosts,
        "list of rows": lambda values, *axes: [
            row for _, row in pd.DataFrame(values, *axes).iterrows()
        ],
    },
    "cost": {
        "labelled": LabelledCosts,
        "list of labelled": lambda values, *axes: [*LabelledCosts(values, *axes)],
        "list of frames": lambda values, *axes: [pd.DataFrame(one, *axes) for one in values],
    },
    "vectors": {
        "frame": lambda values, _, columns: pd.DataFrame(values, [*map(str, range(N))], columns),
        "labelled": lambda values, _, columns: LabelledCosts(values, None, columns),
        "list of labelled": lambda values, _, columns: [*LabelledCosts(values, None, columns)],
        "list of rows": lambda values, _, columns: [pd.Series(row, columns) for row in values],
    },
}
CALLERS = {
    "cost_matrix": {
        "network": lambda y, M: network(cost_matrix=M).fit(X, y).predict_cost(X),
        "rule": lambda y, M: rule(cost_matrix=M).fit(X, y).predict_cost(X),
        "ensemble": lambda y, M: ensemble(cost_matrix=M).fit(X, y).predict_cost(X),
        "score": lambda y, M: rule(cost_matrix=M).fit(X, y).score(X, y),
        "scorer": lambda y, M: make_cost_scorer(cost_matrix=M)(GaussianNB().fit(X, y), X, y),
        "metric": lambda y, M: mean_cost(y, other(y), cost_matrix=M),
        "vectors": lambda y, M: cost_vectors(y, M).values,
        "comparison": lambda y, M: compare_costs(
            {"bayes": GaussianNB(), "rule": rule()}, X, y, cost_matrix=M, cv=2
        )["cost"],
        "confusion": lambda y, M: confusion(y, cost_matrix=M),
        "one matrix when deciding": lambda y, M: rule().fit(X, y).predict_cost(X, cost=M),
        "when a network decides": lambda y, M: network().fit(X, y).predict_cost(X, cost=M),
    },
    "cost": {
        "network": lambda y, C: network().fit(X, y, cost=C).predict_cost(X, C),
        "rule": lambda y, C: rule().fit(X, y, cost=C).predict_cost(X, cost=C),
        "score": lambda y, C: rule().fit(X, y).score(X, y, cost=C),
        "scorer": lambda y, C: cost_scorer(rule().fit(X, y), X, y, cost=C),
        "metric": lambda y, C: mean_cost(y, other(y), cost=C),
        "vectors": lambda y, C: cost_vectors(y, C).values,
        "comparison": lambda y, C: compare_costs({"rule": rule()}, X, y, cost=C, cv=2)["cost"],
        "confusion": lambda y, C: confusion(y, cost=C),
    },
    "vectors": {
        "network": lambda y, c: network().fit(X, y, cost=c).predict_cost(X),
        "rule": lambda y, c: rule().fit(X, y, cost=c).predict_cost(X),
        "score": lambda y, c: rule().fit(X, y).score(X, y, cost=c),
        "scorer": lambda y, c: cost_scorer(GaussianNB().fit(X, y), X, y, cost=c),
        "metric": lambda y, c: mean_cost(y, other(y), cost=c),
    },
}


def values_of(kind, n_classes):
    """Costs in the order of the sorted labels."""
    matrix, codes = MATRIX[:n_classes, :n_classes], CODES % n_classes
    matrices = AMOUNT * matrix
    return {"cost_matrix": matrix, "cost": matrices, "vectors": matrices[np.arange(N), codes]}[kind]


def samples(labels):
    return [labels[code % len(labels)] for code in CODES]


def in_other_order(kind, values, rows, columns, form):
    """The same costs with the last label first."""
    values = np.roll(values, 1, axis=-1)
    values = values if kind == "vectors" else np.roll(values, 1, axis=-2)
    return FORMS[kind][form](values, [*rows[-1:], *rows[:-1]], [*columns[-1:], *columns[:-1]])


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize(
    ("form", "caller"),
    [
        pytest.param(form, caller, marks=[pytest.mark.slow] * (caller == "confusion"))
        for form in FORMS
        for caller in CALLERS[form]
    ],
)
def test_equal_labels_match_in_every_form(form, caller, kind):
    labels, of_samples, of_costs = LABELS[kind]
    y, values, call = of_samples(samples(labels)), values_of(form, len(labels)), CALLERS[form]
    expected = call[caller](y, values)
    own = of_costs(labels)
    for name in FORMS[form]:
        costs = in_other_order(form, values, own, own, name)
        np.testing.assert_allclose(call[caller](y, costs), expected, err_msg=name)


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("form", ["cost_matrix", "cost"])
def test_classes_beside_a_text_stay_what_they_are(form, kind):
    labels, of_samples, of_costs = LABELS[kind]
    y, K = of_samples(samples(labels)), len(labels)
    review = np.broadcast_to(0.4 * AMOUNT, (N, K, 1)) if form == "cost" else np.full((K, 1), 0.4)
    values = np.concatenate([values_of(form, K), review], axis=-1)
    expected = [*labels, "review"]
    for name, make in FORMS[form].items():
        own = [*of_costs(labels)]
        costs = make(values, own, [*own, "review"])
        known = costs if form == "cost" else None
        for model in (rule(), network()):
            if known is None:
                model.set_params(cost_matrix=costs)
            model.fit(X, y, cost=known)
            assert model.decisions_.tolist() == expected, name
            assert model.classes_.tolist() == labels
            cost = model.predict_cost(X, known)
            decided, predicted = model.decide(X, known), model.predict(X, known)
            np.testing.assert_array_equal(decided, model.decisions_[cost.argmin(axis=1)])
            np.testing.assert_array_equal(predicted, model.classes_[cost[:, :K].argmin(axis=1)])
            paid = mean_cost(y, decided, **{form: costs})
            assert model.score(X, y, cost=known) == pytest.approx(-paid)
            of_truth = mean_cost(y, list(y), **{form: costs})
            assert of_truth == 0
        table = compare_costs({"m": rule()}, X, y, **{form: costs}, cv=2)
        assert [*table.attrs["shares"]["m"]] == expected
        assert mean_cost(y, ["review"] * N, **{form: costs}) == pytest.approx(review.mean())


UNEQUAL = {
    "texts of integers": ([0, 1, 2], ["0", "1", "2"]),
    "integers of texts": (["0", "1", "2"], [0, 1, 2]),
    "texts of floats": ([0.0, 1.0, 2.0], ["0", "1", "2"]),
    "encoded": ([0, 1, 2], ["ant", "bee", "cat"]),
    "written otherwise": (["ant", "bee", "cat"], ["ant", "Bee", " cat"]),
}


@pytest.mark.parametrize("kind", UNEQUAL)
@pytest.mark.parametrize(
    ("form", "caller"),
    [
        pytest.param(form, caller, marks=[pytest.mark.slow] * (caller == "confusion"))
        for form in FORMS
        for caller in CALLERS[form]
    ],
)
def test_other_labels_are_an_error_with_both_sets_and_the_remedy(form, caller, kind):
    labels, own = UNEQUAL[kind]
    y, values = np.array(samples(labels)), values_of(form, len(labels))
    for name in FORMS[form]:
        costs = in_other_order(form, values, own, own, name)
        with pytest.raises(ValueError, match="a text never equals a number.*LabelEncoder") as error:
            CALLERS[form][caller](y, costs)
        for label in (own[1], labels[1]):
            assert repr(label) in str(error.value), (name, str(error.value))


# ------------------------------------------------------------------- classes and decisions

NAMES = ["ant", "bee", "cat"]
Y = np.array(samples(NAMES))
FRAME = pd.DataFrame(MATRIX, NAMES, NAMES)


@pytest.mark.parametrize("model", [network, rule, ensemble])
@pytest.mark.parametrize("form", ["frame", "labelled"])
def test_classes_without_samples_are_named_by_the_costs(model, form):
    names = [*NAMES, "dog"]
    costs = FORMS["cost_matrix"][form](1 - np.eye(4), names[::-1], names[::-1])
    assert model(cost_matrix=costs).fit(X, Y).classes_.tolist() == names
    vectors = pd.DataFrame(1.0 - (Y[:, None] == np.array(names)), columns=names)
    assert model().fit(X, Y, cost=vectors).classes_.tolist() == names


@pytest.mark.parametrize(
    ("costs", "parameters", "classes", "decisions"),
    [
        (FRAME, {}, NAMES, NAMES),
        (FRAME.to_numpy(), {"decisions": NAMES}, NAMES, NAMES),
        (FRAME[NAMES[::-1]].assign(go=1), {}, NAMES, [*NAMES[::-1], "go"]),
        (FRAME.set_axis(["go", "stop", "x"], axis=1), {"decisions": ["x", "go", "stop"]}, NAMES, 0),
        (FRAME[["ant", "bee"]], {"decisions": ["bee", "ant"]}, NAMES, ["bee", "ant"]),
        (LabelledCosts(MATRIX, NAMES, ["go", "stop", "x"]), {}, NAMES, ["go", "stop", "x"]),
        (MATRIX[:, :2], {"decisions": ["go", "stop"]}, NAMES, ["go", "stop"]),
    ],
)
def test_columns_are_classes_or_decisions(costs, parameters, classes, decisions):
    model = rule(cost_matrix=costs, **parameters).fit(X, Y)
    assert model.classes_.tolist() == classes
    assert model.decisions_.tolist() == (decisions or parameters["decisions"])


def test_a_default_index_counts_the_classes():
    costs = pd.DataFrame(np.c_[MATRIX, [1, 1, 1]], columns=["go", "stop", "hold", "refer"])
    assert rule(cost_matrix=costs).fit(X, CODES).decisions_.tolist() == [*costs.columns]
    with pytest.raises(ValueError, match="'ant'.*expected labels among .0, 1, 2."):
        rule(cost_matrix=costs).fit(X, Y)


def test_frames_without_an_index_have_rows_like_their_columns():
    polars = pytest.importorskip("polars")
    costs = polars.from_pandas(FRAME.iloc[::-1, ::-1])
    for given in ({}, {"decisions": NAMES[::-1]}):
        expected = rule(cost_matrix=FRAME, decisions=given.get("decisions")).fit(X, Y)
        np.testing.assert_array_equal(
            rule(cost_matrix=costs, **given).fit(X, Y).cost_matrix_, expected.cost_matrix_
        )
    expected = mean_cost(Y, other(Y), cost_matrix=FRAME)
    assert mean_cost(Y, other(Y), cost=[costs] * N) == pytest.approx(expected)
    others = polars.DataFrame({"go": [1.0, 2, 3], "stop": [3.0, 2, 1]})
    found = rule(cost_matrix=others, decisions=["stop", "go"]).fit(X, Y)
    np.testing.assert_array_equal(found.cost_matrix_, [[3, 1], [2, 2], [1, 3]])
    with pytest.raises(ValueError, match="decisions="):
        rule(cost_matrix=others).fit(X, Y)


@pytest.mark.parametrize(
    "costs",
    [
        FRAME.rename(columns={"cat": "cta"}),
        FRAME[["ant", "bee"]],
        FRAME.set_axis(["go", "stop", "refer"], axis=1),
        FRAME.assign(review=1.0).T,
    ],
)
def test_columns_that_may_be_misspelt_classes_need_decisions(costs):
    with pytest.raises(ValueError, match="If the columns are decisions, name them in decisions="):
        rule(cost_matrix=costs).fit(X, Y)


@pytest.mark.parametrize("header", [["class", "0", "1", "2"], ["0", "1", "2", "ask"]])
def test_classes_as_texts_are_not_decisions_unless_named(header):
    costs = pd.DataFrame(np.ones((3, 4)), columns=header)  # as from a file, with classes 0, 1, 2
    with pytest.raises(ValueError, match="a text never equals a number"):
        rule(cost_matrix=costs).fit(X, CODES)
    assert rule(cost_matrix=costs, decisions=header).fit(X, CODES).decisions_.tolist() == header


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        (["go", "go", "x"], "once"),
        ([], "once"),
        ([["go", "stop"]], "one dimension"),
        (["go", None, "x"], "NaN or None"),
        (["go", "stop"], r"shape \(3, 3\); expected \(3, 2\)"),
    ],
)
def test_each_decision_is_named_once(decisions, message):
    with pytest.raises(ValueError, match=message):
        rule(cost_matrix=MATRIX, decisions=decisions).fit(X, Y)


@pytest.mark.parametrize("model", [network, rule, ensemble])
def test_a_permutation_of_the_classes_warns_once(model):
    order = NAMES[::-1]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = model(cost_matrix=FRAME, decisions=order).fit(X, Y)
        fitted.score(X, Y)
        fitted.decide(X)
    assert [str(w.message) for w in caught if "decisions=" in str(w.message)] == [
        "decisions=['cat', 'bee', 'ant'] names the classes in another order than classes_, "
        "['ant', 'bee', 'cat']. Columns of costs without labels are taken in this order. Leave "
        "decisions= out if they are in the order of classes_."
    ]


def test_columns_of_several_levels_are_refused():
    costs = pd.DataFrame(np.ones((N, 2)), columns=pd.MultiIndex.from_product([["cost"], [0, 1]]))
    for call in (lambda: mean_cost(CODES, CODES, cost=costs), lambda: rule().fit(X, Y, cost=costs)):
        with pytest.raises(ValueError, match="several levels"):
            call()


def test_a_list_in_which_some_costs_have_no_labels_is_refused():
    costs = [FRAME] * (N - 1) + [MATRIX]
    with pytest.raises(ValueError, match="a list in which only some costs have labels"):
        mean_cost(Y, Y, cost=costs)


@pytest.mark.parametrize("model", [network(), rule()])
@pytest.mark.parametrize(
    "parameters", [{"cost_matrix": FRAME}, {"classes": NAMES, "cost_matrix": MATRIX}]
)
def test_labels_that_scikit_learn_has_encoded_are_explained(model, parameters):
    message = "If y was encoded, by a LabelEncoder or by a meta-estimator"
    model = sklearn.base.clone(model).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        VotingClassifier([("a", model)]).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        cross_val_predict(model, X, Y, method="predict_proba", cv=2)
    by_position = sklearn.base.clone(model).set_params(classes=None, cost_matrix=MATRIX)
    VotingClassifier([("a", by_position)]).fit(X, Y)


@pytest.mark.parametrize("make", [list, lambda y: np.array(y, object)])
def test_samples_have_labels_of_one_type(make):
    y = make([0, "a"] * 18)
    for model in (rule(), network()):
        with pytest.raises(ValueError, match="labels of types int, str"):
            model.fit(X, y)


def test_what_the_caller_passes_is_not_written_to():
    classes, decisions = np.array(NAMES), np.array([*NAMES, "go"])
    matrix = np.c_[MATRIX, np.ones(3)]
    rule(cost_matrix=matrix, classes=classes, decisions=decisions).fit(X, Y)
    LabelledCosts(matrix, classes, decisions)
    cost_vectors(Y, MATRIX, classes=classes)
    assert all(array.flags.writeable for array in (classes, decisions, matrix))
    np.testing.assert_array_equal(matrix[:, :3], MATRIX)


# -------------------------------------------------------------------- new costs, decided by


NEW = np.array([[0.0, 9, 1], [1, 0, 9], [9, 1, 0]])


@pytest.mark.parametrize("model", [network, rule, ensemble])
def test_one_matrix_decides_for_all_samples(model):
    fitted = model(cost_matrix=MATRIX).fit(X, Y)
    expected = fitted.predict_proba(X) @ NEW
    np.testing.assert_allclose(fitted.predict_cost(X, cost=NEW), expected)
    np.testing.assert_allclose(fitted.predict_cost(X, np.tile(NEW, (N, 1, 1))), expected)
    np.testing.assert_array_equal(fitted.predict(X, NEW), np.array(NAMES)[expected.argmin(axis=1)])
    np.testing.assert_array_equal(fitted.decide(X, NEW), fitted.predict(X, NEW))
    few = fitted.predict_cost(X[:3], cost=NEW)  # as many samples as classes
    np.testing.assert_allclose(few, expected[:3], rtol=1e-5)
    with pytest.raises(ValueError, match="which presume the true class, belong in score"):
        fitted.predict(X, cost=MATRIX[CODES])
    with pytest.raises(ValueError, match="which presume the true class, belong in score"):
        fitted.predict(X[:3], cost=cost_vectors(Y[:3], FRAME))


@pytest.mark.parametrize("model", [network, rule, ensemble])
@pytest.mark.parametrize("matrix", [MATRIX.copy(), MATRIX.tolist(), FRAME, None])
def test_a_matrix_that_changes_after_the_fit_is_warned_of(model, matrix):
    fitted = model(cost_matrix=matrix).fit(X, Y)
    expected = fitted.predict_cost(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.set_params(cost_matrix=None if matrix is None else np.array(matrix).tolist())
        if matrix is not FRAME:  # whose labels have gone
            fitted.predict(X)
        fitted.set_params(cost_matrix=NEW).predict(X, cost=NEW)
        fitted.predict_proba(X)
    before = dict(vars(fitted))
    for call in (fitted.predict, fitted.predict_cost, fitted.decide):
        with pytest.warns(UserWarning, match=r"cost_matrix has changed.*predict\(X, cost=new\)"):
            call(X)
    assert vars(fitted) == before
    with pytest.warns(UserWarning, match="cost_matrix has changed"):
        np.testing.assert_array_equal(fitted.predict_cost(X), expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.fit(X, Y).predict(X)


def test_a_matrix_that_is_changed_in_place_is_warned_of():
    matrix = MATRIX.copy()
    fitted = rule(cost_matrix=matrix).fit(X, Y)
    matrix[0, 1] = 99
    with pytest.warns(UserWarning, match="cost_matrix has changed"):
        fitted.predict(X)


# ------------------------------------------------------------------- other types of tables


@pytest.mark.parametrize("kind", ["pyarrow.Table", "pyarrow.RecordBatch", "polars.DataFrame"])
@pytest.mark.parametrize("argument", ["cost", "cost_matrix"])
def test_tables_of_other_libraries_are_matched_by_their_columns(kind, argument):
    library, name = kind.split(".")
    library = pytest.importorskip(library)
    make = getattr(library, name)
    make = make if library.__name__ == "polars" else make.from_pydict
    y = np.array(["fraud", "honest"])[np.arange(10) % 2]
    frame = pd.DataFrame([[0.0, 5.0], [100.0, 0.0]], ["honest", "fraud"], ["honest", "fraud"])
    frame = frame.loc[y] if argument == "cost" else frame
    table = make({name: frame[name].to_numpy() for name in frame})
    always = np.full(10, "fraud")
    assert mean_cost(y, always, **{argument: table}) == mean_cost(y, always, **{argument: frame})


def test_the_remedy_for_labels_works_for_every_table():
    """Columns of polars are texts, which never equal numbers."""
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"0": [0.0, 9.0], "1": [1.0, 0.0]})
    with pytest.raises(ValueError, match=r"LabelledCosts\(np.asarray\(costs\), classes, decisions"):
        rule(cost_matrix=table).fit(X, CODES % 2)
    costs = LabelledCosts(np.asarray(table), [0, 1], [0, 1])
    found = rule(cost_matrix=costs).fit(X, CODES % 2).cost_matrix_
    np.testing.assert_array_equal(found, [[0, 1], [9, 0]])


def test_rows_without_names_are_no_classes():
    rows = [pd.Series(row, [0, 1, 2]) for row in MATRIX]
    with pytest.raises(ValueError, match=r"the classes are \[None, None, None\]"):
        mean_cost(CODES, CODES, cost_matrix=rows)


# --------------------------------------------------------------------- subclasses of arrays


class Squares(np.ndarray):
    """Computes otherwise than an array."""

    def __mul__(self, other):
        return np.asarray(self) ** 2

    def sum(self, *args, **kwargs):
        return 0


ARRAYS = {
    "matrix": np.matrix,
    "own": lambda values: np.array(values).view(Squares),
    "masked, with no gap": np.ma.masked_array,
    "list of arrays": list,
}
READERS = {
    "labelled": lambda M: LabelledCosts(M, [0, 1, 2], [0, 1, 2]).values,
    "labelled in a metric": lambda M: mean_cost(
        CODES, other(CODES), cost_matrix=LabelledCosts(M, [0, 1, 2], [0, 1, 2])
    ),
    "assign": lambda M: assign(M, {1: 1}),
    "metric": lambda M: mean_cost(CODES, other(CODES), cost_matrix=M),
    "vectors": lambda M: cost_vectors(CODES, M),
    "rule": lambda M: rule(cost_matrix=M).fit(X, CODES).predict_cost(X),
    "when deciding": lambda M: rule().fit(X, CODES).predict_cost(X, cost=M),
    "prior": lambda P: adjust_prior(P, [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("array", ARRAYS)
def test_subclasses_of_arrays_are_arrays(array, reader):
    values = MATRIX / MATRIX.sum(axis=1, keepdims=True)  # also probabilities
    expected, found = (READERS[reader](M) for M in (values, ARRAYS[array](values)))
    assert type(found) is type(expected)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize("form", [lambda M: M, list], ids=["array", "list of rows"])
@pytest.mark.parametrize("reader", READERS)
def test_masked_values_are_refused_by_every_reader(reader, form):
    masked = np.ma.array(MATRIX / 18, mask=MATRIX == 7)
    with pytest.raises((TypeError, ValueError), match="contains 1 masked values"):
        READERS[reader](form(masked))
