import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import scale

from auxcst_sklearn import CSAEPretrainedMLP
from auxcst_sklearn._checks.lazy_rows import check_resolution
from auxcst_sklearn._inputs.scaling import as_float32
from tests.factories import small_mlp


@pytest.fixture
def times():
    """Seconds since 1970 of one hour, which separate two classes."""
    random = np.random.RandomState(0)
    y = np.arange(200) % 2
    X = 1.7e9 + 600.0 * (random.normal(size=(200, 1)) / 3 + y[:, np.newaxis])
    return np.hstack([random.normal(size=(200, 1)), X]), y


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
@pytest.mark.parametrize(
    "make", [lambda: small_mlp(standardize=False), lambda: CSAEPretrainedMLP(1, 4, max_epochs=1)]
)
def test_timestamps_that_float32_cannot_resolve_are_refused(times, dtype, make):
    X, y = times
    with pytest.raises(ValueError, match=r"Column 1 of X, and 1 in all, .* StandardScaler"):
        make().fit((X * [1000, 1]).astype(dtype), y)


@pytest.mark.parametrize("unit", [1, 1e9])  # seconds and nanoseconds
@pytest.mark.parametrize("standardize", ["auto", True])
def test_timestamps_are_learnt_where_the_network_scales(times, standardize, unit):
    X, y = times
    X = X * [1, unit]

    model = small_mlp(standardize=standardize, max_epochs=15).fit(X, y)

    assert model.score(X, y) > 0.9
    by_hand = small_mlp(standardize=False, max_epochs=15).fit(scale(X), y)
    np.testing.assert_allclose(model.predict_cost(X), by_hand.predict_cost(scale(X)), atol=0.01)


@pytest.mark.parametrize(
    "X",
    [
        [[1.7e9], [1.7e9]],  # constant
        [[1.7e9], [1.8e9]],
        [[0.0], [1e-30]],
        [[-1e30], [1e30]],
        [[2**40], [0]],
        [[0.3], [0.1 + 0.2]],  # constant but for rounding
    ],
)
def test_columns_that_float32_resolves_pass(X):
    check_resolution(np.array(X))


def test_sparse_rows_pass():
    check_resolution(sparse.csr_array(np.array([[0, 1.7e9], [1, 1.7e9 + 1]])))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_values_too_large_for_float32_are_refused(kind):
    with pytest.raises(ValueError, match="Input X contains infinity or a value too large"):
        as_float32(kind(np.array([[1e300, 1.0]])))


def test_float32_is_not_copied():
    X = np.zeros((2, 3), np.float32)

    assert as_float32(X) is X
