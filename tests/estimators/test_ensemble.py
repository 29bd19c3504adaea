"""The ensemble of classifiers: weights, folds, costs, parameters, files."""

import json
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    PredefinedSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from auxcst_sklearn import CostSensitiveAuxMLP, CostSensitiveEnsembleClassifier
from auxcst_sklearn._training.geometric_mean import geometric_mean, mean_weights, shift_to_networks
from auxcst_sklearn._training.temperature import log_clipped
from auxcst_sklearn.metrics import cost_scorer
from tests.factories import small_stack, table_boosting

MATRIX = np.array([[0.0, 1, 5], [2, 0, 1], [10, 1, 0]])


@pytest.fixture(scope="module")
def data():
    return make_classification(
        150, 6, n_informative=4, n_classes=3, n_clusters_per_class=1, flip_y=0.2, random_state=0
    )


def members(**network):
    return [
        ("logistic", LogisticRegression()),
        ("network", small_stack(n_networks=2, validation_fraction=0.5, **network)),
    ]


def ensemble(estimators=None, **parameters):
    estimators = members() if estimators is None else estimators
    return CostSensitiveEnsembleClassifier(estimators, **{"cv": 2, "random_state": 0, **parameters})


# --- weights ----------------------------------------------------------------------------------


def draw_probabilities(n_members, n=200, n_classes=3, seed=0):
    """Labels, and members that know more or less of them."""
    rng = np.random.default_rng(seed)
    label = rng.integers(n_classes, size=n)
    known = np.linspace(0.2, 1.5, n_members)[:, np.newaxis, np.newaxis] * np.eye(n_classes)[label]
    return known + rng.normal(size=(n_members, n, n_classes)), label


def numpy_loss(weights, logs, label, sample_weight=None):
    product = np.exp(sum(w * log for w, log in zip(weights, logs)))
    p = product / product.sum(axis=1, keepdims=True)
    prior = 10 / len(label) * max(sum(weights) - 1, 0) ** 2 + 1e-5 * sum(weights)
    return np.average(-np.log(p[np.arange(len(label)), label]), weights=sample_weight) + prior


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_minimise_the_log_loss_and_its_prior(weighted):
    logs, label = draw_probabilities(3)
    weight = np.random.default_rng(1).uniform(size=len(label)) if weighted else None

    found = mean_weights(logs, label, weight)

    bounds = [(0, None)] * 3
    options = {"x0": [0.3] * 3, "method": "SLSQP", "bounds": bounds, "tol": 1e-12}
    expected = minimize(numpy_loss, args=(logs, label, weight), **options)
    assert numpy_loss(found, logs, label, weight) == pytest.approx(expected.fun, abs=1e-6)
    assert (found >= 0).all()


def test_weights_hold_a_temperature():
    logs, label = draw_probabilities(1, n=2000)
    sure = 4 * logs - np.log(np.exp(4 * logs).sum(axis=2, keepdims=True))

    assert mean_weights(sure, label) == pytest.approx(mean_weights(logs, label) / 4, rel=0.02)


def test_members_that_agree_share_the_weight_of_one():
    logs, label = draw_probabilities(1)

    both = mean_weights(np.concatenate([logs, logs]), label)

    assert both.sum() == pytest.approx(mean_weights(logs, label).sum(), rel=1e-3)
    assert both[0] == pytest.approx(both[1])


@pytest.mark.parametrize(("right", "least", "most"), [(0.9, 1, 2), (0.2, 0, 1)])
def test_a_member_that_is_always_right_or_wrong_is_neither_made_sure_nor_left_out(
    right, least, most
):
    label = np.arange(100) % 2
    logs = np.log(np.where(np.eye(2)[label] == 1, right, 1 - right))[np.newaxis]

    assert least < mean_weights(logs, label) < most


@pytest.mark.parametrize("noise", [0.0, 1.5])
def test_weights_move_towards_networks_as_far_as_the_mean_of_their_errors_pays(noise):
    """Five networks that err on their own, and a member whose errors all rows have in common."""
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=4000)
    logits = np.eye(3)[label] + rng.normal(size=(4000, 3))
    of_networks = logits + noise * rng.normal(size=(5, 4000, 3))
    p = np.exp(of_networks - of_networks.max(axis=2, keepdims=True))
    p /= p.sum(axis=2, keepdims=True)
    other = np.log(geometric_mean(np.ones(1), logits[np.newaxis] + rng.normal(size=(4000, 3))))
    network = [log_clipped(p[0]), log_clipped(p[1]), log_clipped(p[:2].mean(axis=0))]
    logs = np.stack([[one, other] for one in network])
    weights = mean_weights(logs[0], label)

    found = shift_to_networks(weights, 0, 5, logs, label, np.ones(4000))

    def loss_of_the_mean(w):
        both = np.stack([log_clipped(p.mean(axis=0)), other])
        return log_loss(label, geometric_mean(w, both))

    assert (found[0] > weights[0]) == (noise > 0)
    assert loss_of_the_mean(found) <= loss_of_the_mean(weights)
    few = logs[:, :, :49], label[:49], np.ones(49)
    np.testing.assert_array_equal(shift_to_networks(weights, 0, 5, *few), weights)


# --- the ensemble ---------------------------------------------------------------------------------


def test_probabilities_are_the_weighted_product_of_those_of_the_members(data):
    X, y = data
    model = ensemble(members(max_epochs=30)).fit(X, y)

    parts = [model.named_estimators_[name].predict_proba(X) for name, _ in members()]
    parts = np.clip(parts, 1e-6, 1)
    product = np.prod([p**w for p, w in zip(parts, model.estimator_weights_)], axis=0)

    assert (model.estimator_weights_ > 0).all()
    expected = product / product.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-5)


def test_members_see_the_same_folds_and_networks_are_fitted_once(data):
    X, y = data
    X = np.column_stack([X, np.arange(len(y))])  # a number for each row
    Rows.seen = []
    network = small_stack(n_networks=5, max_epochs=1)

    model = ensemble([("rows", Rows()), ("network", network)], cv=5).fit(X, y)

    assert len(Rows.seen) == 5
    held_out = [set(range(len(y))) - rows for rows in Rows.seen]
    assert sorted(row for fold in held_out for row in fold) == list(range(len(y)))
    assert model.named_estimators_["network"].n_networks == 6  # two hold out the first fold


@pytest.mark.parametrize("n_classes", [3, 12])
def test_held_out_probabilities_of_networks(n_classes):
    """Of one network, of a second one, of the mean of both, and with a tenth of the others."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % n_classes
    X = np.eye(n_classes)[y] + rng.normal(size=(120, n_classes))
    folds = list(KFold(5, shuffle=True, random_state=0).split(X))
    network = small_stack(n_networks=6)

    single, second, both, mixed = network._fit_on_folds(X, y, folds)

    net, rows = network.net_, torch.as_tensor(network._rows_of(X))
    with torch.no_grad():
        p = net.probabilities(net.module_(rows[np.newaxis])).double().numpy()
    for i, (_, unseen) in enumerate(folds):
        own = p[:, unseen]
        np.testing.assert_allclose(single[unseen], own[i], atol=1e-6)
        seen = np.delete(log_clipped(own[:5]), i, axis=0).mean(axis=0)
        product = np.exp(0.9 * log_clipped(own[i]) + 0.1 * seen)
        product /= product.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(mixed[unseen], product, atol=1e-5)
    unseen = folds[0][1]
    pair = p[[0, 5]][:, unseen]
    geometric = np.sqrt(pair.prod(axis=0))
    expected = pair.mean(axis=0) if n_classes < 10 else geometric
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(second[unseen], pair[1], atol=1e-6)
    np.testing.assert_allclose(both[unseen], expected, atol=1e-6)
    assert np.isnan(second[folds[1][1]]).all()


FOLDS = {
    "three group folds": GroupKFold(3),
    "last groups only": PredefinedSplit(np.repeat([-1, -1, -1, 2, 3], 120)),
    "drawn groups": GroupShuffleSplit(4, test_size=0.25, random_state=0),
}


@pytest.mark.parametrize("cv", FOLDS.values(), ids=FOLDS)
@pytest.mark.parametrize("n_networks", [1, 5])
def test_networks_are_weighed_by_the_folds_of_the_caller(cv, n_networks):
    """Rows of a group are almost copies with one random label, which other groups do not tell."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 10)
    X = rng.normal(size=(60, 4))[group] + rng.normal(0, 0.05, (600, 4))
    y = rng.integers(0, 2, 60)[group]
    network = CostSensitiveAuxMLP(2, 32, n_networks=n_networks, max_epochs=20)

    folds = list(cv.split(X, y, group))
    model = ensemble([("network", network), ("prior", DummyClassifier())], cv=folds).fit(X, y)

    assert model.held_out_losses_[0] > 0.5


class Rows(ClassifierMixin, BaseEstimator):
    """Keeps the numbers of the rows that it learns from, the last column."""

    seen: list = []

    def fit(self, X, y):
        Rows.seen.append(set(X[:, -1].astype(int).tolist()))
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


def test_held_out_probabilities_of_the_other_members_are_those_of_cross_validation(data):
    X, y = data
    folds = list(StratifiedKFold(3, shuffle=True, random_state=1).split(X, y))

    model = ensemble([("a", LogisticRegression()), ("b", GaussianNB())], cv=folds).fit(X, y)

    for loss, one in zip(model.held_out_losses_, (LogisticRegression(), GaussianNB())):
        p = cross_val_predict(one, X, y, cv=folds, method="predict_proba")
        p_true = np.clip(p[np.arange(len(y)), y], 1e-6, 1)
        assert loss == pytest.approx(-np.log(p_true).mean(), rel=1e-5)


def test_a_useless_member_is_dropped_and_takes_no_time(data):
    X, y = data

    model = ensemble([("dummy", DummyClassifier(strategy="uniform")), *members()]).fit(X, y)

    assert model.estimator_weights_[0] == 0
    assert model.named_estimators_["dummy"] == "drop"
    assert len(model.estimators_) == np.count_nonzero(model.estimator_weights_)


def test_an_ensemble_is_no_worse_than_its_network_alone():
    """On clusters the mean of networks is far better than the single networks that are weighed."""
    clusters = {"n_classes": 4, "n_clusters_per_class": 3, "class_sep": 0.8}
    X, y = make_classification(4000, 20, n_informative=12, random_state=1, **clusters)
    network = CostSensitiveAuxMLP(2, 64, max_epochs=30)
    boosting = HistGradientBoostingClassifier(max_iter=30)

    model = ensemble([("network", network), ("boosting", boosting)]).fit(X[:1000], y[:1000])

    alone = log_loss(y[1000:], model.named_estimators_["network"].predict_proba(X[1000:]))
    assert log_loss(y[1000:], model.predict_proba(X[1000:])) < 1.005 * alone


def test_a_class_that_is_missing_in_a_fold():
    rng = np.random.default_rng(0)
    y = np.r_[np.arange(100) % 2, 2]  # one row of class 2
    X = rng.normal(size=(101, 3)) + y[:, np.newaxis]

    folds = list(KFold(5, shuffle=True, random_state=0).split(X))
    model = ensemble(cv=folds).fit(X, y)

    p = cross_val_predict(LogisticRegression(), X, y == 1, cv=folds, method="predict_proba")
    assert model.predict_proba(X).shape == (101, 3)
    assert np.isfinite(model.predict_proba(X)).all()
    # The row whose class no member has seen has no part in losses and weights.
    assert model.held_out_losses_[0] == pytest.approx(log_loss(y[:100], p[:100]), abs=0.05)


@pytest.fixture(scope="module")
def late():
    """Rows in time, of which the last ones have a new class, far away; and such rows."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    y[300:][rng.random(100) < 0.3] = 2
    X[:, 0] += 2 * (y == 1)
    X[y == 2] += [0, 5, 0]
    folds = [(np.arange(end), np.arange(end, end + 100)) for end in (100, 200, 300)]
    folds.append((np.arange(100, 400), np.arange(100)))  # the only fit that knows the class
    return X, y, folds, rng.normal(size=(50, 3)) + [0, 5, 0]


@pytest.mark.filterwarnings("ignore:3 of 4 folds")
@pytest.mark.parametrize("early_stopping", [True, False])  # False: a network for each fold
def test_only_fits_that_have_seen_all_classes_predict(late, early_stopping):
    X, y, folds, new = late
    network = CostSensitiveAuxMLP(1, 32, max_epochs=40, early_stopping=early_stopping)
    logistic = LogisticRegression()

    model = ensemble([("a", logistic)], cv=folds).fit(X, y)
    other = ensemble([("network", network)], cv=folds).fit(X, y, cost=1 - np.eye(3)[y])

    seen, _ = folds[-1]
    found = model.named_estimators_["a"].predict_proba(new)
    np.testing.assert_allclose(found, logistic.fit(X[seen], y[seen]).predict_proba(new))
    assert other.predict_proba(new)[:, 2].mean() > 0.8


def test_folds_that_lack_a_class_are_left_out_with_a_warning_or_an_error(late):
    X, y, folds, _ = late
    members = [("a", GaussianNB())]

    with pytest.warns(UserWarning, match="3 of 4 folds, whose training rows lack a class"):
        ensemble(members, cv=folds).fit(X, y)
    with pytest.raises(ValueError, match=r"each fold lack a class, the rows of the first"):
        ensemble(members, cv=folds[:3]).fit(X, y)


@pytest.mark.parametrize("grouped", [False, True])
def test_random_folds_train_on_the_only_rows_of_a_class(late, grouped):
    """A class of one row, or of one customer."""
    X, y, _, _ = late
    few = np.flatnonzero(y == 2)[: 10 if grouped else 1]
    rows = np.r_[np.flatnonzero(y < 2)[:200], few]
    groups = np.r_[np.arange(200) // 4, np.full(len(few), 50)] if grouped else None

    model = ensemble([("a", LogisticRegression())], cv=5).fit(X[rows], y[rows], groups=groups)

    assert all(2 in one.classes_ for one in model.estimators_[0].estimators)


def test_groups_are_in_one_fold_each(data):
    X, y = data
    groups = np.arange(len(y)) // 10
    X = np.column_stack([X, np.arange(len(y))])
    Rows.seen = []

    ensemble([("rows", Rows())], cv=3).fit(X, y, groups=groups)
    ensemble([("rows", Rows())], cv=GroupKFold(3)).fit(X, y, groups=groups)

    assert len(Rows.seen) == 6
    for rows in Rows.seen:
        seen = set(groups[list(rows)])
        assert not seen & set(np.delete(groups, list(rows)))


def test_boosting_is_stopped_by_its_fold(data):
    X, y = data
    boosting = table_boosting(early_stopping=True, max_iter=200, random_state=0)

    model = ensemble([("boosting", boosting)]).fit(X, y)

    for one in model.estimators_[0].estimators:
        assert one.n_iter_ < 200


# --- rows -------------------------------------------------------------------------------------


def weekdays(table):
    return table.apply(lambda column: column.dt.day_name())


def of_dates(columns):
    names = make_pipeline(FunctionTransformer(weekdays), OneHotEncoder())
    return make_pipeline(make_column_transformer((names, columns)), LogisticRegression())


@pytest.fixture(scope="module")
def dates():
    rng = np.random.default_rng(0)
    opened = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 365, 300), "D")
    X = pd.DataFrame({"opened": opened, "age": rng.normal(50, 15, 300)})
    return X, (X["opened"].dt.day_of_week >= 5).astype(int)


@pytest.mark.parametrize("columns", [["opened"], make_column_selector(dtype_include="datetime")])
def test_members_get_dates_as_dates(dates, columns):
    X, y = dates

    model = ensemble([("a", of_dates(columns))]).fit(X[:200], y[:200])

    np.testing.assert_array_equal(model.predict(X[200:]), y[200:])


def test_the_default_members_refuse_dates_with_a_recipe(dates):
    X, y = dates
    model = CostSensitiveEnsembleClassifier(random_state=0)
    with pytest.raises(ValueError, match=r"Column 'opened' of X contains times .*DatetimeEncoder"):
        model.fit(X, y)


def test_members_get_numbers_in_lists_as_numbers():
    rng = np.random.default_rng(0)
    X = [[city, int(n)] for city, n in zip(rng.choice(["a", "b"], 300), rng.integers(0, 3, 300))]
    y = np.array([(city == "a") ^ (n == 1) for city, n in X], dtype=int)
    trees = make_pipeline(
        OneHotEncoder(categories=[["a", "b"], [0, 1, 2]], handle_unknown="ignore"),
        RandomForestClassifier(10, random_state=0),
    )

    model = ensemble([("a", trees)]).fit(X[:200], y[:200])

    np.testing.assert_array_equal(model.predict(X[200:]), y[200:])


# --- costs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["vectors", "repeated"])
def test_costs_of_samples_count_by_their_class_means(data, kind):
    X, y = data
    scale = np.random.default_rng(0).uniform(0.5, 2, (len(y), 1)) if kind == "vectors" else 1
    cost = scale * MATRIX[y]
    estimators = None
    if kind == "vectors":  # and no member that learns them
        estimators = [("logistic", LogisticRegression()), ("bayes", GaussianNB())]

    model = ensemble(estimators).fit(X, y, cost=cost)

    used = np.stack([cost[y == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(model.cost_matrix_, used)
    np.testing.assert_allclose(model.predict_cost(X), model.predict_proba(X) @ used)


@pytest.mark.parametrize("early_stopping", [True, False])  # False: a network for each fold
def test_networks_learn_costs_that_differ_within_a_class(data, early_stopping, monkeypatch):
    X, y = data
    amount = np.exp(X[:, :1])
    cost = np.where(y[:, np.newaxis] > 0, amount, 1) * MATRIX[y] + 0.5

    model = ensemble(members(early_stopping=early_stopping, max_epochs=60)).fit(X, y, cost=cost)

    assert len(model.cost_estimators_) == (1 if early_stopping else 2)
    p, estimates = model.predict_proba(X), []
    for network in model.cost_estimators_:
        by_class = [network.predict_cost(X, prior=dict(zip(range(3), e))) for e in np.eye(3)]
        estimates.append(np.stack(by_class, axis=1))  # the rows of each sample's matrix
    expected = np.einsum("nk,nkj->nj", p, np.mean(estimates, axis=0))
    np.testing.assert_allclose(model.predict_cost(X), expected, rtol=1e-6)
    monkeypatch.setattr("auxcst_sklearn._training.net.LARGEST_TABLE", 100)
    np.testing.assert_allclose(model.predict_cost(X), expected, rtol=1e-6)

    def paid(estimate):
        return cost[np.arange(len(y)), estimate.argmin(axis=1)].mean()

    assert paid(model.predict_cost(X)) < 0.95 * paid(p @ model.cost_matrix_)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_cost(X), model.predict_cost(X))


def test_rows_without_a_weight_count_as_absent(data):
    X, y = data
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    kept = weight > 0

    weighted = ensemble().fit(X, y, sample_weight=weight)
    without = ensemble().fit(X[kept], y[kept], sample_weight=weight[kept])

    np.testing.assert_allclose(weighted.predict_proba(X), without.predict_proba(X))


@pytest.mark.parametrize("early_stopping", [True, False])
def test_a_fold_whose_rows_have_no_weight_is_left_out(data, early_stopping):
    X, y = data
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    weight = np.ones(len(y))
    weight[folds[0][1]] = 0
    network = small_stack(n_networks=2, early_stopping=early_stopping)
    members = [("bayes", GaussianNB()), ("network", network)]

    with pytest.warns(UserWarning, match="1 of 3 folds.* hold out no rows"):
        found = ensemble(members, cv=folds).fit(X, y, sample_weight=weight)

    expected = ensemble(members, cv=folds[1:]).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))


# --- tables, parameters, files ----------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    city = rng.choice(["here", "there", None], 200)
    y = np.where(x + (city == "here") + 0.3 * rng.normal(size=200) > 0.3, "yes", "no")
    return pd.DataFrame({"x": np.where(rng.random(200) < 0.1, np.nan, x), "city": city}), y


def test_the_default_members_take_tables_as_they_are(table):
    X, y = table
    model = CostSensitiveEnsembleClassifier(random_state=0, cost_matrix=[[0, 1], [5, 0]])
    model.set_params(network__max_epochs=3, network__width=8, boosting__max_iter=20)

    model.fit(X, y)

    assert (model.predict_proba(X).argmax(axis=1) == (y == "yes")).mean() > 0.7
    other = X.assign(city="elsewhere")
    assert np.isfinite(model.predict_proba(other)).all()
    assert list(model.feature_names_in_) == ["x", "city"]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    skops = pytest.importorskip("skops.io")
    files = skops.dumps(model)
    copy = skops.loads(files, trusted=skops.get_untrusted_types(data=files))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_boosting_learns_from_strings(table):
    X, y = table
    known = X.assign(city=X["city"].astype("category"))
    parameters = {"max_iter": 10, "min_samples_leaf": 5, "random_state": 0}

    found = table_boosting(**parameters).fit(X, y)

    expected = HistGradientBoostingClassifier(**parameters).fit(known, y)
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(known))
    np.testing.assert_array_equal(found.predict(X), expected.predict(known))
    *_, last = found.staged_predict_proba(X)
    np.testing.assert_array_equal(last, found.predict_proba(X))


def test_boosting_keeps_its_parameters_during_a_fit(table):
    X, y = table
    noted = []

    def score(model, X, y):
        noted.append(model.get_params()["categorical_features"])
        return 0.0

    table_boosting(max_iter=2, early_stopping=True, scoring=score).fit(X, y)

    assert set(noted) == {"from_dtype"}


def test_a_row_of_a_table_gets_alone_what_it_gets_among_others(table):
    X, y = table
    X = X.assign(size=np.where(X["x"] > 0, "large", "small"), n=np.arange(200))
    boosting = table_boosting(max_iter=10, min_samples_leaf=5, random_state=0)
    model = ensemble([("boosting", boosting)]).fit(X, y)
    X = X.assign(city=X["city"].where(X["x"] > -1, "elsewhere"))

    together = model.predict_proba(pd.concat([X, X]))[:200]

    alone = [model.predict_proba(X[i : i + 1]) for i in range(30)]
    np.testing.assert_array_equal(np.concatenate(alone), together[:30])
    of_each = [one.predict_proba(X) for one in model.estimators_[0].estimators]
    np.testing.assert_array_equal(model.estimators_[0].predict_proba(X), sum(of_each) / 2)


def test_boosting_takes_more_categories_than_scikit_learn():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": [f"{i:03}" for i in range(300)] * 2, "x": rng.normal(size=600)})
    y = (X["x"] > 0).to_numpy()

    model = table_boosting(max_iter=5).fit(X, y)

    assert (model.predict(X) == y).mean() > 0.9


def test_parameters_of_members(data):
    X, y = data
    model = ensemble()

    model.set_params(network__alpha=0.7, logistic=GaussianNB(), cv=3)

    assert model.get_params()["network__alpha"] == 0.7
    assert isinstance(dict(model.estimators)["logistic"], GaussianNB)
    assert model.cv == 3
    assert clone(model).get_params()["network__alpha"] == 0.7
    assert CostSensitiveEnsembleClassifier().get_params()["network__alpha"] == 0.2
    with pytest.raises(ValueError, match="Invalid parameter 'tree'"):
        model.set_params(tree__depth=3)
    left_out = ensemble().set_params(network="drop").fit(X, y)
    assert left_out.estimator_weights_.shape == (1,)


def test_a_search_over_a_member(data, routing):
    X, y = data
    estimators = [(name, member.set_fit_request(sample_weight=True)) for name, member in members()]
    grid = {"network__alpha": [0, 0.5]}
    search = GridSearchCV(ensemble(estimators), grid, scoring=cost_scorer, cv=2)

    search.fit(X, y, cost=MATRIX[y])

    assert search.best_score_ < 0
    assert search.best_estimator_.cost_matrix_.shape == (3, 3)


def test_metadata_reach_the_members_that_request_them(data, routing):
    X, y = data
    weight = np.random.default_rng(0).uniform(0.1, 1, len(y))
    asking = [
        ("a", LogisticRegression().set_fit_request(sample_weight=True)),
        ("b", LogisticRegression().set_fit_request(sample_weight=False)),
    ]
    folds = list(StratifiedKFold(2).split(X, y))

    model = ensemble(asking, cv=folds).fit(X, y, sample_weight=weight)

    seen = folds[0][0]
    for name, w in (("a", weight[seen]), ("b", None)):
        if (member := model.named_estimators_[name]) != "drop":
            expected = LogisticRegression().fit(X[seen], y[seen], w).coef_
            np.testing.assert_allclose(member.estimators[0].coef_, expected, atol=1e-6)
    assert model.held_out_losses_[0] != model.held_out_losses_[1]


def test_fits_at_the_same_time_change_nothing(data):
    X, y = data
    one = ensemble().fit(X, y)

    with joblib.parallel_config("threading", n_jobs=2):
        two = ensemble().fit(X, y)

    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), rtol=1e-5)


def test_a_line_for_each_member(data, capsys):
    X, y = data

    model = ensemble(verbose=1).fit(X, y)

    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["logistic", "network"]
    assert f"held-out log loss {model.held_out_losses_[0]:.4f}" in lines[0]


# --- errors -----------------------------------------------------------------------------------


class Broken(ClassifierMixin, BaseEstimator):
    """Fails in `fit`, or predicts NaN."""

    def __init__(self, error=None):
        self.error = error

    def fit(self, X, y):
        if self.error is not None:
            raise self.error()
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), np.nan)


class PrunedError(Exception):
    """A signal to the caller."""


FAILURES = {
    "value": (lambda: ValueError("out of order"), ValueError, "ensemble: out of order"),
    "type": (lambda: TypeError("out of order"), TypeError, "ensemble: out of order"),
    "decoding": (lambda: UnicodeDecodeError("utf-8", b"?", 0, 1, "no text"), ValueError, "no text"),
    "json": (lambda: json.JSONDecodeError("no rules", "{", 1), ValueError, "no rules"),
    "signal": (lambda: PrunedError("early"), PrunedError, "early"),
    "NaN": (None, ValueError, "probabilities from 0 to 1"),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_a_member_that_fails_names_itself_and_changes_nothing(data, kind):
    error, raised, reason = FAILURES[kind]
    X, y = data
    model = ensemble().fit(X, y)
    before = model.predict_proba(X)
    kept = vars(model).copy()

    model.set_params(estimators=[("broken", Broken(error)), *members()])
    with pytest.raises(raised, match=reason) as found:
        model.fit(X, y)
    assert type(found.value) is raised
    place = [str(found.value), *getattr(found.value, "__notes__", [])]
    assert any("In the member 'broken' of the ensemble" in one for one in place)

    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert set(vars(model)) == set(kept)


@pytest.mark.parametrize(
    ("estimators", "message"),
    [
        ([], "names no member"),
        ([("a", GaussianNB()), ("a", GaussianNB())], "not unique"),
        ([("cv", GaussianNB())], "conflict with constructor arguments"),
        ([("a__b", GaussianNB())], "must not contain __"),
        ([("a", StandardScaler())], "has no predict_proba"),
    ],
)
def test_members_are_checked(data, estimators, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ensemble(estimators).fit(*data)


def test_arguments_of_members_need_routing(data):
    X, y = data
    with pytest.raises(TypeError, match="only metadata routing"):
        ensemble().fit(X, y, check_input=True)
    with pytest.raises(TypeError, match="'rows'.*takes no sample_weight"):
        ensemble([("rows", Rows())]).fit(X, y, sample_weight=np.ones(len(y)))
    with pytest.raises(ValueError, match="150 samples, but 200 folds.* or by cv"):
        ensemble(cv=200).fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        ensemble().fit(X, y, sample_weight=(y == 0).astype(float))


def test_random_states(data):
    X, y = data
    forest = RandomForestClassifier(5)

    found = [
        ensemble([("forest", forest)], random_state=seed).fit(X, y).predict_proba(X)
        for seed in (0, 0, 1)
    ]

    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()
    assert not sklearn.get_config()["enable_metadata_routing"]


# --- many classes -----------------------------------------------------------------------------


def many_classes(n_classes, n=900):
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    X = np.eye(n_classes)[y] + 0.4 * rng.normal(size=(n, n_classes))
    return X, y


@pytest.mark.parametrize(("n_classes", "second"), [(29, "boosting"), (30, "logistic")])
def test_logistic_regression_replaces_boosting_for_many_classes(n_classes, second):
    X, y = many_classes(n_classes)
    model = CostSensitiveEnsembleClassifier(cv=2, random_state=0)
    model.set_params(network__max_epochs=3, boosting__max_iter=3).fit(X, y)

    assert {"network", second} >= set(model.named_estimators_)
    assert model.estimator_weights_.shape == (2,)


def test_logistic_regression_takes_tables_as_they_are():
    X, y = many_classes(30)
    table = pd.DataFrame(X[:, :5].copy(), columns=list("abcde"))
    table["text"] = np.array([f"word {k % 10}" for k in y])
    table["days"] = y
    table.loc[::7, "a"] = np.nan
    logistic = CostSensitiveEnsembleClassifier().get_params()["logistic"]
    model, rows = ensemble([("logistic", logistic)]), sparse.csr_matrix(X)

    p = model.fit(table, y).predict_proba(table)
    assert (p.argmax(axis=1) == y).mean() > 0.8
    weighted = model.fit(table, y, np.arange(900) % 2 + 1.0).predict_proba(table)
    assert not np.array_equal(weighted, p)
    dense = model.fit(X, y).predict(X)
    assert (model.fit(rows, y).predict(rows) == dense).mean() > 0.8
