"""What is checked of an array is checked of each array by name; and they go wherever arrays go."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from torch import nn

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxNet
from auxcst_sklearn.metrics import compare_costs, cost_scorer
from auxcst_sklearn.plotting import CostConfusionDisplay, CostThresholdDisplay
from tests.factories import dense

matplotlib.use("Agg")
N = 60
COST = [[0, 1], [5, 0]]
rng = np.random.default_rng(0)
y = np.arange(N) % 2
customers = [f"c{i}" for i in range(N)]
SEEN = []


class Two(nn.Module):
    """Two arrays of two numbers each."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, one, two):
        assert one.dtype == two.dtype == torch.float32
        return self.out(self.b(self.a(torch.cat([one, two], dim=1)).relu()).relu())


class Hashed(nn.Module):
    """Identifiers, of which the remainders are embedded."""

    def __init__(self):
        super().__init__()
        self.embed, self.a, self.out = nn.Embedding(100, 8), nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, ids):
        SEEN.extend(ids.flatten().tolist())
        return self.out(self.a(self.embed(ids.remainder(100)).mean(1)).relu())


class Times(nn.Module):
    """Floats of any shape, as one row."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = nn.LazyLinear(8), nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, seconds):
        return self.out(self.b(self.a(seconds.reshape(len(seconds), -1)).relu()).relu())


def net(module=Two, **parameters):
    known = {"cost_matrix": COST, "max_epochs": 1, "random_state": 0}
    return CostSensitiveAuxNet(module, **known | parameters)


def table():
    return pd.DataFrame(rng.normal(size=(N, 2)), index=customers)


X = {"one": rng.normal(size=(N, 2)), "two": rng.normal(size=(N, 2))}


# ------------------------------------------------------------------------- order of rows


def test_arrays_are_in_one_order_with_each_other_and_with_all_that_belongs_to_rows():
    one, two, label = table(), table(), pd.Series(y, customers)
    order = rng.permutation(N)
    given = {"one": one, "two": two}
    model = net().fit(given, label)
    np.testing.assert_array_equal(
        model.predict(given), model.predict(dict(reversed(given.items())))
    )
    moved = r"The index of {} has labels of that of X\['one'\] in another order"
    mixed = {"one": one, "two": two.iloc[order]}
    for call in (model.fit, model.score):
        with pytest.raises(ValueError, match=moved.format(r"X\['two'\]")):
            call(mixed, label)
        with pytest.raises(ValueError, match=moved.format("y")):
            call(given, label.iloc[order])
        with pytest.raises(ValueError, match=moved.format("sample_weight")):
            call(given, y, sample_weight=pd.Series(1.0, customers).iloc[order])
    with pytest.raises(ValueError, match=moved.format(r"X\['two'\]")):
        model.predict(mixed)
    with pytest.raises(ValueError, match=moved.format("groups")):
        model.fit(given, label, groups=pd.Series(y, customers).iloc[order])
    with pytest.raises(ValueError, match=moved.format("y")):
        BayesMinimumRiskClassifier(net(), cost_matrix=COST).fit(given, label.iloc[order])
    with pytest.raises(ValueError, match=moved.format("y")):
        compare_costs({"network": net()}, given, label.iloc[order], cost_matrix=COST, cv=2)


# ------------------------------------------------------------------------------ precision


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize("shape", [(N,), (N, 1), (N, 1, 1), (N // 2, 2, 1), (N // 3, 1, 3)])
def test_floats_whose_differences_float32_cannot_hold(shape, by_name):
    seconds = (1.7e9 + np.arange(N)).reshape(shape)
    if not by_name and len(shape) == 1:
        return  # X has two dimensions at least
    name = r"X\['seconds'\]" if by_name else "X"
    given = {"seconds": seconds} if by_name else seconds
    with pytest.raises(ValueError, match=f"Column 0 of {name}, and . in all, .* float32 cannot"):
        net(Times).fit(given, y[: len(seconds)])


def test_one_feature_of_series_and_images_that_are_nearly_constant_at_a_place():
    series = rng.normal(size=(N, 5, 2))
    series[..., 1] = 1.7e9 + np.arange(N)[:, np.newaxis]
    with pytest.raises(ValueError, match=r"Column 1 of X\['seconds'\], and 1 in all"):
        net(Times).fit({"seconds": series}, y)
    images = rng.uniform(size=(N, 1, 4, 4))
    images[:, 0, 0, 0] = 1 - 1e-9 * np.arange(N)
    assert net(Times).fit({"seconds": images}, y).predict({"seconds": images}).shape == (N,)


LARGE = 2**53 + np.arange(2 * N).reshape(N, 2)


@pytest.mark.parametrize(
    "given",
    [
        {"ids": LARGE},
        {"ids": LARGE.astype(np.uint64)},
        {"ids": LARGE.astype(object)},
        {"ids": pd.DataFrame(LARGE).astype("Int64")},
        {"ids": LARGE.tolist()},
        np.vstack([LARGE[:-1], [[0, 1]]]),
        np.vstack([LARGE[:-1], [[0, 1]]]).astype(np.uint64),
        (LARGE * 1_000_003 % 10**9).astype(np.int32),
        (LARGE * 1_000_003 % 10**9).tolist(),
    ],
    ids=["int64", "uint64", "object", "Int64", "list", "X", "X uint64", "X int32", "X list"],
)
def test_integers_arrive_as_they_are(given):
    passed = given["ids"] if isinstance(given, dict) else given
    expected = np.asarray(passed, dtype=object).ravel().tolist()
    model = net(Hashed, n_networks=1).fit(given, y)
    SEEN.clear()
    model.predict(given)
    assert expected == SEEN


def test_integers_that_cannot_arrive_are_refused():
    hashes = rng.integers(2**63, 2**64 - 1, (N, 2), dtype=np.uint64)
    with pytest.raises(ValueError, match=r"X\['ids'\] contains 18\d+, .* expected integers below"):
        net(Hashed).fit({"ids": hashes}, y)
    for given in (hashes, rng.integers(2**25, 2**40, (N, 2)).astype(float)):
        with pytest.raises(ValueError, match=r"X contains .* module takes integers alone"):
            net(Hashed).fit(given, y)
    small = rng.integers(0, 2**24, (N, 2))
    model, floats = net(Hashed).fit(small.astype(float), y), small.astype(float)
    np.testing.assert_array_equal(model.predict_cost(small), model.predict_cost(floats))
    assert model.predict(LARGE).shape == (N,)  # larger than those of the fit


def test_large_integers_are_numbers_for_other_modules():
    whole = rng.integers(0, 2**40, (N, 2))
    costs = [
        net(lambda: dense(2, 8, 8, 2)).fit(given, y).predict_cost(given)
        for given in (whole, whole.astype(float))
    ]
    np.testing.assert_array_equal(*costs)


def test_whole_numbers_where_floats_were_fitted():
    model = net().fit(X, y)
    whole = {name: np.rint(values) for name, values in X.items()}
    for dtype in (np.int64, np.int8):
        given = {name: values.astype(dtype) for name, values in whole.items()}
        np.testing.assert_array_equal(model.predict_cost(given), model.predict_cost(whole))


def test_sparse_arrays_by_name():
    with pytest.raises(ValueError, match=r"X\['one'\] is read as object of .* dense array"):
        net().fit({**X, "one": sparse.csr_array(X["one"])}, y)


# ------------------------------------------------------------------------------ all tools


@pytest.mark.parametrize("calibration", ["auto", "temperature", "sigmoid", None])
@pytest.mark.parametrize("rows", [N, 2, 1])
def test_the_rule_takes_what_its_network_takes(calibration, rows):
    rule = BayesMinimumRiskClassifier(net(), cost_matrix=COST, calibration=calibration).fit(X, y)
    given = {name: values[:rows].tolist() for name, values in X.items()}
    assert rule.predict_proba(given).shape == (rows, 2)
    np.testing.assert_allclose(rule.predict_proba(given), rule.predict_proba(X)[:rows], atol=1e-6)
    assert rule.decide(given, capacity={1: 1}).sum() <= 1
    assert rule.score(given, y[:rows]) <= 0


def test_new_costs_around_a_frozen_network():
    model = net().fit(X, y)
    frozen = FrozenEstimator(model)
    rule = BayesMinimumRiskClassifier(frozen, cost_matrix=[[0, 9], [1, 0]]).fit(X, y)
    expected = rule.predict_proba(X)[:, ::-1] * [1, 9]
    np.testing.assert_array_equal(rule.predict(X), expected.argmin(axis=1))


def test_displays_scorers_and_comparisons():
    frames = {name: pd.DataFrame(values, index=customers) for name, values in X.items()}
    label = pd.Series(y, customers)
    for given in (X, frames):
        model = net().fit(given, y)
        for one in (model, FrozenEstimator(model), BayesMinimumRiskClassifier(model).fit(given, y)):
            costs = {"cost_matrix": COST}
            curve = CostThresholdDisplay.from_estimator(one, given, y, **costs)
            assert curve.alert_rate[0] == 1
            assert CostConfusionDisplay.from_estimator(one, given, y, **costs) is not None
        assert cost_scorer(model, given, y, cost=np.take(COST, y, axis=0)) <= 0
        models = {"network": net(), "rule": BayesMinimumRiskClassifier(net())}
        found = compare_costs(models, given, label, cost_matrix=COST, cv=3)
        expected = compare_costs(models, X, y, cost_matrix=COST, cv=3)
        np.testing.assert_allclose(found["cost"], expected["cost"])
    calibrated = CalibratedClassifierCV(net(), cv=2)
    rule = BayesMinimumRiskClassifier(calibrated, cost_matrix=COST).fit(X, y)
    assert rule.predict(X).shape == (N,)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        compare_costs({"network": net()}, {**X, "two": X["two"][:-1]}, y, cost_matrix=COST)


# -------------------------------------------------------------------------------- padding


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("shortest", [20, 30])
def test_a_maximum_over_masked_steps_gets_all_of_them(shortest, side):
    class Largest(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.a, self.b = nn.Embedding(30, 8), nn.Linear(8, 8), nn.Linear(8, 8)
            self.out = nn.Linear(8, 2)

        def forward(self, input_ids, attention_mask):
            x = (self.embed(input_ids) * attention_mask.unsqueeze(-1)).amax(dim=1)
            return self.out(self.b(self.a(x).tanh()).tanh())

    length = rng.integers(shortest, 31, N)
    mask = (np.arange(30) < length[:, np.newaxis]).astype(int)[:, ::side]
    texts = {"input_ids": mask * rng.integers(1, 30, (N, 30)), "attention_mask": mask}
    model = net(Largest, learning_rate=0.05, max_epochs=3).fit(texts, y)
    short = {name: values.copy() for name, values in texts.items()}
    short["attention_mask"][:, 2:], short["attention_mask"][:, :2] = 0, 1
    beside = {name: np.vstack([texts[name], short[name]]) for name in texts}
    alone = [model.predict_cost({k: v[[i]] for k, v in short.items()}) for i in range(N)]
    np.testing.assert_allclose(np.vstack(alone), model.predict_cost(beside)[N:], atol=1e-5)


# ---------------------------------------------------------------------------------- series


@pytest.mark.parametrize("augmentation", ["flip", "shift", "flip_shift"])
def test_flips_of_series_are_refused_by_name(augmentation):
    conv = nn.Sequential(nn.Conv1d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 2))
    with pytest.raises(ValueError, match=r"augmentation .* images .* shape \(16, 3, 20\)"):
        net(lambda: conv, augmentation=augmentation).fit(rng.normal(size=(N, 3, 20)), y)
