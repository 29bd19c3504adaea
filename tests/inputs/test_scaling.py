import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.model_selection import train_test_split

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn._inputs.scaling import FeatureStatistics, scaling_of

X = np.random.RandomState(0).normal(size=(10_000, 4)).astype(np.float32)


@pytest.mark.parametrize("found", [X, 0.5 * X, 5 * X, abs(X) > 1, X + 3, 0 * X, 0 * X + 8])
def test_auto_leaves_inputs_of_order_one_and_constant_ones(found):
    assert feature_scale(found.astype(np.float32), "as_needed") is None


def feature_scale(features, which):
    return center_and_scale(FeatureStatistics().update(features), which)


def center_and_scale(statistics, which):
    found = scaling_of(statistics, which)
    return (found.center, found.scale) if found.changes else None


def test_blocks_of_rows_add_up():
    mixed = X * np.array([1, 30, 0.01, 0], np.float32) + 7
    blocks = FeatureStatistics()
    for block in np.split(mixed, [1, 50, 6000]):
        blocks.update(block)

    expected = feature_scale(mixed, "as_needed")
    np.testing.assert_allclose(center_and_scale(blocks, "as_needed"), expected, rtol=1e-6)


@pytest.mark.parametrize("which", ["as_needed", "each"])
def test_sparse_rows_after_dense_ones_count_as_they_would_if_dense(which):
    dense = 100 * X + 7

    found = FeatureStatistics().update(dense[:50]).update(sparse.csr_array(dense[50:]))

    expected = feature_scale(dense, which)
    np.testing.assert_allclose(center_and_scale(found, which), expected, rtol=1e-6)
    constant = np.full((50, 4), 7.0)
    mixed = FeatureStatistics().update(sparse.csr_array(dense)).update(constant)
    np.testing.assert_allclose(mixed.mean, np.vstack([dense, constant]).mean(axis=0), rtol=1e-5)


def test_sparse_entries_of_one_place_count_as_their_sum():
    once = sparse.random(1000, 4, density=0.5, format="csr", random_state=0)
    doubled = np.repeat(once.data / 2, 2), np.repeat(once.indices, 2), 2 * once.indptr
    twice = sparse.csr_array(doubled, once.shape)

    np.testing.assert_allclose(feature_scale(twice, "each"), feature_scale(once, "each"))
    assert twice.nnz == 2 * once.nnz


def pixels(unit):
    """Five pixels that take all values, one at the rim that is dark, one that is always black."""
    light = np.random.RandomState(0).uniform(-0.5, 1.5, size=(10_000, 7)).clip(0, 1)
    light[:, 5] *= 0.3 * (np.arange(10_000) % 100 == 0)
    light[:, 6] = 0
    return (unit * light).astype(np.float32)


@pytest.mark.parametrize("unit", [1e-3, 100.0])
def test_auto_gives_features_of_one_unit_one_scale(unit):
    images = pixels(unit)

    center, scale = feature_scale(images, "as_needed")

    np.testing.assert_allclose(center, images.mean(0), rtol=1e-3)
    expected = np.sqrt(np.mean(images[:, :6].var(axis=0)))
    np.testing.assert_allclose(scale, np.full(7, expected), rtol=1e-3)
    assert feature_scale(pixels(1.0), "as_needed") is None


def test_features_beside_pixels_have_a_scale_of_their_own():
    both = np.hstack([pixels(1.0), 1000 + 50 * X[:, :1]])

    center, scale = feature_scale(both, "as_needed")

    np.testing.assert_allclose(center, [*[0] * 7, 1000], rtol=1e-2)
    np.testing.assert_allclose(scale, [*[1] * 7, 50], rtol=0.02)


def test_a_flag_or_rate_beside_percentages_has_a_scale_of_its_own():
    random = np.random.RandomState(0)
    percents = random.uniform(-10, 110, size=(10_000, 20)).clip(0, 100)
    others = np.column_stack([random.randint(2, size=(10_000, 2)), random.uniform(size=10_000)])
    table = np.hstack([percents, others])
    table[0, 20:] = 0

    _, scale = feature_scale(table, "as_needed")

    np.testing.assert_allclose(scale, [*[percents.std()] * 20, 1, 1, 1], rtol=0.01)


@pytest.mark.parametrize("value", [2024.0, -8.1e18, 1e30])
@pytest.mark.parametrize("which", ["as_needed", "each"])
def test_constant_features_of_any_size_are_ignored(value, which):
    table = np.hstack([X, np.full((10_000, 1), value)])

    scaling = scaling_of(FeatureStatistics().update(table), which)

    constant = scaling.apply(table, np.zeros(5, bool))[:, 4]
    np.testing.assert_allclose(constant, 0, atol=1e-6)
    other = scaling.apply(2 * table, np.zeros(5, bool))[:, 4]
    np.testing.assert_allclose(other, np.sign(value))


@pytest.mark.parametrize("deviation", [1e-3, 0.03, 30.0, 1e4])
def test_one_narrow_or_wide_column_among_others_gets_its_own_scale(deviation):
    mixed = X * np.array([1, 1, deviation, 1], np.float32)

    _, scale = feature_scale(mixed, "as_needed")

    np.testing.assert_allclose(scale, [1, 1, deviation, 1], rtol=0.02)


@pytest.mark.parametrize("share", [0.005, 0.02, 0.1, 0.2])
@pytest.mark.parametrize("which", ["as_needed", "each"])
def test_a_code_for_missing_values_does_not_determine_the_scale(share, which):
    coded = np.where(np.random.RandomState(1).uniform(size=X.shape) < share, -999, X)

    scaling = scaling_of(FeatureStatistics().update(coded), which)

    assert scaling.heavy.all()
    np.testing.assert_allclose(scaling.scale, 1, atol=0.6)
    np.testing.assert_allclose(scaling.scale_rows(np.full((1, 4), -999.0)), -10, rtol=1e-3)


def test_values_beside_a_code_for_missing_ones_are_learnt():
    random = np.random.RandomState(0)
    signal = random.normal(size=(1000, 3))
    y = signal[:, 0] + signal[:, 1] * signal[:, 2] > 0
    raw = np.where(random.uniform(size=signal.shape) < 0.02, -999, signal)
    X_train, X_test, y_train, y_test = train_test_split(raw, y, random_state=0)
    network = CostSensitiveAuxMLP(2, 32, n_networks=2, max_epochs=30, random_state=0)
    assert network.fit(X_train, y_train).score(X_test, y_test) > 0.87


@pytest.mark.parametrize(
    ("kind", "which"), [(np.asarray, "as_needed"), (np.asarray, "each"), (sparse.csr_array, "each")]
)
@pytest.mark.parametrize("unit", [1e-3, 1, 100.0])
def test_features_of_different_units_have_scales_of_their_own(kind, which, unit):
    raw = unit * (np.array([1, 1000, 0.1, 0], np.float32) * X + 1)

    center, scale = feature_scale(kind(raw), which)

    np.testing.assert_allclose(center, raw.mean(0), rtol=1e-3)
    expected = [unit, unit * 1000, unit * 0.1, max(1, unit)]
    np.testing.assert_allclose(scale, expected, rtol=0.02)
    assert feature_scale(kind(raw), "none") is None


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_the_network_sees_standardized_inputs(kind):
    raw, y = make_classification(300, random_state=0)
    raw = (raw * 100 + 300).astype(np.float32)
    parameters = {"depth": 2, "width": 16, "max_epochs": 3, "random_state": 0, "n_bins": 0}
    standardize = "auto" if kind is np.asarray else True

    inside = CostSensitiveAuxMLP(**parameters, standardize=standardize).fit(kind(raw), y)
    before = (raw - inside.input_center_) / inside.input_scale_
    outside = CostSensitiveAuxMLP(**parameters, standardize=False).fit(before, y)

    assert outside.input_scale_ is None
    found, expected = inside.predict_cost(kind(raw)), outside.predict_cost(before)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("load", [load_digits, load_breast_cancer])
def test_raw_features_are_learnt(load):
    raw, y = load(return_X_y=True)
    split = train_test_split(raw, y, stratify=y, random_state=0)

    def errors(standardize, unit):
        X_train, X_test, y_train, y_test = split
        network = CostSensitiveAuxMLP(1, 32, n_networks=1, max_epochs=15, random_state=0)
        network.set_params(standardize=standardize).fit(unit * X_train, y_train)
        return (network.predict(unit * X_test) != y_test).mean()

    assert errors("auto", unit=100) < 0.06
    assert errors("auto", unit=0.001) < 0.06
    assert errors("auto", unit=100) < errors(False, unit=100)


def test_rows_without_weight_do_not_count():
    noise = np.vstack([X[:50], 1e6 * X[50:60]])
    y = np.arange(60) % 2
    weight = np.r_[np.ones(50), np.zeros(10)]

    network = CostSensitiveAuxMLP(1, 4, max_epochs=1, random_state=0)

    assert network.fit(noise, y, sample_weight=weight).input_scale_ is None
    assert network.fit(noise, y).input_scale_ is not None


@pytest.mark.parametrize("n", [60, 400, 10_000])
@pytest.mark.parametrize("which", ["as_needed", "each"])
def test_an_outlier_does_not_squeeze_its_column(n, which):
    narrow = X[:n].astype(np.float64)
    narrow[0, 1] = 1e6

    found = scaling_of(FeatureStatistics().update(narrow), which)

    assert found.heavy.tolist() == [False, True, False, False]
    low, median, high = np.percentile(narrow[:4096, 1], [25, 50, 75])
    if n <= 4096:
        np.testing.assert_allclose(found.center[1], median)
        np.testing.assert_allclose(found.scale[1], (high - low) / 1.349)
    rows = found.apply(narrow, np.zeros(4, dtype=bool))
    assert 0.9 < rows[1:, 1].std() < 1.1
    assert 9.9 < rows[0, 1] <= 10
    z = (narrow[:, 1] - found.center[1]) / found.scale[1]
    np.testing.assert_allclose(rows[:, 1], z / np.sqrt(1 + (z / 10) ** 2), rtol=1e-5)
    if which == "as_needed":  # the others are of order one
        np.testing.assert_array_equal(rows[:, [0, 2, 3]], X[:n, [0, 2, 3]])


def test_an_outlier_beyond_those_of_the_training_is_no_infinity():
    found = scaling_of(FeatureStatistics().update(np.vstack([X, [[1e6, 0, 0, 0]]])), "as_needed")

    rows = found.apply(np.array([[1e308, 0, 0, 0], [-1e308, 0, 0, 0]]), np.zeros(4, dtype=bool))

    np.testing.assert_allclose(rows[:, 0], [10, -10])


def test_a_rare_flag_keeps_its_deviation():
    flag = np.zeros((10_000, 1))
    flag[:20] = 1

    found = scaling_of(FeatureStatistics().update(flag), "as_needed")

    np.testing.assert_allclose(found.center, flag.mean())
    np.testing.assert_allclose(found.scale, flag.std())


def test_float32_rows_without_a_scale_are_not_copied():
    found = scaling_of(FeatureStatistics().update(X), "as_needed")

    assert found.apply(X, np.zeros(4, dtype=bool)) is X


def two_modes(share, low, high):
    """Most values below `low`, and a share of them around a thousandth to all of `high`."""
    return lambda rng, n: np.where(
        rng.random(n) < share, rng.uniform(high / 100, high, n), rng.uniform(0, low, n)
    )


SEVERAL_SCALES = {
    "a fifth far away": two_modes(0.2, 10, 1e6),
    "a hundredth far away": two_modes(0.01, 10, 1e6),
    "half far away": two_modes(0.5, 10, 1e6),
    "rounding instead of zero": two_modes(0.2, 1e-16, 1e6),
    "seconds and milliseconds": lambda r, n: r.normal(1.7e9, 1e6, n) * r.choice([1, 1e3], n),
    "three codes": lambda r, n: np.where(
        r.random(n) < 0.2, r.choice([-999, -998, -997], n), r.normal(size=n)
    ),
    "small codes": lambda r, n: np.where(
        r.random(n) < 0.6, r.choice([0, 1], n), r.uniform(1e4, 1e6, n)
    ),
    "lognormal": lambda r, n: r.lognormal(0, 5, n),
    "heavy counts": lambda r, n: r.zipf(1.2, n).astype(float),
}


@pytest.mark.parametrize("kind", SEVERAL_SCALES)
@pytest.mark.parametrize("which", ["as_needed", "each"])
def test_frequent_values_that_differ_stay_apart(kind, which):
    column = SEVERAL_SCALES[kind](np.random.default_rng(0), 4000)
    table = np.column_stack([column, X[:4000, 0]])

    scaling = scaling_of(FeatureStatistics().update(table), which)
    rows = scaling.apply(table, np.zeros(2, bool))

    assert scaling.ranked.tolist() == [True, False]
    assert (np.diff(rows[column.argsort(), 0]) >= 0).all()
    assert np.abs(rows[:, 0]).max() < 10
    levels = np.linspace(0.005, 0.995, 100)  # of which neighbours are a hundredth of the rows apart
    before, after = (np.quantile(a, levels, method="lower") for a in (column, rows[:, 0]))
    differ = np.diff(before) > 1e-9
    assert (np.diff(after)[differ] > 0.005).all()
    if which == "as_needed":  # the other column is of order one
        np.testing.assert_array_equal(rows[:, 1], X[:4000, 0])


@pytest.mark.parametrize(
    "draw",
    [
        lambda r, n: r.lognormal(0, 2, n),
        lambda r, n: r.standard_cauchy(n),
        lambda r, n: r.exponential(size=n),
        lambda r, n: r.poisson(1, n).astype(float),
        lambda r, n: np.where(r.random(n) < 0.1, -999.0, r.normal(size=n)),
        lambda r, n: (r.random(n) < 0.9) * r.lognormal(3, 1, n),
    ],
)
def test_columns_of_one_scale_are_not_ranked(draw):
    column = draw(np.random.default_rng(0), 4000)[:, np.newaxis]
    assert not scaling_of(FeatureStatistics().update(column), "each").ranked.any()


@pytest.mark.parametrize("kind", ["a fifth far away", "rounding instead of zero", "half far away"])
def test_steps_within_the_upper_scale_are_learnt(kind):
    rng = np.random.default_rng(0)
    values = SEVERAL_SCALES[kind](rng, 4000)
    upper = values > 1e4
    y = values > np.median(values[upper])
    model = CostSensitiveAuxMLP(2, 32, n_networks=2, max_epochs=8, random_state=0)
    table = np.column_stack([values, rng.normal(size=4000)])
    assert model.fit(table, y).score(table[upper], y[upper]) > 0.9
