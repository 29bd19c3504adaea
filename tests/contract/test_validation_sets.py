"""Rows held out by the caller, and groups of rows held out by `fit` itself."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import CSAEPretrainedMLP
from auxcst_sklearn.metrics import mean_cost
from tests.factories import small_cnn, small_mlp
from tests.seen import AS_THEY_ARE, Seen, held_out

STOPPING = {"early_stopping": True, "patience": 2, "max_epochs": 40, "learning_rate": 0.02}


@pytest.fixture
def halves(problem):
    """Rows and labels to train on, and the other arguments of `fit`."""
    X, y, cost = problem
    given = {"cost": cost[:40], "X_val": X[40:], "y_val": y[40:], "cost_val": cost[40:]}
    return X[:40], y[:40], given


MAKERS = {
    "MLP": lambda: small_mlp(**STOPPING, temperature=1.0),
    "pretrained": lambda: CSAEPretrainedMLP(1, 8, pretrain_epochs=1, random_state=0, **STOPPING),
}


def cost_when_stopped(model):
    """The held-out cost of the epoch that is kept."""
    by = "valid_refinement" if "valid_refinement" in model.history_[0] else "valid_cost"
    return min(model.history_, key=lambda record: record[by])["valid_cost"]


@pytest.mark.parametrize("kind", MAKERS)
def test_the_validation_set_stops_the_training_at_its_best(halves, kind):
    X, y, given = halves

    model = MAKERS[kind]().fit(X, y, **given)

    assert len(model.history_) < 40
    paid = mean_cost(given["y_val"], model.predict(given["X_val"]), cost=given["cost_val"])
    assert cost_when_stopped(model) == pytest.approx(paid)


def test_all_rows_are_trained_on(halves):
    X, y, given = halves
    one_epoch = {"max_epochs": 1, "batch_size": 40, "temperature": 1.0}

    plain = small_mlp(**one_epoch).fit(X, y, cost=given["cost"])
    stopped = small_mlp(**one_epoch, early_stopping=True).fit(X, y, **given)

    np.testing.assert_allclose(stopped.predict_cost(X), plain.predict_cost(X), rtol=1e-5)


def test_the_validation_set_serves_the_temperature(halves):
    X, y, given = halves
    given["y_val"] = np.roll(given["y_val"], 1)
    given["cost_val"] = np.roll(given["cost_val"], 1, axis=0)

    model = small_mlp(max_epochs=30).fit(X, y, **given)

    assert model.temperature_ > 1
    assert len(model.history_) == 30


def test_weights_of_the_validation_set_count(halves):
    X, y, given = halves
    weight = np.arange(20) % 3
    repeated = {name: np.repeat(given[name], weight, axis=0) for name in given if "_val" in name}

    found, expected = (
        [record["valid_cost"] for record in small_mlp(**STOPPING).fit(X, y, **more).history_]
        for more in ({**given, "sample_weight_val": weight}, {**given, **repeated})
    )

    assert found == pytest.approx(expected)


def test_images(problem):
    X = np.random.default_rng(0).random((60, 8, 8))

    model = small_cnn(**STOPPING).fit(X[:40], problem.y[:40], X_val=X[40:], y_val=problem.y[40:])

    assert "valid_cost" in model.history_[0]


def test_costs_of_a_matrix_bill_the_validation_set_too(problem):
    X, X_val, y, y_val = problem.X[:40], problem.X[40:], problem.y[:40], problem.y[40:]
    matrix = [[0, 1, 9], [1, 0, 1], [2, 2, 0]]

    model = small_mlp(**STOPPING, cost_matrix=matrix, temperature=1.0)
    model.fit(X, y, X_val=X_val, y_val=y_val)

    paid = mean_cost(y_val, model.predict(X_val), cost_matrix=matrix)
    assert cost_when_stopped(model) == pytest.approx(paid)


@pytest.mark.parametrize(
    ("leave_out", "message"),
    [
        (["X_val"], "X_val must be passed too"),
        (["y_val"], "y_val must be passed too"),
        (["cost_val"], "cost_val must be passed too"),
        (["cost"], "cost must be passed too"),
        (["X_val", "y_val"], "X_val and y_val must be passed too"),
    ],
)
def test_parts_that_are_missing_are_named(halves, leave_out, message):
    X, y, given = halves

    with pytest.raises(ValueError, match=message):
        small_mlp().fit(X, y, **{k: v for k, v in given.items() if k not in leave_out})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y_val": np.full(20, 7)}, r"In the validation set .*: y contains labels that are not"),
        ({"X_val": np.zeros((20, 3))}, r"In the validation set \(X_val, .*: X has 3 features"),
        ({"X_val": np.zeros((19, 4))}, "inconsistent numbers of samples"),
        ({"cost_val": np.zeros((19, 3))}, "In the validation set .* cost has 19 rows"),
        ({"cost_val": np.zeros((20, 3, 3))}, "cost_val has 3 dimensions, but cost has 2"),
        ({"cost": np.zeros((40, 3, 3))}, "cost_val has 2 dimensions, but cost has 3"),
    ],
)
def test_mistakes_are_named_and_leave_the_network_as_it_was(halves, changed, message):
    X, y, given = halves
    model = small_mlp().fit(X, y, cost=given["cost"])
    before = model.predict_cost(X)

    with pytest.raises(ValueError, match=message):
        model.fit(X, y, **{**given, **changed})

    np.testing.assert_array_equal(model.predict_cost(X), before)


def test_validation_losses_are_recorded_without_early_stopping_and_change_nothing(problem):
    X, X_val, y, y_val = problem.X[:40], problem.X[40:], problem.y[:40], problem.y[40:]
    for parameters in ({"loss": "squared"}, {"temperature": 1.0}):
        plain = small_mlp(**parameters).fit(X, y)
        watched = small_mlp(**parameters).fit(X, y, X_val=X_val, y_val=y_val)

        np.testing.assert_array_equal(watched.predict_cost(X_val), plain.predict_cost(X_val))
        paid = mean_cost(y_val, watched.predict(X_val), cost_matrix=1 - np.eye(3))
        assert watched.history_[-1]["valid_cost"] == pytest.approx(paid)
        assert all(np.isfinite(record["valid_loss"]) for record in watched.history_)
        assert "valid_loss" not in plain.history_[0]


def test_a_pipeline_transforms_the_validation_set(halves, routing):
    X, y, given = halves
    model = small_mlp(**STOPPING, standardize=False)
    steps = [("scale", StandardScaler()), ("network", model)]

    pipeline = Pipeline(steps, transform_input=["X_val"]).fit(X, y, **given)

    scaler = StandardScaler().fit(X)
    given["X_val"] = scaler.transform(given["X_val"])
    by_hand = clone(model).fit(scaler.transform(X), y, **given)
    assert [r["valid_cost"] for r in pipeline[-1].history_] == pytest.approx(
        [r["valid_cost"] for r in by_hand.history_]
    )


# ------------------------------------------------------------------------- groups


def test_held_out_groups_are_whole(problem):
    X, label = problem.X, np.arange(60) % 2
    groups = np.repeat(np.arange(12), [1, 9, 3, 3, 3, 3, 3, 5, 5, 5, 10, 10])
    model, seen = small_mlp(early_stopping=True, validation_fraction=0.25), Seen(X)

    model.set_params(callbacks=[seen], **AS_THEY_ARE).fit(X, label, groups=groups)

    (unseen,), trained = seen.held_out, np.unique(np.hstack(seen.trained))
    assert sorted([*trained, *unseen]) == list(range(60))
    assert len(np.unique(groups[unseen])) == 3
    assert not set(groups[trained]) & set(groups[unseen])


def test_groups_of_samples_without_weight_are_not_held_out(problem):
    X, y, _ = problem
    groups, weight = np.repeat(np.arange(10), 6), np.r_[np.zeros(6), np.ones(54)]

    for fraction, n_groups in ((0.5, 4), (0.9, 8)):  # of nine groups
        model = small_mlp(early_stopping=True, validation_fraction=fraction)
        (unseen,) = held_out(model, X, y, groups=groups, sample_weight=weight)
        assert len(unseen) == 6 * n_groups
        assert 0 not in groups[unseen]
        assert len(set(groups[unseen])) == n_groups


def test_labels_of_dtype_object_that_are_numbers(halves):
    X, y, given = halves
    model = small_mlp(**STOPPING)
    expected = model.fit(X, y, **given).predict_cost(X)
    given["y_val"] = given["y_val"].astype(object)
    np.testing.assert_array_equal(model.fit(X, y, **given).predict_cost(X), expected)


def test_one_group_cannot_be_split(problem):
    with pytest.raises(ValueError, match="1 different values of groups"):
        small_mlp(early_stopping=True).fit(problem.X, problem.y, groups=np.ones(60))


def test_groups_are_routed_to_folds_and_fits(problem, routing):
    X, y, _ = problem
    groups = np.repeat(np.arange(10), 6)
    model = make_pipeline(StandardScaler(), small_mlp(early_stopping=True))

    scores = cross_validate(
        model, X, y, cv=GroupKFold(3), params={"groups": groups}, error_score="raise"
    )

    assert len(scores["test_score"]) == 3
