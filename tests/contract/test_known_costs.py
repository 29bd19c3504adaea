"""Cost matrices known for each row: when training, and when deciding too."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import BayesMinimumRiskClassifier, CSAEPretrainedMLP
from auxcst_sklearn.costs import binary_cost_matrices
from auxcst_sklearn.metrics import cost_scorer, mean_cost, savings_score
from auxcst_sklearn.plotting import CostConfusionDisplay
from tests.factories import small_mlp
from tests.seen import held_out

FOLDS = StratifiedKFold(3)
RAISE = {"scoring": cost_scorer, "cv": FOLDS, "error_score": "raise"}


@pytest.fixture(scope="module")
def fraud():
    """Rare positives, whose amounts have nothing to do with the features."""
    X, y = make_classification(240, weights=[0.8], flip_y=0.1, random_state=0)
    amount = np.random.default_rng(0).lognormal(3, 1.5, 240)
    cost = binary_cost_matrices(
        fp_cost=5, tp_cost=5, fn_cost=amount, classes=[0, 1], pos_label=1
    ).values
    return X.astype(np.float32), y, cost


MODELS = {
    "network": lambda: small_mlp(max_epochs=10),
    "stopped network": lambda: small_mlp(max_epochs=10, early_stopping=True),
    "cross-entropy": lambda: small_mlp(max_epochs=10, loss="cross_entropy"),
    "pretrained": lambda: CSAEPretrainedMLP(
        1, 8, loss="bayes_risk", pretrain_epochs=1, max_epochs=5, random_state=0
    ),
    "Bayes": lambda: BayesMinimumRiskClassifier(LogisticRegression()),
}


def paid(y, y_pred, cost):
    return np.mean([c[t, p] for t, p, c in zip(y, y_pred, cost)])


def test_no_cost_network_is_trained(fraud):
    X, y, cost = fraud
    known = small_mlp().fit(X, y, cost=cost)
    learnt = small_mlp().fit(X, y, cost=cost[np.arange(len(y)), y])

    assert not hasattr(known.net_.module_, "costs")
    assert hasattr(learnt.net_.module_, "costs")


@pytest.mark.parametrize("kind", MODELS)
def test_without_costs_the_class_means_decide_with_a_warning(fraud, kind):
    X, y, cost = fraud
    model = MODELS[kind]().fit(X, y, cost=cost)
    means = np.array([cost[y == k][:, k].mean(axis=0) for k in range(2)])

    with pytest.warns(
        UserWarning, match="mean costs of the classes.*search.best_estimator_"
    ) as warned:
        found = model.predict_cost(X)

    assert len(warned) == 1
    assert warned[0].filename == __file__
    np.testing.assert_allclose(found, model.predict_proba(X) @ means, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["network", "Bayes"])
def test_every_method_warns_where_the_user_called(fraud, kind):
    X, y, cost = fraud
    model = MODELS[kind]().fit(X, y, cost=cost)
    row = cost[np.arange(len(y)), y]
    calls = [
        lambda: model.predict(X),
        lambda: model.score(X, y, cost=row),
        lambda: cost_scorer(model, X, y, cost=row),
    ]

    for call in calls:
        with pytest.warns(UserWarning, match="mean costs of the classes") as warned:
            call()
        assert [warning.filename for warning in warned] == [__file__]


@pytest.mark.parametrize("kind", ["network", "Bayes"])
def test_a_score_that_ranks_needs_no_costs(fraud, kind, recwarn):
    X, y, cost = fraud
    model = MODELS[kind]().fit(X, y, cost=cost)
    recwarn.clear()

    auc = get_scorer("roc_auc")(model, X, y)

    assert auc == pytest.approx(roc_auc_score(y, model.predict_proba(X)[:, 1]))
    assert not recwarn.list


@pytest.mark.parametrize("kind", ["network", "Bayes"])
@pytest.mark.parametrize("of_true_class", [False, True])
def test_a_score_without_costs_is_the_accuracy(fraud, kind, of_true_class):
    X, y, cost = fraud
    given = cost[np.arange(len(y)), y] if of_true_class else cost
    model = MODELS[kind]().fit(X, y, cost=given)

    with pytest.warns(UserWarning, match="none reached score, which returns the accuracy"):
        score = model.score(X, y)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert score == (model.predict(X) == y).mean()


def test_a_model_of_class_costs_may_decide_by_known_costs(fraud):
    X, y, cost = fraud
    model = small_mlp(cost_matrix=[[0, 1], [9, 0]], max_epochs=10).fit(X, y)

    expected = np.einsum("nk,nkj->nj", model.predict_proba(X), cost).argmin(axis=1)

    np.testing.assert_array_equal(model.predict(X, cost=cost), expected)


@pytest.mark.parametrize("kind", ["network", "Bayes"])
def test_routing_through_pipelines_and_searches(fraud, kind, routing):
    X, y, cost = fraud
    pipeline = make_pipeline(StandardScaler(), MODELS[kind]())
    by_hand = []
    for train, test in FOLDS.split(X, y):
        model = sklearn.clone(pipeline).fit(X[train], y[train], cost=cost[train])
        by_hand.append(-paid(y[test], model.predict(X[test], cost=cost[test]), cost[test]))

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # every decision gets its costs
        found = cross_validate(pipeline, X, y, params={"cost": cost}, **RAISE)["test_score"]
        grid = {"standardscaler__with_std": [True, False]}
        search = GridSearchCV(pipeline, grid, **RAISE).fit(X, y, cost=cost)

    np.testing.assert_allclose(found, by_hand)
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(by_hand))
    best = search.best_estimator_
    assert best.score(X, y, cost=cost) == pytest.approx(-paid(y, best.predict(X, cost=cost), cost))


def test_without_routing_a_pipeline_hands_costs_to_its_last_step(fraud):
    X, y, cost = fraud
    pipeline = make_pipeline(StandardScaler(), small_mlp())
    pipeline.fit(X, y, costsensitiveauxmlp__cost=cost)

    expected = pipeline[-1].predict(pipeline[:-1].transform(X), cost=cost)

    np.testing.assert_array_equal(pipeline.predict(X, cost=cost), expected)
    assert cost_scorer(pipeline, X, y, cost=cost) == pytest.approx(-paid(y, expected, cost))


def test_classifiers_that_take_no_costs_are_billed_by_them(fraud):
    X, y, cost = fraud
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)

    assert cost_scorer(model, X, y, cost=cost) == pytest.approx(-paid(y, model.predict(X), cost))


def test_metrics_take_the_row_of_the_true_class(fraud):
    _, y, cost = fraud
    y_pred = np.roll(y, 1)
    rows = cost[np.arange(len(y)), y]

    assert mean_cost(y, y_pred, cost=cost) == pytest.approx(paid(y, y_pred, cost))
    assert savings_score(y, y_pred, cost=cost) == savings_score(y, y_pred, cost=rows)


def test_held_out_rows_are_decided_by_their_own_costs(fraud):
    X, y, cost = fraud
    model = small_mlp(max_epochs=4, early_stopping=True, validation_fraction=0.5, patience=9)
    (unseen,) = held_out(model.set_params(temperature=1.0), X, y, cost=cost)

    best = min(model.history_, key=lambda record: record["valid_refinement"])["valid_cost"]

    assert len(unseen) == 120
    chosen = model.predict(X[unseen], cost[unseen])
    assert best == pytest.approx(paid(y[unseen], chosen, cost[unseen]), rel=1e-5)


def test_rows_of_weight_zero_leave_with_their_matrices(fraud):
    X, y, cost = fraud
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    keep = weight > 0

    weighted = small_mlp().fit(X, y, cost=cost, sample_weight=weight)
    plain = small_mlp().fit(X[keep], y[keep], cost=cost[keep])

    np.testing.assert_allclose(
        weighted.predict_cost(X, cost), plain.predict_cost(X, cost), rtol=1e-5
    )


def test_the_currency_does_not_matter(fraud):
    X, y, cost = fraud
    model, yen = small_mlp().fit(X, y, cost=cost), small_mlp().fit(X, y, cost=150 * cost)

    np.testing.assert_array_equal(model.predict(X, cost), yen.predict(X, 150 * cost))


def test_losses_without_probabilities_cannot_decide_by_known_costs(fraud):
    X, y, cost = fraud
    model = small_mlp(loss="one_sided").fit(X, y, cost=cost)

    assert not hasattr(model, "predict_proba")
    with pytest.raises(ValueError, match="loss='one_sided' has none"):
        model.predict(X, cost=cost)


def test_losses_without_probabilities_stop_by_their_own_decisions(fraud):
    X, y, cost = fraud
    model = small_mlp(loss="one_sided", early_stopping=True).fit(X, y, cost=cost)

    vectors = small_mlp(loss="one_sided", early_stopping=True)
    vectors.fit(X, y, cost=cost[np.arange(len(y)), y])
    assert [r["valid_cost"] for r in model.history_] == [r["valid_cost"] for r in vectors.history_]


def test_a_search_and_a_display_decide_by_known_costs():
    X, y = make_classification(300, 6, n_informative=2, flip_y=0.3, random_state=0)
    cost = np.zeros((300, 2, 2))
    cost[:, 0, 1], cost[:, 1, 0] = 1, np.random.RandomState(0).lognormal(1, 1.5, 300)
    model = BayesMinimumRiskClassifier(LogisticRegression())
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(model, {"estimator__C": [1.0]}, scoring=cost_scorer, cv=2)
        search.fit(X, y, cost=cost)
        expected = model.fit(X, y, cost=cost).score(X, y, cost=cost)

        np.testing.assert_allclose(cost_scorer(search, X, y, cost=cost), expected)
        assert search.score(X, y, cost=cost) == cost_scorer(search, X, y, cost=cost)
        within = make_pipeline(StandardScaler(), search).fit(X, y, cost=cost)
        around = make_pipeline(StandardScaler(), model).fit(X, y, cost=cost)
        expected = cost_scorer(around, X, y, cost=cost)
        np.testing.assert_allclose(cost_scorer(FrozenEstimator(around), X, y, cost=cost), expected)
        np.testing.assert_allclose(cost_scorer(within, X, y, cost=cost), expected)
        assert abs(expected + paid(y, around.predict(X), cost)) > 0.01
        expected = model.fit(X, y, cost=cost).score(X, y, cost=cost)
    plt = pytest.importorskip("matplotlib.pyplot")
    display = CostConfusionDisplay.from_estimator(model, X, y, cost=cost)
    np.testing.assert_allclose(display.confusion_matrix.sum() / 300, -expected)
    plt.close("all")
