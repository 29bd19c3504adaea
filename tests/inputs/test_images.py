import warnings

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from skorch.callbacks import Callback
from torch import nn

from auxcst_sklearn import CostSensitiveAuxNet
from tests.factories import small_cnn


@pytest.fixture
def pixels():
    return np.random.RandomState(0).randint(256, size=(40, 2, 4, 6)).astype(np.uint8)


@pytest.fixture
def y():
    return np.arange(40) % 3


def small(**parameters):
    return small_cnn(**{"channels": 4, **parameters})


@pytest.mark.parametrize("image_shape", [(2, 4, 6), [2, 4, 6], np.array([2, 4, 6])])
def test_the_shape_may_be_any_sequence(pixels, y, image_shape):
    expected = small().fit(pixels, y).predict_cost(pixels)
    for X in (pixels, pixels.reshape(40, 48)):
        found = small(image_shape=image_shape).fit(X, y).predict_cost(X)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("shape", "image_shape", "message"),
    [
        ((3, 0, 5), None, r"shape \(3, 0, 5\); expected at least one value"),
        ((61,), (3, 4, 5), r"shape \(61,\); image_shape=\(3, 4, 5\) .* rows of 60 values"),
        ((4, 5, 3), (3, 4, 5), r"shape \(4, 5, 3\); image_shape=\(3, 4, 5\) expects"),
        ((60,), (3, 4.0, 5), r"image_shape=\(3, 4.0, 5\) must be positive integers"),
        ((60,), (-3, -4, 5), "must be positive integers"),
        ((60,), (), "must be positive integers"),
    ],
)
def test_shapes_that_do_not_fit(shape, image_shape, message, y):
    with pytest.raises(ValueError, match=message):
        small(image_shape=image_shape).fit(np.zeros((40, *shape)), y)


def test_all_layouts_of_the_same_images_give_the_same_network(pixels, y):
    channels_last = pixels.transpose(0, 2, 3, 1)
    layouts = [
        (pixels, {}),
        (pixels, {"image_shape": (2, 4, 6)}),
        (pixels.reshape(40, 48), {"image_shape": (2, 4, 6)}),
        (sparse.csr_matrix(pixels.reshape(40, 48)), {"image_shape": (2, 4, 6)}),
        (channels_last, {"channels_last": True}),
        (channels_last.reshape(40, 48), {"channels_last": True, "image_shape": (4, 6, 2)}),
    ]
    expected = small().fit(pixels, y).predict_cost(pixels)
    for X, parameters in layouts:
        estimator = small(**parameters).fit(X, y)

        assert estimator.image_shape_ == (2, 4, 6)
        np.testing.assert_array_equal(estimator.predict_cost(X), expected)


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [("uint8", "uint8"), ("float64", "float32"), ("int64", "float32"), ("float16", "float32")],
)
def test_bytes_stay_bytes_until_the_network_sees_them(pixels, y, dtype, kept):
    class Spy(Callback):
        seen = set()

        def on_batch_begin(self, net, batch, training, **kwargs):
            self.seen.add(str(batch[0].numpy().dtype))

    spy = Spy()
    X = pixels.astype(dtype)
    before = X.copy()

    small(callbacks=[spy], augmentation="flip").fit(X, y).predict(X)

    assert spy.seen == {kept}
    np.testing.assert_array_equal(X, before)


def test_bytes_and_floats_are_not_mixed_up(pixels, y):
    of_bytes, of_floats = small().fit(pixels, y), small().fit(pixels.astype(float), y)

    with pytest.raises(ValueError, match="X is float32, but CostSensitiveAuxCNN .* on uint8"):
        of_bytes.predict(pixels / 255)
    with pytest.raises(ValueError, match="X is uint8, but CostSensitiveAuxCNN .* on float32"):
        of_floats.predict(pixels)
    with pytest.raises(ValueError, match="X is float32"):
        of_bytes.partial_fit(pixels / 255, y)


FORMS = {
    "images": np.asarray,
    "rows": lambda X: X.reshape(len(X), -1),
    "from -1 to 1": lambda X: X * 2 - 1,
    "sparse": lambda X: sparse.csr_matrix(X.reshape(len(X), -1)),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_pixels_of_another_range_than_those_of_the_training_raise_a_warning(pixels, y, form):
    X = form(pixels.astype(np.float64) / 255)
    model = small(image_shape=(2, 4, 6)).fit(X, y)
    expected = model.predict(X)
    calls = [
        lambda: model.predict(X * 255),
        lambda: model.predict_cost(X[:1] * 255),
        lambda: clone(model).fit(X, y).partial_fit(X * 255, y),
    ]

    for call in calls:
        with pytest.warns(UserWarning, match="% of the values of X are beyond .* fitted on values"):
            call()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict(X), expected)
        model.predict(X * 10)  # brighter images


def test_no_other_range_raises_a_warning(pixels, y):
    def predict_brighter(X, factor, **parameters):
        small(**parameters).fit(X, y).predict(X * factor)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predict_brighter(pixels, 1)
        predict_brighter(pixels.astype(float), 9)
        predict_brighter(np.where(pixels == 0, 1.5, pixels / 255), 9)
        # A few pixels that hardly differed in the training, and were scaled by MinMaxScaler.
        X = pixels / 255
        model = small().fit(X, y)
        X[:, 0, 0, 0] = 60
        model.predict(X)
        # Features of a module that takes rows, such as amounts.
        rows = (pixels / 255).reshape(40, -1)
        module = nn.Sequential(nn.Linear(48, 4), nn.ReLU(), nn.Linear(4, 3))
        plain = CostSensitiveAuxNet(module, alpha=0, pretrained=False, max_epochs=1)
        plain.fit(rows, y).predict(rows * 255)


def test_the_range_is_that_of_all_blocks_of_a_stream(pixels, y):
    model = small().partial_fit(pixels * 0.0, y, classes=[0, 1, 2])
    with pytest.warns(UserWarning, match="on values from -0 to 0"):
        model.partial_fit(pixels.astype(float), y)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(pixels.astype(float))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((5, 1, 4, 6), r"X contains samples of shape \(1, 4, 6\), but .* fitted on .* \(2, 4, 6\)"),
        ((5, 2, 4, 5), r"shape \(2, 4, 5\), but"),
        ((5, 4, 6, 2), r"shape \(4, 6, 2\), but"),
        ((5, 48), r"shape \(48,\), but"),
        ((5, 2, 4), r"shape \(2, 4\), but"),
    ],
)
def test_images_of_another_shape(pixels, y, shape, message):
    estimator = small().fit(pixels, y)
    X = np.zeros(shape, dtype=np.uint8)

    for X_wrong in (X, X.astype(float).tolist()):
        with pytest.raises(ValueError, match=message if X_wrong is X else "shape|features"):
            estimator.predict(X_wrong)
    with pytest.raises(ValueError, match=message):
        estimator.partial_fit(X, y[:5])


def test_lists_of_another_shape_with_as_many_channels(pixels, y):
    estimator = small().fit(pixels.astype(float), y)

    with pytest.raises(ValueError, match=r"X contains samples of shape \(2, 4, 5\), but"):
        estimator.predict(np.zeros((5, 2, 4, 5)).tolist())


def test_features_of_rows_are_counted_as_everywhere(pixels, y):
    rows = pixels.reshape(40, 48)
    estimator = small(image_shape=(2, 4, 6)).fit(rows, y)

    assert estimator.n_features_in_ == 48
    with pytest.raises(ValueError, match="X has 47 features, but .* is expecting 48"):
        estimator.predict(rows[:, 1:])
    with pytest.raises(ValueError, match="Reshape your data"):
        estimator.predict(rows[0])


def test_a_batch_to_predict_holds_a_bounded_number_of_values(pixels, y):
    estimator = small().fit(pixels, y)

    assert estimator.net_.iterator_valid__batch_size == 2**19 // 48
    smaller = small(net_params={"iterator_valid__batch_size": 7}).fit(pixels, y)
    expected = estimator.predict_cost(pixels)
    np.testing.assert_allclose(smaller.predict_cost(pixels), expected, rtol=1e-5)


def test_uint8_without_pixels_raises_a_warning(pixels, y):
    with pytest.warns(UserWarning, match=r"no value is above 1.*astype\(numpy.float32\)"):
        small().fit((pixels > 100).astype(np.uint8), y)


def test_an_augmentation_of_ones_own_depends_on_random_state_alone(pixels, y):
    def noisy(x):
        return x + 0.3 * torch.randn_like(x)

    state = torch.get_rng_state()
    first, second = (small(augmentation=noisy).fit(pixels, y).predict_cost(pixels) for _ in "12")
    np.testing.assert_array_equal(first, second)
    assert torch.equal(torch.get_rng_state(), state)
