import ast
import pickle
import re
import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from skorch.callbacks import Callback

from auxcst_sklearn._inputs.arrays import as_image
from auxcst_sklearn.metrics import make_cost_scorer
from tests.factories import small_cnn

COST = np.random.RandomState(0).lognormal(sigma=2, size=(10, 10)) * (1 - np.eye(10))


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return (X.reshape(-1, 1, 8, 8) * 15.9375).astype(np.uint8), y


def test_as_image():
    assert as_image((3, 8, 9), channels_last=False) == (3, 8, 9)
    assert as_image((8, 9, 3), channels_last=True) == (8, 9, 3)
    assert as_image((8, 9), channels_last=False) == (1, 8, 9)
    assert as_image((8, 9), channels_last=True) == (8, 9, 1)
    assert as_image((9,), channels_last=False) == (1, 1, 9)
    with pytest.raises(ValueError, match=r"samples of 4 dimensions, \(2, 3, 8, 9\); expected"):
        as_image((2, 3, 8, 9), channels_last=False)


def test_every_hidden_layer_but_the_last_has_a_head(digits):
    X, y = digits
    estimator = small_cnn(channels=(4, 6), depth=2, alpha=0.3).fit(X[:200], y[:200])

    layers = ["stage1.block1", "stage1.block2", "stage2.block1"]
    assert estimator.hidden_layers_ == layers
    assert len(list(estimator.staged_predict(X[:5]))) == 4
    last = estimator.history_[-1]
    total = sum(0.3 * last[f"train_loss_{name}"] for name in layers) + last["train_loss_output"]
    assert last["train_loss"] == pytest.approx(total)


def test_one_alpha_per_layer(digits):
    X, y = digits
    estimator = small_cnn(channels=(4, 5, 6), alpha=[0.0, 0.7]).fit(X[:200], y[:200])

    assert estimator.hidden_layers_ == ["stage2.block1"]
    assert estimator.net_.criterion_.alphas.flatten().tolist() == pytest.approx([0.7, 1.0])
    assert small_cnn(alpha=0).fit(X[:200], y[:200]).hidden_layers_ == []


def test_images_without_channels_and_rows_have_one_channel(digits):
    X, y = digits
    expected = small_cnn().fit(X[:200], y[:200]).predict_cost(X)

    grey = small_cnn().fit(X[:200, 0], y[:200])
    row = small_cnn(image_shape=(1, 1, 64)).fit(X[:200].reshape(200, 64), y[:200])

    assert grey.image_shape_ == (1, 8, 8)
    np.testing.assert_array_equal(grey.predict_cost(X[:, 0]), expected)
    assert row.image_shape_ == (1, 1, 64)


@pytest.mark.parametrize(
    ("shape", "channels_last", "understood", "remedy"),
    [
        ((8, 6, 3), False, "8 channels of 6 x 3 pixels", "channels_last=True"),
        ((5, 5, 1), False, "5 channels of 5 x 1 pixels", "channels_last=True"),
        ((64,), False, "1 channel of 1 x 64 pixels", "image_shape=(1, 8, 8)"),
        ((64,), True, "1 channel of 1 x 64 pixels", "image_shape=(8, 8, 1)"),
        ((75,), False, "1 channel of 1 x 75 pixels", "image_shape=(3, 5, 5)"),
        ((1, 8, 8), True, "8 channels of 1 x 8 pixels", "channels_last=False"),
        ((3, 7, 9), True, "9 channels of 3 x 7 pixels", "channels_last=False"),
        ((4, 8, 6), True, "6 channels of 4 x 8 pixels", "channels_last=False"),
    ],
)
def test_a_shape_that_was_likely_meant_otherwise(shape, channels_last, understood, remedy):
    X, y = np.random.default_rng(0).normal(size=(20, *shape)), np.arange(20) % 2
    estimator = small_cnn(channels=4, channels_last=channels_last, max_epochs=1)

    with pytest.warns(UserWarning, match=re.escape(f"taken for images of {understood}")) as seen:
        expected = estimator.fit(X, y).predict_cost(X)

    assert len(seen) == 1
    assert seen[0].filename == __file__
    message = str(seen[0].message)
    assert f"pass {remedy}; " in message
    silent = ast.literal_eval(re.search(r"image_shape=(\([^)]*\)) silences", message)[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(
            estimator.set_params(image_shape=silent).fit(X, y).predict_cost(X), expected
        )
        name, value = remedy.split("=")
        estimator.set_params(image_shape=None).set_params(**{name: ast.literal_eval(value)})
        estimator.fit(X, y)


@pytest.mark.parametrize("shape", [(3, 8, 8), (4, 8, 3), (8, 8, 2), (8, 8), (63,), (65,), (49,)])
def test_plausible_shapes_raise_no_warning(shape):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small_cnn(channels=4, max_epochs=1).fit(np.zeros((20, *shape)), np.arange(20) % 2)


@pytest.mark.parametrize("shape", [(8, 8, 3), (2, 8, 8), (3, 8, 4), (3, 3, 3), (8, 8), (63,)])
def test_plausible_shapes_with_channels_last_raise_no_warning(shape):
    estimator = small_cnn(channels=4, channels_last=True, max_epochs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.fit(np.zeros((20, *shape)), np.arange(20) % 2)


@pytest.mark.parametrize("n_features", [1, 2, 7])
def test_rows_may_be_shorter_than_what_the_blocks_reduce(n_features):
    X = np.random.RandomState(0).normal(size=(100, n_features))
    y = (X[:, 0] > 0).astype(int)
    estimator = small_cnn(channels=(8, 8, 8, 8), learning_rate=1e-2, max_epochs=20).fit(X, y)

    assert estimator.score(X, y) > 0.9


def test_costs_are_lower_than_those_of_the_cost_blind_network(digits):
    X, y = digits
    bills = []
    for cost_matrix in (COST, None):
        estimator = small_cnn(
            channels=(8, 16), loss="cross_entropy", cost_matrix=cost_matrix, max_epochs=4
        ).fit(X[::2], y[::2])
        bills.append(COST[y[1::2], estimator.predict(X[1::2])].mean())

    assert bills[0] < 0.8 * bills[1]


def test_the_seed_alone_determines_the_network(digits):
    X, y = digits
    before = torch.get_rng_state(), np.random.get_state()[1].copy()

    def costs(seed, **parameters):
        model = small_cnn(random_state=seed, augmentation="flip_shift", **parameters)
        return model.fit(X[:200], y[:200]).predict_cost(X[:50])

    np.testing.assert_array_equal(costs(0), costs(0))
    assert not np.allclose(costs(0), costs(1))
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])


def test_augmentation_changes_the_network_and_a_callable_is_the_same_as_its_name(digits):
    X, y = digits

    def costs(augmentation):
        model = small_cnn(augmentation=augmentation).fit(X[:200], y[:200])
        return model.predict_cost(X[:50])

    plain, flipped = costs(None), costs("flip")

    assert not np.allclose(plain, flipped)
    np.testing.assert_array_equal(costs(torch.nn.Identity()), plain)
    np.testing.assert_array_equal(costs(lambda x: x), plain)


def test_pickles_predict_alike_and_train_on(digits):
    X, y = digits
    estimator = small_cnn(augmentation="shift").fit(X[:200], y[:200])
    expected = estimator.predict_cost(X)

    copy = pickle.loads(pickle.dumps(estimator))

    np.testing.assert_array_equal(copy.predict_cost(X), expected)
    copy.partial_fit(X[:200], y[:200])
    estimator.partial_fit(X[:200], y[:200])
    assert len(copy.history_) == 3
    assert not np.allclose(copy.predict_cost(X), expected)


def test_single_images_can_be_learnt_from(digits):
    X, y = digits
    wide = {"channels": (4, 4), "classes": np.arange(10)}
    X = X[:, :, 3:4, 3:4]

    assert small_cnn(batch_size=1, **wide).fit(X[:5], y[:5]).predict(X[:1]).shape == (1,)
    estimator = small_cnn(**wide).partial_fit(X[:1], y[:1])
    assert np.isfinite(estimator.partial_fit(X[1:2], y[1:2]).predict_cost(X)).all()


def test_batches_of_an_epoch_are_even(digits):
    class Sizes(Callback):
        seen = []

        def on_batch_begin(self, net, batch, training, **kwargs):
            self.seen.append(len(batch[0]))

    X, y = digits
    sizes = Sizes()

    estimator = small_cnn(batch_size=8, max_epochs=1, callbacks=[sizes], temperature=1.0)
    estimator.fit(X[:17], y[:17])

    assert sizes.seen == [6, 6, 5]  # not [8, 8, 1]: one row would count as much as eight


def test_early_stopping_and_sample_weights(digits):
    X, y = digits
    estimator = small_cnn(early_stopping=True, patience=1).fit(
        X[:300], y[:300], sample_weight=np.linspace(0, 1, 300)
    )

    assert {"valid_loss_stage1.block1", "valid_loss_output", "valid_cost"} <= set(
        estimator.history_[0]
    )


def test_grid_search_over_alpha(digits):
    X, y = digits
    search = GridSearchCV(
        small_cnn(cost_matrix=COST),
        {"alpha": [0, 0.5, [0.1]], "depth": [1]},
        scoring=make_cost_scorer(cost_matrix=COST),
        cv=2,
        error_score="raise",
    ).fit(X[:200], y[:200])

    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(X[:3]).shape == (3,)


def test_search_behind_a_transformer_that_knows_rows_only(digits):
    X, y = digits
    rows = X.reshape(len(X), 64)
    model = make_pipeline(MinMaxScaler(), small_cnn(image_shape=(1, 8, 8)))
    search = GridSearchCV(
        model, {"costsensitiveauxcnn__alpha": [0, 0.5]}, cv=2, error_score="raise"
    ).fit(rows[:200], y[:200])

    assert search.best_estimator_[-1].image_shape_ == (1, 8, 8)
    assert search.predict(rows).shape == (len(X),)


def test_bfloat16_learns_nearly_the_same(digits):
    X, y = digits
    scores = [
        small_cnn(precision=precision, channels=8, max_epochs=8).fit(X[::2], y[::2]).score(X, y)
        for precision in ("float32", "bf16")
    ]

    assert scores[0] > 0.8
    assert scores[1] == pytest.approx(scores[0], abs=0.05)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": [0.1, 0.2]}, r"alpha=\[0.1, 0.2\] has 2 values; .* or 1: one per residual"),
        ({"alpha": [-0.2]}, "alpha holds -0.2; expected each value"),
        ({"channels": ()}, "channels is empty; expected the channels of at least one stage"),
        ({"channels": (4, 0)}, "channels holds 0"),
        ({"channels": 0}, "'channels' parameter"),
        ({"channels": (8, 2.5)}, "channels holds 8.0"),
        ({"depth": 0}, "'depth' parameter"),
        (
            {"image_shape": (8, 8)},
            r"image_shape=\(8, 8\) expects \(8, 8\), or flattened rows of 64",
        ),
        ({"image_shape": (3, 8, 8)}, r"samples of shape \(1, 8, 8\); image_shape=\(3, 8, 8\)"),
        ({"augmentation": "rotate"}, "'augmentation' parameter .* Got 'rotate'"),
        ({"precision": "float16"}, "'precision' parameter .* Got 'float16'"),
        ({"augmentation": lambda x: x[:, :, 1:]}, r"augmentation turned .* \(\d+, 1, 7, 8\)"),
    ],
)
def test_bad_parameters(digits, parameters, message):
    X, y = digits
    with pytest.raises(ValueError, match=message):
        small_cnn(**parameters).fit(X[:100], y[:100])


def test_examples_of_too_many_dimensions():
    with pytest.raises(ValueError, match="samples of 4 dimensions"):
        small_cnn().fit(np.zeros((10, 2, 1, 8, 8)), np.arange(10) % 2)


def several(**parameters):
    """Two networks, each with its fold, as by default."""
    defaults = {"n_networks": 2, "early_stopping": True, "validation_fraction": 0.2}
    return small_cnn(**{**defaults, "max_epochs": 3, **parameters})


def test_predictions_are_means_of_several_networks(digits):
    X, y = digits
    model = several(loss="cross_entropy", combine_heads=False).fit(X, y)
    of_networks = []
    for network in model.net_.module_.networks:
        logits = network.eval()(torch.from_numpy(X)).double() / model.temperature_
        of_networks.append(torch.softmax(logits, 1).numpy(force=True))

    assert len(of_networks) == 2
    assert np.abs(of_networks[0] - of_networks[1]).max() > 0.01
    logs = np.log(np.maximum(of_networks, 1e-6))
    mean = np.exp(logs.mean(axis=0))  # geometric, of ten classes
    mean /= mean.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), mean, atol=1e-5)


def test_each_network_is_blind_to_its_fold(digits):
    X, y = digits
    rows = []

    class Rows(Callback):
        def on_batch_begin(self, net, batch=None, training=False, **kwargs):
            if training and len(net.history) == 1:
                rows.append(batch[0].numpy().reshape(2, -1, X[0].size))

    several(callbacks=[Rows()], max_epochs=1).fit(X, y)
    seen = [{row.tobytes() for row in part} for part in np.concatenate(rows, axis=1)]
    every = {row.tobytes() for row in X.reshape(len(X), -1)}
    unseen = [every - part for part in seen]
    assert all(len(part) > 0.1 * len(every) for part in unseen)
    assert not unseen[0] & unseen[1]


def test_the_best_epoch_has_its_own_statistics_of_batches(digits):
    X, y = digits
    stopping = {"schedule": "constant", "learning_rate": 0.3, "patience": 60, "max_epochs": 12}
    long = several(n_networks=1, **stopping).fit(X, y)
    best = 1 + int(np.argmin([record["valid_refinement"] for record in long.history_]))
    short = several(n_networks=1, **{**stopping, "max_epochs": best}).fit(X, y)

    assert best < 12
    np.testing.assert_array_equal(long.predict_cost(X), short.predict_cost(X))


def test_several_networks_go_on_and_survive_a_pickle(digits):
    X, y = digits
    model = several(cost_matrix=1 - np.eye(10), augmentation="shift").fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_cost(X), model.predict_cost(X))
    before = model.predict_cost(X)
    model.partial_fit(X, y)

    assert np.abs(model.predict_cost(X) - before).max() > 1e-4
    assert len(list(model.staged_predict_cost(X[:3]))) == 1 + len(model.hidden_layers_)


@pytest.mark.parametrize("parameters", [{"precision": "bf16"}, {"loss": "one_sided"}])
def test_several_networks_of_other_kinds(digits, parameters):
    X, y = digits
    cost = np.random.default_rng(0).gamma(1, size=(len(y), 10)) * (np.arange(10) != y[:, None])
    model = several(**parameters).fit(X, y, cost=cost)

    assert model.net_.n_networks == 2
    assert np.isfinite(model.predict_cost(X)).all()
