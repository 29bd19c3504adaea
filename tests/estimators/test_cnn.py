import ast
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

from tests.factories import small_cnn


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return (X.reshape(-1, 1, 8, 8) * 15.9375).astype(np.uint8), y


@pytest.mark.parametrize(
    ("parameters", "layers", "alphas"),
    [
        (
            {"depth": 2, "alpha": 0.3},
            ["stage1.block1", "stage1.block2", "stage2.block1"],
            [0.3, 0.3, 0.3],
        ),
        ({"channels": (4, 5, 6), "alpha": [0.0, 0.7]}, ["stage2.block1"], [0.7]),
        ({"alpha": 0}, [], []),
    ],
)
def test_every_hidden_layer_but_the_last_has_a_head(digits, parameters, layers, alphas):
    X, y = digits
    estimator = small_cnn(**parameters).fit(X[:200], y[:200])

    assert estimator.hidden_layers_ == layers
    assert len(list(estimator.staged_predict(X[:5]))) == len(layers) + 1
    assert estimator.net_.criterion_.alphas.flatten().tolist() == pytest.approx([*alphas, 1])


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
        estimator.set_params(image_shape=silent).fit(X, y)
        np.testing.assert_array_equal(estimator.predict_cost(X), expected)
        name, value = remedy.split("=")
        estimator.set_params(image_shape=None).set_params(**{name: ast.literal_eval(value)})
        estimator.fit(X, y)


@pytest.mark.parametrize(
    ("channels_last", "shapes"),
    [
        (False, [(3, 8, 8), (4, 8, 3), (8, 8, 2), (8, 8), (63,), (65,), (49,)]),
        (True, [(8, 8, 3), (2, 8, 8), (3, 8, 4), (3, 3, 3), (8, 8), (63,)]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_plausible_shapes_raise_no_warning(channels_last, shapes):
    estimator = small_cnn(channels=4, channels_last=channels_last, max_epochs=1)
    for shape in shapes:
        estimator.fit(np.zeros((20, *shape)), np.arange(20) % 2)


@pytest.mark.parametrize("n_features", [1, 2, 7])
def test_rows_may_be_shorter_than_what_the_blocks_reduce(n_features):
    X = np.random.RandomState(0).normal(size=(100, n_features))
    y = (X[:, 0] > 0).astype(int)
    estimator = small_cnn(channels=(8, 8, 8, 8), learning_rate=1e-2, max_epochs=20).fit(X, y)

    assert estimator.score(X, y) > 0.9


def test_augmentation_changes_the_network_and_a_callable_is_the_same_as_its_name(digits):
    X, y = digits

    def costs(augmentation):
        model = small_cnn(augmentation=augmentation).fit(X[:200], y[:200])
        return model.predict_cost(X[:50])

    plain, flipped = costs(None), costs("flip")

    assert not np.allclose(plain, flipped)
    np.testing.assert_array_equal(costs(torch.nn.Identity()), plain)
    np.testing.assert_array_equal(costs(lambda x: x), plain)


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
        ({"channels": ()}, "channels is empty; expected the channels of at least one stage"),
        ({"channels": (4, 0)}, "channels contains 0"),
        ({"channels": (8, 2.5)}, "channels contains 8.0"),
        (
            {"image_shape": (8, 8)},
            r"image_shape=\(8, 8\) expects \(8, 8\), or flattened rows of 64",
        ),
        ({"image_shape": (3, 8, 8)}, r"samples of shape \(1, 8, 8\); image_shape=\(3, 8, 8\)"),
        ({"augmentation": "rotate"}, "'augmentation' parameter .* Got 'rotate'"),
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
