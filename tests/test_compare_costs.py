"""compare_costs against the same comparison by hand."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    TunedThresholdClassifierCV,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from auxcst_sklearn.costs import cost_matrices
from auxcst_sklearn.decisions import decide
from auxcst_sklearn.metrics import (
    compare_costs,
    cost_difference,
    cost_scorer,
    make_cost_scorer,
    mean_cost,
)
from tests.factories import small_mlp, small_stack

MATRIX = pd.DataFrame(
    [[0, 1, 5, 2], [2, 0, 1, 2], [9, 3, 0, 2]], index=list("abc"), columns=[*"abc", "ask"]
)
FOLDS = StratifiedKFold(5)


@pytest.fixture(scope="module")
def claims():
    """Rows of frauds with amounts, a string column, and an index of their own."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(240, 2)), columns=["x", "z"], index=np.arange(240) + 1000)
    X["amount"] = rng.lognormal(4, 1, 240)
    X["country"] = rng.choice(["NL", "FR"], 240)
    fraud = rng.random(240) < 1 / (1 + np.exp(1 - 2 * X["x"]))
    y = pd.Series(np.where(fraud, "fraud", "ok"), index=X.index)
    terms = {
        "ok": {"pay": 0, "call": 5, "investigate": 20},
        "fraud": {"pay": X["amount"], "call": 5 + 0.4 * X["amount"], "investigate": 20},
    }
    return X, y, cost_matrices(terms)


@pytest.fixture(scope="module")
def letters():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 3))
    return X, np.array(list("abc"))[(X + rng.normal(size=(150, 3))).argmax(axis=1)]


def encoded(model):
    to_numbers = make_column_transformer((OneHotEncoder(), ["country"]), remainder="passthrough")
    return make_pipeline(to_numbers, StandardScaler(), model)


class MostProbable(BayesMinimumRiskClassifier):
    """The cheapest decision if the most probable class is certain."""

    def predict_proba(self, X):
        return np.eye(2)[super().predict_proba(X).argmax(axis=1)]


def by_hand(model, X, y, C, folds):
    """Decisions by expected costs, and the rows that were tested."""
    decided, tested = [], []
    for train, test in folds:
        ready = clone(model).fit(X.iloc[train], y.iloc[train], cost=C[train])
        decided.append(ready.decide(X.iloc[test], C[test]))
        tested.append(test)
    return np.concatenate(decided), np.concatenate(tested)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cv", "n_jobs"), [(5, None), (5, 2), (TimeSeriesSplit(3), None), (FOLDS, None)]
)
def test_costs_of_rows_decide_as_by_hand(claims, cv, n_jobs):
    X, y, C = claims
    classifier = encoded(LogisticRegression())
    models = {"plain": classifier, "network": small_mlp()}

    table = compare_costs(models, X, y, cost=C, cv=cv, n_jobs=n_jobs)

    constants = ["always pay", "always call", "always investigate"]
    assert list(table.index) == ["plain", "network", "most probable class", *constants]
    money = ["cost", "difference", "low", "high"]
    shares = ["share of pay", "share of call", "share of investigate"]
    assert list(table.columns) == [*money, *shares, "fit_seconds", "predict_seconds"]
    folds = list((FOLDS if cv == 5 else cv).split(X, y))
    plain, rows = by_hand(BayesMinimumRiskClassifier(classifier), X, y, C, folds)
    network, _ = by_hand(small_mlp(), X, y, C, folds)
    ignorant, _ = by_hand(MostProbable(classifier), X, y, C, folds)
    truth = {"y_true": y.iloc[rows], "cost": C[rows]}
    by_name = {"plain": plain, "network": network, "most probable class": ignorant}
    for name, decided in {**by_name, "always pay": ["pay"] * len(rows)}.items():
        assert table.loc[name, "cost"] == pytest.approx(mean_cost(y_pred=decided, **truth))
        shares = [np.mean(np.asarray(decided) == one) for one in C.decisions]
        np.testing.assert_allclose(table.loc[name].iloc[4:7].astype(float), shares)
    difference = cost_difference(y_pred_a=network, y_pred_b=plain, **truth)
    assert tuple(table.loc["network", ["difference", "low", "high"]]) == pytest.approx(difference)
    assert table.loc["plain", ["difference", "low", "high"]].isna().all()
    assert (table.loc[["plain", "network"], "fit_seconds"] > 0).all()


def test_a_matrix_names_classes_and_decisions(letters):
    X, y = letters
    models = {"Bayes": GaussianNB(), "wrapped": BayesMinimumRiskClassifier(GaussianNB())}
    models["own"] = clone(models["wrapped"]).set_params(cost_matrix=MATRIX[list("abc")])

    table = compare_costs(models, X, y, cost_matrix=MATRIX, baseline="most probable class")

    p = cross_val_predict(GaussianNB(), X, y, cv=5, method="predict_proba")
    decided = MATRIX.columns.to_numpy()[(p @ MATRIX.to_numpy()).argmin(axis=1)]
    probable = np.array(list("abc"))[p.argmax(axis=1)]
    expected = mean_cost(y, decided, cost_matrix=MATRIX)
    np.testing.assert_allclose(table.loc[["Bayes", "wrapped"], "cost"], expected)
    found = table.loc["Bayes", ["difference", "low", "high"]]
    assert tuple(found) == pytest.approx(cost_difference(y, decided, probable, cost_matrix=MATRIX))
    of_classes = MATRIX.columns.to_numpy()[(p @ MATRIX.to_numpy()[:, :3]).argmin(axis=1)]
    assert table.loc["own", "cost"] == mean_cost(y, of_classes, cost_matrix=MATRIX)
    assert table.loc["always ask", "cost"] == 2


def test_cost_vectors_decide_by_the_means_of_the_training_rows(letters):
    X, y = letters
    rng = np.random.default_rng(0)
    cost = MATRIX.loc[y, list("abc")].to_numpy() * rng.uniform(0.5, 2, size=(150, 1))

    table = compare_costs({"Bayes": GaussianNB(), "network": small_mlp()}, X, y, cost=cost)

    decided = np.empty(150, dtype="U1")
    for train, test in FOLDS.split(X, y):
        model = BayesMinimumRiskClassifier(GaussianNB()).fit(X[train], y[train], cost=cost[train])
        decided[test] = model.predict(X[test])
    assert table.loc["Bayes", "cost"] == pytest.approx(mean_cost(y, decided, cost=cost))
    assert set(table.index) >= {"network", "most probable class", "always c"}


def test_arrays_take_the_names_of_decisions(letters):
    X, y = letters
    C = np.tile(MATRIX.to_numpy(), (150, 1, 1))
    models = {"Bayes": GaussianNB(), "network": small_mlp()}

    found = compare_costs(models, X, y, cost=C, decisions=[*"abc", "ask"])

    assert "share of ask" in found
    expected = compare_costs({"Bayes": GaussianNB()}, X, y, cost_matrix=MATRIX)
    np.testing.assert_allclose(found.loc["Bayes", "cost"], expected.loc["Bayes", "cost"])


def test_a_class_that_the_oldest_rows_lack(letters):
    X, y = letters
    order = np.argsort(y == "c", kind="stable")
    models = {"Bayes": GaussianNB(), "network": small_mlp()}

    table = compare_costs(models, X[order], y[order], cost_matrix=MATRIX, cv=TimeSeriesSplit(3))

    rows = order[np.concatenate([test for _, test in TimeSeriesSplit(3).split(X)])]
    constant = MATRIX.loc[y[rows], "a"].mean()
    assert table.loc["always a", "cost"] == pytest.approx(constant)


def test_groups_are_split_by_none_and_counted_as_one(letters):
    X, y = letters
    X, y, groups = np.repeat(X, 3, axis=0), np.repeat(y, 3), np.repeat(np.arange(150), 3)
    models = {"Bayes": GaussianNB(), "logistic": LogisticRegression()}
    arguments = {"cost_matrix": MATRIX, "groups": groups}

    table = compare_costs(models, X, y, cv=GroupKFold(5), **arguments)

    decided = []
    for model in models.values():
        p = cross_val_predict(model, X, y, cv=GroupKFold(5), groups=groups, method="predict_proba")
        decided.append(MATRIX.columns.to_numpy()[(p @ MATRIX.to_numpy()).argmin(axis=1)])
    expected = cost_difference(y, decided[1], decided[0], **arguments)
    assert tuple(table.loc["logistic", ["difference", "low", "high"]]) == pytest.approx(expected)
    whole = compare_costs({"memory": Memory()}, X, y, **arguments)
    assert whole.loc["memory", "share of b"] == 1  # no row is known from the training


class Memory(ClassifierMixin, BaseEstimator):
    """Probability 1 for the class of rows that it has seen, and equal ones otherwise."""

    def fit(self, X, y):
        self.classes_, label = np.unique(y, return_inverse=True)
        self.seen_ = dict(zip(map(tuple, X.tolist()), label.tolist()))
        return self

    def predict_proba(self, X):
        p = np.full((len(X), len(self.classes_)), 1 / len(self.classes_))
        for i, row in enumerate(map(tuple, X.tolist())):
            if row in self.seen_:
                p[i] = np.eye(len(self.classes_))[self.seen_[row]]
        return p


def test_rows_that_are_tested_twice_count_once_in_the_interval(letters):
    X, y = letters
    models = {"Bayes": GaussianNB(), "logistic": LogisticRegression()}
    folds = list(FOLDS.split(X, y))

    one, two = (compare_costs(models, X, y, cost_matrix=MATRIX, cv=cv) for cv in (5, 2 * folds))

    pd.testing.assert_frame_equal(one.iloc[:, :-2], two.iloc[:, :-2])


@pytest.mark.parametrize("routed", [False, True])
def test_costs_reach_pipelines_and_searches(claims, routed):
    X, y, C = claims
    rule = BayesMinimumRiskClassifier(LogisticRegression())
    name = "bayesminimumriskclassifier__estimator__C"
    options = {"scoring": cost_scorer if routed else "neg_log_loss", "error_score": "raise"}
    search = GridSearchCV(encoded(rule), {name: [1.0]}, cv=3, **options)
    models = {"network": encoded(small_mlp()), "search": search}

    with config_context(enable_metadata_routing=routed):
        table = compare_costs(models, X, y, cost=C, cv=3)

    expected = compare_costs({"plain": encoded(LogisticRegression())}, X, y, cost=C, cv=3)
    assert table.loc["search", "cost"] == pytest.approx(expected.loc["plain", "cost"])
    assert table.loc["network", "cost"] < table.loc["always pay", "cost"]


def test_thresholds_and_fitted_models_decide_themselves(letters):
    X, y = letters[0], np.where(letters[1] == "a", "yes", "no")
    matrix = pd.DataFrame([[0, 1], [4, 0]], index=["no", "yes"], columns=["no", "yes"])
    tuned = TunedThresholdClassifierCV(GaussianNB(), scoring=make_cost_scorer(cost_matrix=matrix))
    fitted = BayesMinimumRiskClassifier(GaussianNB(), cost_matrix=matrix).fit(X, y)

    models = {"tuned": tuned, "fitted": FrozenEstimator(fitted)}
    table = compare_costs(models, X, y, cost_matrix=matrix, cv=3)

    decided = cross_val_predict(tuned, X, y, cv=3)
    assert table.loc["tuned", "cost"] == mean_cost(y, decided, cost_matrix=matrix)
    assert table.loc["fitted", "cost"] == mean_cost(y, fitted.predict(X), cost_matrix=matrix)


OWN = {
    "rule": lambda: BayesMinimumRiskClassifier(GaussianNB(), cost_matrix=FIXED),
    "pipeline": lambda: make_pipeline(StandardScaler(), OWN["rule"]()),
    "network": lambda: small_mlp(cost_matrix=FIXED, random_state=0),
    "ensemble": lambda: CostSensitiveEnsembleClassifier(
        [("a", GaussianNB())], cost_matrix=FIXED, random_state=0
    ),
    "search": lambda: GridSearchCV(OWN["rule"](), {"calibration": [None]}, scoring="neg_log_loss"),
}
FIXED = [[0, 5], [40, 5]]


@pytest.fixture(scope="module")
def alerts():
    """Rows of customers, costs of alerts and of missed amounts, and one fold."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    y = (X[:, 0] + rng.normal(size=1000) > 1).astype(int)
    C = np.zeros((1000, 2, 2))
    C[:, :, 1], C[:, 1, 0] = 5, rng.lognormal(3, 1.5, 1000)
    return X, y, C, np.sort(rng.integers(0, 100, 1000)), (np.arange(200), np.arange(200, 1000))


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("frozen", [False, True])
def test_a_cost_matrix_of_its_own_decides(alerts, kind, frozen):
    X, y, C, _, (old, new) = alerts
    fitted = OWN[kind]().fit(X[old], y[old])
    model = FrozenEstimator(fitted) if frozen else OWN[kind]()

    table = compare_costs({"own": model}, X, y, cost=C, cv=[(old, new)])

    assert table.loc["own", "cost"] == mean_cost(y[new], fitted.predict(X[new]), cost=C[new])


class Grouped(GaussianNB):
    """Needs the groups of its rows."""

    def fit(self, X, y, groups=None):
        assert len(groups) == len(y)
        return super().fit(X, y)


RULE = BayesMinimumRiskClassifier(small_stack())
GROUPED = {
    "rule": RULE,
    "pipelines": make_pipeline(
        StandardScaler(), BayesMinimumRiskClassifier(make_pipeline(StandardScaler(), small_stack()))
    ),
    "calibration": clone(RULE).set_params(calibration="sigmoid", cv=2),
    "calibrated": BayesMinimumRiskClassifier(CalibratedClassifierCV(small_stack(), cv=2)),
}


@pytest.mark.parametrize("kind", GROUPED)
def test_groups_reach_the_classifier_of_a_rule(alerts, kind):
    X, y, C, customer, (old, new) = alerts
    inner = "bayesminimumriskclassifier__costsensitiveauxmlp__groups"
    model, name = GROUPED[kind], inner if kind == "pipelines" else "groups"

    found = compare_costs({"a": model}, X, y, cost=C, groups=customer, cv=[(old, new)])

    decided = []
    for params in ({name: customer[old]}, {}):
        ready = clone(model).fit(X[old], y[old], **params)
        decided.append(decide(ready, X[new], C[new]))
    assert found.loc["a", "cost"] == mean_cost(y[new], decided[0], cost=C[new])
    assert found.loc["a", "cost"] != mean_cost(y[new], decided[1], cost=C[new])


def test_a_fold_without_groups_is_left_out():
    """Rounding decides ties of scikit-learn's stratified folds, which then leaves one empty."""
    y = np.repeat([1, 0, 1], [5, 4, 5])
    groups = np.repeat(np.arange(5), [5, 2, 2, 3, 2])
    X = np.random.default_rng(0).normal(size=(14, 2)) + y[:, np.newaxis]
    found = compare_costs(
        {"a": GaussianNB()}, X, y, cost_matrix=[[0, 1], [1, 0]], groups=groups, cv=5
    )
    assert found.loc["always 0", "cost"] == np.mean(y == 1)


def test_groups_reach_a_fit_that_takes_them(alerts):
    X, y, C, customer, _ = alerts
    plain, grouped = (
        compare_costs({"a": model}, X, y, cost=C, groups=customer, cv=GroupKFold(3))
        for model in (GaussianNB(), Grouped())
    )

    assert plain.loc["a", "cost"] == grouped.loc["a", "cost"]


@pytest.mark.parametrize("kind", ["bsr", "coo", "csc", "dia", "dok", "lil"])
def test_sparse_rows_of_all_formats(letters, kind):
    X, y = letters
    models = {"logistic": LogisticRegression(), "network": small_mlp(max_epochs=2)}
    models["rule"] = BayesMinimumRiskClassifier(LogisticRegression(), calibration="sigmoid")

    found, expected = (
        compare_costs(models, rows, y, cost_matrix=MATRIX, cv=3)
        for rows in (sparse.csr_matrix(X).asformat(kind), sparse.csr_matrix(X))
    )

    pd.testing.assert_frame_equal(found.iloc[:, :-2], expected.iloc[:, :-2])


def test_without_pandas_there_are_arrays(letters, monkeypatch):
    X, y = letters
    monkeypatch.delitem(sys.modules, "pandas")
    monkeypatch.setattr(sys, "meta_path", [WithoutPandas, *sys.meta_path])

    table = compare_costs({"Bayes": GaussianNB()}, X, y, cost_matrix=1 - np.eye(3))

    assert table.index == ["Bayes", "most probable class", "always a", "always b", "always c"]
    np.testing.assert_array_equal(table["cost"][0], table.cost[1])


class WithoutPandas:
    @staticmethod
    def find_spec(name, *_):
        if name == "pandas":
            raise ImportError(name)


def test_names_are_any_labels_and_folds_may_be_masks(letters):
    X, y = letters
    models = {1: GaussianNB(), 2: GaussianNB(var_smoothing=0.5)}
    first = np.arange(150) < 100
    whole = [(np.flatnonzero(first), np.flatnonzero(~first))]

    tables = [
        compare_costs(models, X, y, cost_matrix=MATRIX, cv=cv, baseline=2)
        for cv in ([(first, ~first)], whole)
    ]

    assert list(tables[0].index[:2]) == [1, 2]
    assert np.isnan(tables[0].loc[2, "difference"])
    pd.testing.assert_frame_equal(*(table.iloc[:, :7] for table in tables))


def test_nothing_of_the_caller_is_changed(claims):
    X, y, C = claims
    model = small_mlp()
    before = model.get_params(), X.copy(), np.array(C)

    compare_costs({"network": model}, X, y, cost=C, cv=3)

    assert model.get_params() == before[0]
    assert not hasattr(model, "classes_")
    pd.testing.assert_frame_equal(X, before[1])
    np.testing.assert_array_equal(C, before[2])


WITHOUT_REFIT = GridSearchCV(
    BayesMinimumRiskClassifier(GaussianNB()), {"calibration": [None]}, cv=2, refit=False
)


class Undecided(GaussianNB):
    def fit(self, X, y):
        raise UnicodeDecodeError("utf-8", b"?", 0, 1, "no text")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"models": [GaussianNB()]}, TypeError, "expected a mapping of names to classifiers"),
        ({"models": {}}, TypeError, "expected a mapping of names to classifiers"),
        ({"models": {"svc": LinearSVC()}}, TypeError, r"models\['svc'\].*calibration='sigmoid'"),
        ({"baseline": "Bayse"}, ValueError, "baseline='Bayse'; expected one of .'Bayes', 'most"),
        (
            {"models": {"net": small_mlp(loss="one_sided")}, "baseline": "most probable class"},
            ValueError,
            r"models\['net'\] has no predict_proba",
        ),
        ({"models": {"always a": GaussianNB()}}, ValueError, r"names \['always a'\], of rows that"),
        ({"models": {"Bayes": GaussianNB}}, TypeError, r"models\['Bayes'\]=.*expected a class"),
        ({"models": {"Bayes": "NB"}}, TypeError, r"models\['Bayes'\]='NB'; expected a classifier"),
        ({"models": {"search": WITHOUT_REFIT}}, AttributeError, "'predict'"),
        ({"models": {"text": Undecided()}}, ValueError, r"models\['text'\].* no text"),
        ({"cost_matrix": None}, ValueError, "neither cost nor cost_matrix"),
        ({"groups": [1, 2]}, ValueError, "groups has 2 values"),
        ({"y": ["a"] * 149 + [None]}, ValueError, "y contains NaN or None for 1 of 150 rows"),
    ],
)
def test_mistakes_are_named(letters, arguments, error, message):
    given = {"models": {"Bayes": GaussianNB()}, "X": letters[0], "y": letters[1]}
    with pytest.raises(error, match=message):
        compare_costs(**{**given, "cost_matrix": MATRIX, **arguments})


def test_a_table_of_many_decisions_stays_small():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 40
    X = np.eye(40)[y] + 0.3 * rng.normal(size=(400, 40))
    decisions = [*(f"intent {i}" for i in range(40)), "ask"]
    costs = {"cost_matrix": np.c_[1.0 - np.eye(40), np.full(40, 0.3)], "decisions": decisions}
    models = {"rule": BayesMinimumRiskClassifier(LogisticRegression(C=100, max_iter=500))}
    given = {"models": models, "X": X, "y": np.array(decisions)[y], **costs, "cv": 2}
    table = compare_costs(**given)

    assert list(table.index) == ["rule", "most probable class", "always ask"]
    assert table.shape[1] == 6
    assert table.loc["always ask", "cost"] == pytest.approx(0.3)
    assert table.attrs["shares"]["always ask"]["ask"] == 1
    shares = table.attrs["shares"]["rule"]
    assert len(shares) == 41
    assert sum(shares.values()) == pytest.approx(1)
    kept = compare_costs(**given, baseline="always intent 3")
    assert list(kept.index)[2:] == ["always intent 3", "always ask"]
