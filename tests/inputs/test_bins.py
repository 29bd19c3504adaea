"""Bins of numbers, against quantiles by numpy."""

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.metrics import log_loss
from sklearn.utils import shuffle

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn._inputs.scaling import FeatureStatistics, scaling_of
from auxcst_sklearn._inputs.tables import MOST_BINS, Bins
from auxcst_sklearn._training.schedule import EarlyStopping
from auxcst_sklearn.modules._tables import PiecewiseLinear
from tests.factories import QUICK

N = 2000


@pytest.fixture(scope="module")
def columns():
    """A normal column, a lognormal one, a flag, and small integers."""
    rng = np.random.RandomState(0)
    parts = [rng.randn(N), rng.lognormal(3, 1.5, N), rng.rand(N) < 0.1, rng.poisson(1.0, N)]
    return np.column_stack(parts).astype(float)


def bins_of(X, n_bins=16, which="as_needed"):
    statistics = FeatureStatistics().update(X)
    scaling = scaling_of(statistics, which)
    return Bins(statistics, scaling, n_bins), scaling


@pytest.mark.parametrize("which", ["none", "as_needed"])
def test_columns_far_from_normal_have_bins_between_quantiles(columns, which):
    bins, scaling = bins_of(columns, which=which)

    assert bins.kept.any(axis=1).tolist() == [False, True, False, True]
    edges = np.quantile(columns[:, 1], np.linspace(0, 1, 17))
    np.testing.assert_allclose(bins.edges[:, 1], edges)
    integers = np.unique(np.quantile(columns[:, 3], np.linspace(0, 1, 17)))
    assert bins.kept[3].sum() == len(integers) - 1

    found = bins.make_encoding(scaling, np.arange(4))
    low, width = edges[:-1], np.diff(edges)
    rows = columns[:50]
    expected = np.clip((rows[:, [1]] - low) / width, 0, 1)
    scaled = scaling.apply(rows, np.zeros(4, dtype=bool))
    if which == "none":  # otherwise the ends are soft, and bins curved
        np.testing.assert_allclose(found(torch.tensor(scaled))[:, :16], expected, atol=1e-4)


def test_few_rows_and_many_columns_have_fewer_bins(columns):
    heavy = columns[:, [1]]
    assert not bins_of(heavy[:250])[0].kept.any()
    assert bins_of(heavy[:600])[0].kept.sum() == 6
    assert bins_of(heavy, n_bins=5)[0].kept.sum() == 5
    assert not bins_of(heavy, n_bins=0)[0].kept.any()
    many = np.exp(np.random.RandomState(0).randn(N, 200))
    assert bins_of(many)[0].kept.sum() == MOST_BINS // 200 * 200


def test_pixels_and_sparse_rows_have_none(columns):
    pixels = np.random.RandomState(0).randint(0, 17, size=(N, 64)) ** 2.0
    assert not bins_of(pixels)[0].kept.any()
    grades = bins_of(np.minimum(pixels[:, :6], 100))[0]
    assert grades.kept.any(axis=1).all()
    assert not bins_of(sparse.csr_array(columns), which="none")[0].kept.any()


def test_narrow_bins_are_dropped(columns):
    column = np.where(np.random.RandomState(0).rand(N) < 0.5, 0, columns[:, 1])
    bins, scaling = bins_of(column[:, None])

    low, width = bins.bounds(scaling)
    assert (width > 1e-6).all()
    assert len(low) < 16
    constant, _ = bins_of(np.full((N, 1), 5.0))
    assert not constant.kept.any()


def waves(n, seed):
    """A skewed column whose waves say the class."""
    rng = np.random.RandomState(seed)
    X = np.column_stack([rng.lognormal(0, 1, n), rng.randn(n)])
    return X, (np.sin(8 * np.log(X[:, 0])) > 0).astype(int)


def small_model(**changes):
    given = {"depth": 2, "width": 16, "max_epochs": 12, **QUICK}
    return CostSensitiveAuxMLP(**{**given, **changes})


def test_bins_help_where_a_number_has_steps():
    X, y = waves(1500, 0)
    X_test, y_test = waves(1000, 1)

    plain, encoded = (small_model(n_bins=n).fit(X, y).score(X_test, y_test) for n in (0, 16))

    assert encoded > plain + 0.05


def neighbours(n, seed):
    """Columns that differ little from each other, by what says the class."""
    rng = np.random.RandomState(seed)
    Z = rng.randn(n, 20)
    y = Z @ np.tile([1, -1], 10) > 0
    return np.exp(rng.randn(n, 1) + 0.1 * Z), y.astype(int)


def test_networks_lose_bins_that_harm():
    """A network with bins learns the rows by heart."""
    (X, y), (X_val, y_val), (X_test, y_test) = (
        neighbours(n, seed) for seed, n in enumerate((800, 3000, 2000))
    )
    model = small_model(n_networks=2, max_epochs=80, batch_size=50)
    model.fit(X, y, X_val=X_val, y_val=y_val)

    # It is 0.09 to 0.10 without bins, and 0.14 to 0.21 if they stay, for three random states.
    assert log_loss(y_test, model.predict_proba(X_test)) < 0.12


def test_networks_keep_bins_if_their_best_epoch_had_them():
    model = small_model(n_networks=3, max_epochs=1).fit(*waves(500, 0))
    (mask,) = model.net_.module_.bin_masks
    stop = EarlyStopping(model.net_, 9)
    stop.update(np.array([1.0, 1.0, 1.0]))
    mask.zero_()
    stop.update(np.array([0.5, 2.0, 0.5]))

    stop.restore()

    assert mask.flatten().tolist() == [0, 1, 0]


def test_every_third_network_sees_them():
    X, y = waves(500, 0)
    model = small_model(n_networks=3, max_epochs=1).fit(X, y)
    first = model.net_.module_.inputs

    found = first(torch.as_tensor(model._inputs.transform(X)).unsqueeze(0))

    assert first.sees_bins.flatten().tolist() == [0, 1, 0]
    n_bins = len(first.bins.columns)
    assert n_bins == 5
    assert found[1, :, -n_bins:].any()
    assert not found[0, :, -n_bins:].any()
    one = small_model(n_networks=1, max_epochs=1).fit(X, y)
    assert not any(isinstance(m, PiecewiseLinear) for m in one.net_.module_.modules())


def test_blocks_of_a_stream_keep_their_bins_where_they_were():
    X, y = shuffle(*waves(2000, 0), random_state=0)
    X[:, 0] *= 100
    model = small_model()
    for part in (slice(0, 1700), slice(1700, 2000)):
        model.partial_fit(X[part], y[part], classes=[0, 1])
        encoding = next(m for m in model.net_.module_.modules() if isinstance(m, PiecewiseLinear))
        edges = np.quantile(X[:1700, 0], np.linspace(0, 1, 17))
        scaled = model._inputs.scaling.scale_rows(np.column_stack([edges, edges]))[:, 0]
        np.testing.assert_allclose(encoding.center, scaled[:-1], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(1 / encoding.factor, np.diff(scaled), rtol=1e-3)


@pytest.mark.parametrize(("n_values", "expected"), [(56, 0), (250, 0), (430, 4), (2000, 16)])
def test_columns_with_gaps_have_bins_for_their_values(columns, n_values, expected):
    X = columns[:, [1, 1]].copy()
    X[n_values:, 1] = np.nan
    assert bins_of(X)[0].kept.sum(axis=1).tolist() == [16, expected]


@pytest.mark.parametrize("which", ["none", "as_needed"])
def test_bins_of_columns_of_several_scales_or_small_units(columns, which):
    rng = np.random.RandomState(0)
    far = np.where(rng.rand(N) < 0.2, rng.uniform(1e4, 1e6, N), rng.uniform(0, 10, N))
    small = 1e-9 * columns[:, 1]
    residue = np.where(rng.rand(N) < 0.2, rng.uniform(1e4, 1e6, N), rng.uniform(0, 1e-16, N))
    kept = bins_of(np.column_stack([far, small, residue]), which=which)[0].kept
    assert kept.sum(axis=1).tolist()[:2] == [16, 16]
    assert kept.sum(axis=1)[2] == 4
