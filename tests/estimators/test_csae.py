import copy

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.datasets import load_digits, load_wine

from auxcst_sklearn import CSAEPretrainedMLP


def make_model(**params):
    small = {"depth": 2, "width": 16, "pretrain_epochs": 3, "max_epochs": 3, "random_state": 0}
    return CSAEPretrainedMLP(**{**small, **params})


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16, y[:300]


# ------------------------------------------------------------------ pretraining


def test_reconstruction_costs_and_their_mixture_improve_in_every_layer(digits):
    beta = [0.2, 0.7, 0.5]
    model = make_model(depth=3, pretrain_epochs=6, beta=beta).fit(*digits)
    assert list(model.pretrain_history_) == ["hidden1", "hidden2", "hidden3"]
    for b, history in zip(beta, model.pretrain_history_.values()):
        assert [record["epoch"] for record in history] == [1, 2, 3, 4, 5, 6]
        for part in ("loss", "reconstruction", "cost"):
            assert history[-1][part] < history[0][part]
        for record in history:
            mixture = (1 - b) * record["reconstruction"] + b * record["cost"]
            assert record["loss"] == pytest.approx(mixture, rel=1e-5)


def test_pretraining_trains_one_layer_after_the_other(digits):
    changed = []

    class Watched(CSAEPretrainedMLP):
        def _pretrain_layer(self, net, *args):
            before = copy.deepcopy(net.module_.state_dict())
            history = super()._pretrain_layer(net, *args)
            after = net.module_.state_dict()
            changed.append({name for name in after if not torch.equal(before[name], after[name])})
            return history

    Watched(**make_model().get_params()).fit(*digits)
    assert changed == [
        {"hidden.hidden1.0.weight", "hidden.hidden1.0.bias"},
        {"hidden.hidden2.0.weight", "hidden.hidden2.0.bias"},
    ]


def test_first_loss_is_that_of_the_untrained_weights(digits):
    """One full batch without corruption, against the formulas in numpy."""
    X, y = digits
    start = {}

    class Watched(CSAEPretrainedMLP):
        def _pretrain_layer(self, net, autoencoder, *args):
            for name, value in autoencoder.state_dict().items():
                start.setdefault(name, value.double().numpy(force=True).copy())
            return super()._pretrain_layer(net, autoencoder, *args)

    params = make_model(corruption=0.0, batch_size=len(y), pretrain_epochs=1).get_params()
    model = Watched(**params).fit(X, y)

    code = 1 / (1 + np.exp(-X @ start["encoder.weight"].T - start["encoder.bias"]))
    p = 1 / (1 + np.exp(-code @ start["encoder.weight"] - start["decoder_bias"]))
    z = 2 * np.eye(10)[y] - 1
    cost = 1 - np.eye(10)[y]
    estimate = code @ start["cost_head.weight"].T + start["cost_head.bias"]
    record = model.pretrain_history_["hidden1"][0]
    assert record["reconstruction"] == pytest.approx(
        -(X * np.log(p) + (1 - X) * np.log(1 - p)).sum(axis=1).mean(), rel=1e-5
    )
    assert record["cost"] == pytest.approx(
        np.log1p(np.exp(z * (estimate - cost))).sum(axis=1).mean(), rel=1e-5
    )


def test_costs_shape_the_code_unless_beta_is_zero(digits):
    matrices = [1 - np.eye(10), np.abs(np.subtract.outer(range(10), range(10))) ** 2]
    for beta, alike in [(0.0, True), (0.9, False)]:
        models = [make_model(beta=beta, cost_matrix=matrix).fit(*digits) for matrix in matrices]
        first, second = (
            [record["reconstruction"] for record in model.pretrain_history_["hidden2"]]
            for model in models
        )
        assert (first == second) is alike


def test_weights_count_as_repetitions_in_pretraining(digits):
    X, y = digits[0][:60], digits[1][:60]
    weight = np.random.RandomState(0).randint(1, 4, size=60)
    model = make_model(corruption=0.0, batch_size=1000)
    weighted = model.fit(X, y, sample_weight=weight).pretrain_history_
    repeated = model.fit(X.repeat(weight, axis=0), y.repeat(weight)).pretrain_history_
    unweighted = model.fit(X, y).pretrain_history_
    for layer in weighted:
        found, expected, other = (
            [record["loss"] for record in history[layer]]
            for history in (weighted, repeated, unweighted)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-4)
        assert not np.allclose(found, other, rtol=1e-4)


def test_pretraining_drops_no_neurons(digits):
    plain, dropping = (make_model(dropout=p).fit(*digits) for p in (0.0, 0.5))
    assert plain.pretrain_history_ == dropping.pretrain_history_
    assert plain.history_[-1]["train_loss"] != dropping.history_[-1]["train_loss"]


def test_pretraining_helps_a_deep_sigmoid_network(digits):
    deep = {"depth": 3, "width": 64, "max_epochs": 10}
    plain, pretrained = (make_model(pretrain_epochs=n, **deep).fit(*digits) for n in (0, 10))
    assert pretrained.history_[-1]["train_loss"] < 0.8 * plain.history_[-1]["train_loss"]


def test_without_pretraining(digits):
    model = make_model(pretrain_epochs=0).fit(*digits)
    assert model.pretrain_history_ == {"hidden1": [], "hidden2": []}
    assert model.hidden_layers_ == []
    (cost,) = model.staged_predict_cost(digits[0])
    np.testing.assert_array_equal(cost, model.predict_cost(digits[0]))


def test_the_first_call_pretrains_and_later_ones_do_not(digits):
    X, y = digits
    stream = make_model().partial_fit(X[:200], y[:200], classes=range(10))
    assert len(stream.pretrain_history_["hidden2"]) == 3
    for model in (stream, make_model(warm_start=True).fit(X, y)):
        pretrained = model.pretrain_history_
        model.set_params(warm_start=True).fit(X, y).partial_fit(X, y)
        assert model.pretrain_history_ is pretrained


def test_verbose_reports_pretraining(digits, capsys):
    make_model(verbose=1).fit(*digits)
    assert "Pretraining hidden2, epoch 3/3: loss " in capsys.readouterr().out


# -------------------------------------------------------------------- the inputs


def test_range_of_the_inputs_is_remembered():
    X = np.array([[0.2, -4, 0, 7], [0.7, 1, 10, 7], [0.5, 6, 1, 7], [0.3, 0, 2, 7]])
    y = [0, 1, 0, 1]
    expected = [[0, -4, 0, 7], [1, 6, 10, 7]]
    for data in (X, sparse.csr_matrix(X)):
        np.testing.assert_array_equal(make_model().fit(data, y).input_range_, expected)


def test_inputs_outside_are_scaled_by_the_training_range():
    X, y = load_wine(return_X_y=True)
    X *= 10  # no feature stays within [0, 1]
    unit = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    raw, scaled = make_model().fit(X, y), make_model().fit(unit, y)
    np.testing.assert_array_equal(scaled.input_range_, [[0.0] * 13, [1.0] * 13])
    np.testing.assert_allclose(raw.predict_cost(X), scaled.predict_cost(unit), atol=1e-4)
    # a test set of its own range is scaled by that of the training set
    np.testing.assert_allclose(raw.predict_cost(X[:9]), raw.predict_cost(X)[:9], rtol=1e-6)


def test_later_inputs_are_clipped(digits):
    X, y = digits
    model = make_model().fit(X, y)
    np.testing.assert_array_equal(
        model.predict_cost(3 * X - 1), model.predict_cost(np.clip(3 * X - 1, 0, 1))
    )


def test_sparse_inputs_give_the_same_as_dense(digits):
    X, y = 20 * digits[0] - 10 * (digits[0] > 0), digits[1]
    assert X.min() < 0 < np.mean(X == 0)
    dense, rows = (make_model().fit(data, y) for data in (X, sparse.csr_matrix(X)))
    assert dense.pretrain_history_ == rows.pretrain_history_
    np.testing.assert_array_equal(dense.predict_cost(X), rows.predict_cost(sparse.csr_matrix(X)))


# ------------------------------------------------- randomness, persistence, errors


def test_random_state_determines_everything_and_nothing_else_is_drawn(digits):
    numpy_state, torch_state = np.random.get_state()[1].copy(), torch.get_rng_state()
    first, same, other = (make_model(random_state=seed).fit(*digits) for seed in (0, 0, 1))
    assert first.pretrain_history_ == same.pretrain_history_ != other.pretrain_history_
    np.testing.assert_array_equal(first.predict_cost(digits[0]), same.predict_cost(digits[0]))
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)
    assert torch.equal(torch.get_rng_state(), torch_state)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"beta": [0.5, -0.1]}, "beta contains -0.1"),
        ({"beta": [0.5]}, "beta=.* has 1 values; expected one number, or 2"),
        ({"corruption": 1.0}, "'corruption' parameter"),
        ({"corruption": [0.2, 1.0]}, "corruption contains 1.0"),
    ],
)
def test_parameters_out_of_range(digits, params, message):
    with pytest.raises(ValueError, match=message):
        make_model(**params).fit(*digits)


@pytest.mark.parametrize("epochs", [1, 3])
def test_diverging_pretraining_stops_and_leaves_the_fitted_model(digits, epochs):
    model = make_model().fit(*digits)
    before = model.predict_cost(digits[0])
    model.set_params(pretrain_learning_rate=1e38, optimizer="sgd", pretrain_epochs=epochs)
    with pytest.raises(ValueError, match="hidden1 became infinite.*pretrain_learning_rate"):
        model.fit(*digits)
    np.testing.assert_array_equal(model.predict_cost(digits[0]), before)


def test_rows_held_out_by_early_stopping_are_not_pretrained_on(digits):
    X, y = digits
    cost = np.random.RandomState(0).uniform(size=(300, 10))
    seen = []

    class Recorder(CSAEPretrainedMLP):
        def _pretrain(self, training, rng):
            seen.append(len(training.rows[0]))
            return super()._pretrain(training, rng)

    parameters = make_model(early_stopping=True, validation_fraction=0.2).get_params()
    model = Recorder(**parameters).fit(X, y, cost=cost)

    assert seen == [240]
    assert "valid_cost" in model.history_[0]


def test_rows_of_weight_zero_do_not_move_the_range_of_the_inputs(digits):
    X, y = digits
    weight = np.ones(len(y))
    weight[200:] = 0
    noise = np.vstack([X[:200], 50 * X[200:] - 7])

    weighted = make_model().fit(noise, y, sample_weight=weight)

    plain = make_model().fit(X[:200], y[:200])
    np.testing.assert_array_equal(weighted.input_range_, plain.input_range_)
    np.testing.assert_allclose(weighted.predict_cost(X), plain.predict_cost(X), rtol=1e-5)
