import pickle

import numpy as np
import pytest
from sklearn.datasets import make_classification
from skorch.callbacks import Callback

from tests.factories import small_mlp

MATRIX = np.array([[0.0, 1, 5], [2, 0, 1], [1, 8, 0]])


@pytest.fixture(scope="module")
def data():
    return make_classification(200, n_classes=3, n_informative=5, random_state=0)


# ------------------------------------------------------ going on with training


def test_partial_fit_trains_for_one_epoch_and_fit_begins_anew(data):
    X, y = data
    estimator = small_mlp()

    for epoch in (1, 2, 3):
        before = getattr(estimator, "history_", [])
        estimator.partial_fit(X, y, classes=[0, 1, 2], cost=MATRIX[y])
        assert [record["epoch"] for record in estimator.history_] == list(range(1, epoch + 1))
        assert len(before) == epoch - 1  # as it was told

    losses = [record["train_loss"] for record in estimator.history_]
    assert losses == sorted(losses, reverse=True)
    assert len(estimator.fit(X, y).history_) == 3


def test_partial_fit_of_parts_that_lack_classes(data):
    X, y = data
    estimator = small_mlp(classes=[0, 1, 2], cost_matrix=MATRIX)

    for k in (0, 1, 2):
        estimator.partial_fit(X[y == k], y[y == k])

    assert estimator.classes_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(estimator.class_prior_, np.bincount(y) / len(y), rtol=1e-15)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_labels_are_named(data, missing):
    X, y = data
    y = y.astype(str).astype(object)
    labels = np.where(np.arange(len(y)) == 3, missing, y)
    with pytest.raises(ValueError, match="Input y contains NaN .* first in row 3"):
        small_mlp().fit(X, labels)
    with pytest.raises(ValueError, match="Input y_val contains NaN .* first in row 3"):
        small_mlp(early_stopping=True).fit(X, y, X_val=X, y_val=labels)


@pytest.mark.parametrize("loss", ["squared", "cross_entropy", "bayes_risk"])
def test_the_unit_of_a_stream_follows_its_costs_and_estimates_stay_in_currency(data, loss):
    X, y = data
    cost = MATRIX[y] * np.exp(X[:, :1]) + 3
    estimator = small_mlp(loss=loss).partial_fit(X[:50], y[:50], classes=[0, 1, 2], cost=cost[:50])
    before, scale = estimator.predict_cost(X), estimator.net_.statistics

    # Of almost no weight, so that the weights of the network hardly move.
    estimator.set_params(learning_rate=1e-12)
    estimator.net_.initialize_optimizer()
    for group in estimator.net_.optimizer_.param_groups:
        group["lr"] = group["initial_lr"] = 1e-12
    estimator.partial_fit(X[50:], y[50:], cost=1000 * cost[50:])

    assert estimator.net_.statistics.unit > 100 * scale.unit
    if loss == "squared":  # others decide by class means, which follow the costs
        np.testing.assert_allclose(estimator.predict_cost(X), before, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_a_first_block_may_be_narrow_of_one_class_or_tiny(data):
    X, y = data
    scaled = (X * np.logspace(-1, 1, X.shape[1])).astype(np.float32)
    cost = MATRIX[y] * np.exp(X[:, :1])
    starts = {
        "tiny": np.arange(2),
        "one class": np.flatnonzero(y == 0)[:20],
        "narrow": np.argsort(np.abs(X).max(axis=1))[:20],
        "shuffled": np.arange(20),
    }

    def paid(first):
        model = small_mlp(width=32, learning_rate=1e-2, classes=[0, 1, 2])
        model.partial_fit(scaled[first], y[first], cost=cost[first])
        for _ in range(20):
            model.partial_fit(scaled, y, cost=cost)
        np.testing.assert_allclose(model.input_scale_, scaled.std(axis=0), rtol=0.35)
        return -model.score(scaled, y, cost=cost)

    costs = {name: paid(first) for name, first in starts.items()}

    assert max(costs.values()) < costs["shuffled"] + 0.1 * cost.mean(axis=0).min()


def start_and_go_on(data, warm, **given):
    """A model after its first call, and the method that continues its training."""
    model = small_mlp(warm_start=warm, classes=[0, 1, 2])
    go_on = model.fit if warm else model.partial_fit
    go_on(*data, **given)
    return model, go_on


@pytest.mark.parametrize("warm", [True, False])
def test_costs_per_sample_need_a_cost_network_from_the_first_call_on(data, warm):
    X, y = data
    cost = MATRIX[y] * np.exp(X[:, :1])
    model, go_on = start_and_go_on(data, warm)
    before = model.predict_cost(X)

    message = "has no cost network for costs that" if warm else "first block had no cost"
    changed = "loss changed since the first call" if warm else message
    for loss, expected in (("bayes_risk", message), ("squared", changed)):
        model.set_params(loss=loss)
        with pytest.raises(ValueError, match=expected):
            go_on(X, y, cost=cost)

    np.testing.assert_array_equal(model.predict_cost(X), before)
    model.set_params(warm_start=False).fit(X, y, cost=cost)
    squared = small_mlp(loss="squared", warm_start=True).fit(X, y)
    assert len(squared.fit(X, y, cost=cost).history_) == 6
    two_rows = small_mlp().partial_fit(X[:2], y[:2], classes=[0, 1, 2], cost=MATRIX[y[:2]])
    assert two_rows.partial_fit(X, y, cost=cost).net_.criterion_.loss.n_cost_outputs == 6


@pytest.mark.parametrize("warm", [True, False])
def test_costs_of_classes_do_not_follow_costs_per_sample(data, warm):
    X, y = data
    _, go_on = start_and_go_on(data, warm, cost=MATRIX[y] * np.exp(X[:, :1]))

    with pytest.raises(ValueError, match="costs of classes do not need" if warm else "has no cost"):
        go_on(X, y)

    go_on(X, y, cost=MATRIX[y])  # costs per sample that happen to repeat those of classes


def test_a_warm_start_takes_costs_of_another_currency(data):
    X, y = data
    cost = MATRIX[y] * np.exp(X[:, :1])
    for loss in ("bayes_risk", "squared"):
        model = small_mlp(loss=loss, warm_start=True, max_epochs=5).fit(X, y, cost=cost)
        other = small_mlp(loss=loss, warm_start=True, max_epochs=5).fit(X, y, cost=cost)

        model.fit(X, y, cost=cost)
        other.fit(X, y, cost=1000 * cost)

        np.testing.assert_allclose(
            other.predict_cost(X), 1000 * model.predict_cost(X), rtol=1e-3, atol=1e-2
        )


def test_a_warm_start_takes_another_temperature(data):
    model = small_mlp(warm_start=True, temperature=3.0).fit(*data)
    for given in (1.5, 1.0):
        model.set_params(temperature=given).fit(*data)
        assert model.temperature_ == model.net_.temperature == given


@pytest.mark.parametrize("by_class", [True, False])
def test_a_warm_start_forgets_the_costs_of_before(data, by_class):
    X, y = data
    model = small_mlp(warm_start=True, cost_matrix=MATRIX if by_class else None)
    model.fit(X, y, cost=None if by_class else MATRIX[y])
    first, new = model.net_, MATRIX.T + 1 - np.eye(3)

    model.set_params(cost_matrix=new if by_class else None)
    model.fit(X, y, cost=None if by_class else new[y])

    statistics = model.net_.statistics
    np.testing.assert_allclose(statistics.to_currency(statistics.class_mean), new, atol=1e-12)
    assert len(model.history_) == 6
    assert len(first.history) == 3  # a copy has gone on


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_training_does_not_go_on_with_other_classes(data, method):
    model = small_mlp(warm_start=True, classes=[0, 1, 2]).fit(*data)
    getattr(model, method)(*data)
    before = model.predict_cost(data[0])

    model.set_params(classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match=r"classes=\[0, 1, 2, 3\] differs from the classes_"):
        getattr(model, method)(*data)

    np.testing.assert_array_equal(model.predict_cost(data[0]), before)


class Count(Callback):
    def __init__(self):
        self.epochs = 0

    def on_epoch_end(self, net, **kwargs):
        self.epochs += 1


@pytest.mark.parametrize("pickled", [False, True])
def test_a_warm_start_calls_the_callbacks_of_now(data, pickled):
    first, second = Count(), Count()
    model = small_mlp(warm_start=True, callbacks=[first]).fit(*data)
    if pickled:
        model = pickle.loads(pickle.dumps(model))

    model.set_params(callbacks=[second]).fit(*data)
    model.fit(*data)
    model.set_params(callbacks=None).fit(*data)

    assert (first.epochs, second.epochs) == (3, 6)
    assert len(model.history_) == 12


# -------------------------------------------------------------- sample weights


def test_rows_of_weight_zero_change_nothing(data):
    X, y = data
    weight = np.ones(200)
    weight[150:] = 0
    noise = np.vstack([X[:150], 1e3 * X[150:]])

    weighted = small_mlp(cost_matrix=MATRIX).fit(noise, y, sample_weight=weight)

    plain = small_mlp(cost_matrix=MATRIX).fit(X[:150], y[:150])
    np.testing.assert_allclose(weighted.predict_cost(X), plain.predict_cost(X), rtol=1e-5)


def test_weights_and_repeated_rows_agree_in_a_full_batch(data):
    X, y = data
    weight = np.random.RandomState(0).randint(1, 4, size=200)
    full = {"batch_size": 10_000, "cost_matrix": MATRIX, "max_epochs": 20, "dropout": 0.0}

    weighted = small_mlp(**full).fit(X, y, sample_weight=weight)

    repeated = small_mlp(**full).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(
        weighted.predict_cost(X), repeated.predict_cost(X), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("n_dimensions", [2, 3])
@pytest.mark.parametrize("fitted", [True, False])
def test_all_blocks_have_costs_or_none_has(data, n_dimensions, fitted):
    X, y = data
    cost = MATRIX[y] if n_dimensions == 2 else np.tile(MATRIX, (len(y), 1, 1))
    for first, second in [(cost, None), (None, cost), (cost, cost)]:
        model = small_mlp()
        if fitted:
            model.fit(X, y, cost=first)
        else:
            model.partial_fit(X, y, cost=first, classes=[0, 1, 2])
        before = model.predict_cost(X, first if n_dimensions == 3 else None)
        if first is second:
            model.partial_fit(X, y, cost=second)
            continue
        with pytest.raises(ValueError, match="expected the same for all blocks"):
            model.partial_fit(X, y, cost=second)
        after = model.predict_cost(X, first if n_dimensions == 3 else None)
        np.testing.assert_array_equal(after, before)


def test_what_was_fitted_does_not_change_with_the_arrays_of_the_caller(data):
    X, y = data
    labels, mask = np.array(["a", "b", "c"]), np.arange(X.shape[1]) == 0
    rounded = X.round()
    model = small_mlp(classes=labels, categorical_features=mask).fit(rounded, labels[y])
    before = model.predict(rounded), model.predict_cost(rounded)

    labels[:], mask[:] = "z", ~mask

    np.testing.assert_array_equal(model.predict(rounded), before[0])
    np.testing.assert_array_equal(model.predict_cost(rounded), before[1])


class Fail(Callback):
    def __init__(self, n_epochs=1):
        self.n_epochs = n_epochs

    def on_epoch_end(self, net, **kwargs):
        if len(net.history) >= self.n_epochs:
            raise RuntimeError("a callback that fails")


def test_a_failed_block_leaves_the_batch_size(data):
    X, y = data
    model = small_mlp().partial_fit(X[:20], y[:20], classes=np.unique(y))
    model.set_params(callbacks=[Fail()], verbose=1)
    with pytest.raises(RuntimeError, match="a callback that fails"):
        model.partial_fit(np.tile(X, (40, 1)), np.tile(y, 40))

    assert (model.net_.batch_size, model.net_.verbose) == (16, 0)


def test_an_error_after_training_leaves_the_temperature(data, monkeypatch):
    model = small_mlp(loss="cross_entropy", temperature=2.0, warm_start=True).fit(*data)
    before = model.predict_proba(data[0])

    def interrupt(self, data):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(model), "_warn_if_collapsed", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(temperature=5.0).fit(*data)

    assert model.temperature_ == model.net_.temperature == 2
    np.testing.assert_array_equal(model.predict_proba(data[0]), before)


def test_batch_size_and_verbose_of_now(data, capsys):
    X, y = data
    model = small_mlp(warm_start=True).fit(X, y)
    model.set_params(batch_size=7, verbose=1).fit(X, y)
    assert model.training_.batch_size == 7
    assert "at most left" in capsys.readouterr().out

    stream = small_mlp(batch_size=64).partial_fit(X, y, classes=np.unique(y))
    assert stream.set_params(batch_size=8).partial_fit(X, y).training_.batch_size == 8
    larger = small_mlp(warm_start=True).fit(X[:50], y[:50]).fit(np.tile(X, (40, 1)), np.tile(y, 40))
    assert larger.training_.batch_size > 16


@pytest.mark.slow
def test_weights_that_count_repetitions_bound_probabilities_in_a_warm_start_too():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-4, 1, (297, 2)), rng.normal(4, 1, (3, 2))])
    y = np.repeat([0, 1], [297, 3])
    known = {"cost_matrix": [[0, 1], [2000, 0]], "learning_rate": 0.05, "temperature": 1.0}
    model = small_mlp(**known, max_epochs=60, warm_start=True)

    smallest = [
        model.fit(X, y, sample_weight=np.full(300, 10.0)).predict_proba(X).min() for _ in range(2)
    ]

    # Ten times 300 samples show no probability below 1 / 3,000.
    np.testing.assert_allclose(smallest, 1 / 3000, rtol=0.01)
