"""Files agree with the models that they were written of; read by onnxruntime."""

import pickle
from copy import copy, deepcopy
from threading import Event, Thread

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from torch import nn

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP, CSAEPretrainedMLP
from auxcst_sklearn._estimators.export import DecisionModule
from auxcst_sklearn.losses import LOSSES, ProbabilisticLoss
from auxcst_sklearn.onnx import to_onnx
from tests.factories import QUICK, small_cnn, small_mlp, small_net, small_stack, table_boosting
from tests.onnx.files import N, assert_agrees, onnxruntime, run


def weights_bytes(model):
    return 4 * sum(parameter.numel() for parameter in model.net_.module_.parameters())


@pytest.mark.parametrize("make", [small_mlp, small_stack])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_the_decision_of_every_loss(problem, make, loss, precision):
    """As a torch module: to export each takes seconds."""
    X = np.random.default_rng(1).normal(size=(N, 4)).astype(np.float32)
    model = make(loss=loss, precision=precision).fit(problem.X, problem.y, cost=problem.cost)
    with torch.no_grad():
        module = DecisionModule(model)
        module.module.set_precision(False)
        cost, *p = module(torch.as_tensor(X))
    model.net_.module_.set_precision(False)
    expected = model.predict_cost(X)
    np.testing.assert_allclose(cost, expected, rtol=1e-5, atol=1e-6)
    assert bool(p) == hasattr(model, "predict_proba")


def test_bf16_computes_in_float32(problem):
    X = np.random.default_rng(1).normal(size=(N, 4)).astype(np.float32)
    model = small_mlp(loss="softmin", precision="bf16").fit(problem.X, problem.y, cost=problem.cost)
    file = to_onnx(model, X)
    assert model.net_.module_.bf16
    model.net_.module_.set_precision(False)
    assert_agrees(model, X, file)


def table(n, rng):
    """Numbers of several sizes, one with outliers, gaps, few levels, many levels, and integers."""
    frame = pd.DataFrame(
        {
            "time": 1.7e9 + rng.uniform(0, 1e5, size=n),
            "heavy": np.exp(4 * rng.normal(size=n)),
            "cost": np.where(rng.uniform(size=n) < 0.2, np.nan, rng.normal(size=n)),
            "colour": rng.choice(np.array(["red", "green", "blue", None], dtype=object), size=n),
            "shop": np.array([f"s{i}" for i in rng.integers(60, size=n)], dtype=object),
            "rank": rng.integers(5, size=n),
        }
    )
    return frame.astype({"rank": "category"})


@pytest.mark.slow
def test_a_table_of_every_kind_of_column():
    rng = np.random.default_rng(0)
    X, Z = table(400, rng), table(N, rng)
    Z.loc[:20, "shop"] = "never seen"
    y = np.where(X["heavy"] > 1, "late", np.where(X["cost"].isna(), "lost", "ok"))
    model = small_stack(max_epochs=5).fit(X, y, cost=rng.uniform(1, 2, size=(400, 3)))
    assert model._inputs.levels.gaps.any()
    assert model._inputs.bins.kept.any()
    file = to_onnx(model, X)
    assert [value.name for value in file.graph.input][:3] == ["time", "heavy", "cost_"]
    assert_agrees(model, Z, file)


def test_the_default_is_one_small_file_and_the_exporter_prints_nothing(tmp_path, recwarn, capfd):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 20)) * 100, rng.integers(3, size=200)
    model = CostSensitiveAuxMLP(max_epochs=1, **QUICK).fit(X, y)
    recwarn.clear()
    file = to_onnx(model, X, tmp_path / "model.onnx")
    assert not recwarn.list
    assert "torchvision" not in "".join(capfd.readouterr())
    data = (tmp_path / "model.onnx").read_bytes()
    assert data == file.SerializeToString() == file.model.SerializeToString()
    assert len(repr(file).splitlines()) == 1
    assert "inputs=['X'], outputs=['cost', 'index', 'probability']" in repr(file)
    assert len(data) <= 1.1 * weights_bytes(model)
    assert_agrees(model, rng.normal(size=(N, 20)) * 100, file)


@pytest.mark.slow
def test_costs_known_when_deciding_and_categories_in_an_array(problem):
    rng = np.random.default_rng(0)
    matrices = rng.uniform(0.1, 1, size=(60, 3, 3)) * (1 - np.eye(3))
    X = np.column_stack([problem.X, rng.integers(3, size=60) * 10])
    model = small_stack(categorical_features=[4])
    model.fit(X, problem.y, cost=matrices)
    file = to_onnx(model, X)
    assert [value.name for value in file.graph.input] == ["X", "cost_matrices"]
    Z = np.column_stack([rng.normal(size=(N, 4)), rng.integers(4, size=N) * 10])
    known = rng.uniform(1, 9, size=(N, 3, 3))
    assert_agrees(model, Z, file, known, cost_matrices=known)


@pytest.mark.slow
def test_images_of_bytes_and_a_cost_network():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 255, size=(40, 3, 8, 8), dtype=np.uint8), np.arange(40) % 3
    Z = rng.integers(0, 255, size=(N, 3, 8, 8), dtype=np.uint8)
    model = small_cnn(augmentation="flip").fit(X, y, cost=rng.uniform(size=(40, 3)))
    assert_agrees(model, Z, to_onnx(model, X))


@pytest.mark.slow
def test_sparse_rows_without_selection(problem):
    X = problem.X * (problem.X > 0)
    model = small_mlp().fit(X, problem.y)
    assert_agrees(model, X, to_onnx(model, sparse.coo_matrix(X)))


@pytest.mark.slow
def test_auto_encoders(problem):
    X = np.random.default_rng(1).normal(size=(N, 4))
    model = CSAEPretrainedMLP(2, 8, pretrain_epochs=1, **QUICK)
    model.fit(problem.X, problem.y, cost=problem.cost)
    assert_agrees(model, X, to_onnx(model, X))


@pytest.mark.slow
def test_modules_of_the_user(problem):
    X = np.random.default_rng(1).normal(size=(N, 4)).astype(np.float32)
    body = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.BatchNorm1d(8), nn.Linear(8, 3))
    model = small_net(body, n_networks=2).fit(problem.X, problem.y)
    assert_agrees(model, X, to_onnx(model, X))


@pytest.mark.slow
def test_modules_that_take_integers(problem):
    words = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(12, 6), nn.ReLU())
    words.append(nn.Linear(6, 3))
    tokens = np.random.default_rng(1).integers(9, size=(60, 3))
    model = small_net(words).fit(tokens, problem.y)
    assert_agrees(model, tokens.astype(np.float32), to_onnx(model, tokens))


class HashedIds(nn.Module):
    """Large identifiers, of which the remainders are embedded."""

    def __init__(self):
        super().__init__()
        self.embed, self.hidden, self.out = nn.Embedding(50, 4), nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, ids):
        return self.out(self.hidden(self.embed(ids.remainder(50)).mean(1)).relu())


@pytest.mark.slow
def test_large_identifiers(problem):
    ids = np.random.default_rng(1).integers(2**40, size=(60, 2))
    model = small_net(HashedIds).fit(ids, problem.y)
    found = run(to_onnx(model, ids), ids.astype(float))  # exact up to 2**53
    np.testing.assert_allclose(found["cost"], model.predict_cost(ids), rtol=1e-5)


class Steps(nn.Module):
    """torch's transformer over steps of floats, with a mask of padding."""

    def __init__(self):
        super().__init__()
        block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.embed, self.encoder = nn.Linear(3, 8), nn.TransformerEncoder(block, 2)
        self.out = nn.Linear(8, 3)

    def forward(self, x, attention_mask):
        z = self.encoder(self.embed(x), src_key_padding_mask=attention_mask == 0)
        m = attention_mask.unsqueeze(-1).to(z)
        return self.out((z * m).sum(1) / m.sum(1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.int64, bool])
def test_padding_masks_of_series(problem, kind):
    rng = np.random.default_rng(1)
    mask = (np.arange(9) < rng.integers(3, 10, (60, 1))).astype(kind)
    X = {"x": rng.normal(size=(60, 9, 3)), "attention_mask": mask}
    model = small_net(Steps).fit(X, problem.y)
    file = to_onnx(model, X)
    session = onnxruntime.InferenceSession(file.SerializeToString())
    for length in (1, 9, 14):
        x = rng.normal(size=(5, length, 3)).astype(np.float32)
        given = {"x": x, "attention_mask": np.ones((5, length), kind)}
        (found,) = session.run(["cost"], given)
        np.testing.assert_allclose(found, model.predict_cost(given), rtol=1e-4)
    whole = {**X, "x": np.rint(X["x"]).astype(int)}  # where floats were fitted
    types = [[i.type for i in one.graph.input] for one in (file, to_onnx(model, whole))]
    assert types[0] == types[1]


@pytest.mark.slow
def test_a_model_serves_while_its_file_is_written(problem):
    model = small_mlp(precision="bf16").fit(problem.X, problem.y)
    expected, found, stop = model.predict_cost(problem.X), [], Event()

    def serve():
        while not stop.is_set():
            found.append(model.predict_cost(problem.X))

    thread = Thread(target=serve)
    thread.start()
    try:
        to_onnx(model, problem.X)
    finally:
        stop.set()
        thread.join()
    assert len(found) > 5
    for cost in found:
        np.testing.assert_array_equal(cost, expected)


class Moody(nn.Module):
    def __init__(self):
        super().__init__()
        self.output = nn.Linear(4, 3)

    def forward(self, x):
        return self.output(x.sin() if x.sum() > 0 else x.cos())


def test_a_module_that_cannot_be_exported_is_named(problem):
    model = small_net(nn.Linear(4, 3), alpha=0).fit(problem.X, problem.y)
    model.net_.module_.networks[0].body = Moody()
    with pytest.raises(
        ValueError, match=r"^Moody with the loss .* cannot be exported to ONNX: \w+, "
    ):
        to_onnx(model, problem.X)


@pytest.mark.slow
def test_many_classes_with_costs_per_sample():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)).astype(np.float32), np.arange(300) % 70
    model = small_mlp().fit(X, y, cost=rng.uniform(1, 2, size=(300, 70)))
    assert_agrees(model, X, to_onnx(model, X))


def test_a_pipeline_of_columns():
    rng = np.random.default_rng(0)
    X, Z = table(300, rng), table(N, rng)
    for part in (X, Z):
        part["rank"] = part["rank"].astype(np.int64)
        part["colour"] = part["colour"].fillna("")
    y = (X["heavy"] > 1).to_numpy()
    steps = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["time", "cost"]),
        (OneHotEncoder(handle_unknown="ignore"), ["colour", "shop"]),
        ("passthrough", ["rank"]),
    )
    model = make_pipeline(steps, small_stack()).fit(X, y)
    assert_agrees(model, Z, to_onnx(model, X))


@pytest.mark.slow
@pytest.mark.parametrize("last", [LogisticRegression(), small_mlp(n_networks=1)])
def test_integers_and_floats_in_one_step_of_a_pipeline(last):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(18, 80, N), "amount": rng.lognormal(4, 1, N)})
    X["channel"] = rng.choice(["web", "shop"], N)
    steps = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["channel"]),
        (StandardScaler(), ["age", "amount"]),
    )
    model = make_pipeline(steps, last).fit(X, X["age"] > 40)

    file = to_onnx(BayesMinimumRiskClassifier(FrozenEstimator(model)).fit(X, X["age"] > 40), X)

    kinds = {value.name: value.type.tensor_type.elem_type for value in file.graph.input}
    assert kinds["age"] == kinds["amount"]
    found = run(file, X)
    np.testing.assert_allclose(found["probability"], model.predict_proba(X), atol=1e-5)


def test_columns_of_a_pipeline_keep_their_names(problem):
    X = pd.DataFrame(problem.X[:, :3], columns=["net amount", "a-x", "a_x"])
    model = make_pipeline(StandardScaler(), BayesMinimumRiskClassifier()).fit(X, problem.y)

    file = to_onnx(model, X)

    assert [value.name for value in file.graph.input] == list(X.columns)
    assert_agrees(model, X, file)


INTEGERS = {
    "numpy": lambda k: k.fillna(0).astype(np.int64),
    "nullable": lambda k: k.astype("Int64"),
    "small": lambda k: k.astype("UInt8"),
    "arrow": lambda k: k.astype("Int64").astype("int64[pyarrow]"),
    "polars": lambda k: k,
}


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_that_may_be_missing_are_nan_in_a_pipeline(kind):
    """Also where the rows that determine the inputs lack none."""
    rng = np.random.default_rng(0)
    k = pd.Series(rng.integers(9, size=80)).astype("Float64")
    k[40:] = pd.NA
    X = pd.DataFrame({"a": rng.normal(size=80), "k": INTEGERS[kind](k)})
    if kind == "polars":
        X = pl.DataFrame({"a": X["a"], "k": [None if v is pd.NA else int(v) for v in k]})
    steps = make_column_transformer(
        (SimpleImputer(strategy="most_frequent"), ["k"]), remainder="passthrough"
    )
    model = make_pipeline(steps, BayesMinimumRiskClassifier()).fit(X, (X["a"] > 0).to_numpy())
    expected = model[-1].predict_cost(steps.transform(X))
    file = to_onnx(model, X[:5])
    k = k.fillna(0) if kind == "numpy" else k
    given = k.to_numpy(float, na_value=np.nan)[:, None]
    session = onnxruntime.InferenceSession(file.SerializeToString())
    found = session.run(None, {"a": X["a"].to_numpy()[:, None], "k": given})
    np.testing.assert_allclose(found[0], expected, rtol=1e-5)


class Sampler(BaseEstimator):
    """In the manner of imbalanced-learn: it has no `transform`."""

    def fit_resample(self, X, y):
        return X, y


def test_steps_that_resample_are_left_out(problem):
    scaler = StandardScaler().fit(problem.X)
    model = BayesMinimumRiskClassifier().fit(scaler.transform(problem.X), problem.y)
    for steps in ([("sampler", Sampler())], [("scale", scaler), ("sampler", Sampler())]):
        file = to_onnx(Pipeline([*steps, ("model", model)]), problem.X)
        rows = scaler.transform(problem.X) if len(steps) > 1 else problem.X
        found = run(file, problem.X)["cost"]
        np.testing.assert_allclose(found, model.predict_cost(rows), rtol=1e-5)


def test_mistakes(problem):
    X, y = problem.X, problem.y
    with pytest.raises(TypeError, match="model is RandomForestClassifier; expected a classifier"):
        to_onnx(RandomForestClassifier().fit(X, y), X)
    with pytest.raises(ValueError, match="cost_input=True needs class probabilities"):
        to_onnx(small_mlp(loss="squared").fit(X, y), X, cost_input=True)
    pipe = make_pipeline(FunctionTransformer(np.log1p), small_mlp()).fit(np.abs(X), y)
    with pytest.raises(ValueError, match="^The steps before the classifier cannot be converted by"):
        to_onnx(pipe, X)
    for model in (small_mlp().fit(X, y), make_pipeline(StandardScaler(), small_mlp()).fit(X, y)):
        for rows, message in ((X[:, :2], "X has 2 features"), (None, "Expected 2D array")):
            with pytest.raises(ValueError, match=message):
                to_onnx(model, rows)


@pytest.mark.slow
def test_columns_with_the_names_of_inner_values(problem):
    X = pd.DataFrame(problem.X[:, :3], columns=["rows", "codes0", "g"])
    X["rows"] = np.where(X["rows"] > 0, "a", "b")
    model = small_mlp().fit(X, problem.y)
    assert_agrees(model, X, to_onnx(model, X))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.asarray, lambda X: pd.DataFrame(X, columns=["a", "b"])])
def test_fractions_of_single_precision_as_categories(kind):
    X = np.random.default_rng(0).choice([0.05, 0.1, 0.19], size=(60, 2)).astype(np.float32)
    model = small_mlp(categorical_features=[0, 1]).fit(kind(X), X[:, 0] > 0.06)
    assert_agrees(model, kind(X), to_onnx(model, kind(X)))


@pytest.mark.slow
def test_lists_that_mix_strings_and_numbers():
    rows = [["ab"[i % 2], float(i)] for i in range(60)]
    model = small_mlp(categorical_features=[0]).fit(rows, [0, 1] * 30)
    file = to_onnx(model, rows)
    assert [given.name for given in file.graph.input] == ["x0", "x1"]
    session = onnxruntime.InferenceSession(file.SerializeToString())
    inputs = {"x0": np.array([["a"], ["b"]], object), "x1": np.array([[0.0], [7.0]])}
    expected = model.predict_cost([["a", 0.0], ["b", 7.0]])
    np.testing.assert_allclose(session.run(None, inputs)[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_identifiers_that_float64_merges_are_refused():
    X = np.column_stack([-(2**53) - np.arange(60) % 3, np.arange(60)])
    model = small_mlp(categorical_features=[0]).fit(X, np.arange(60) % 3 == 0)
    with pytest.raises(ValueError, match="differs from the model .* in row"):
        to_onnx(model, X)


def test_what_no_file_can_hold_is_refused(problem):
    X = pd.DataFrame({"g": problem.X[:, 0], "s": list("ab") * 30, "b": [b"u", b"v"] * 30})
    scaler = make_column_transformer((StandardScaler(), ["g"]), remainder="passthrough")
    mixed = make_pipeline(scaler.set_output(transform="pandas"), small_mlp())
    with pytest.raises(ValueError, match="return strings in column 1, beside numbers"):
        to_onnx(mixed.fit(X[["g", "s"]], problem.y), X[["g", "s"]])
    model = small_mlp().fit(X[["g", "b"]], problem.y)
    with pytest.raises(ValueError, match="'b' of X has categories such as b'u'"):
        to_onnx(model, X[["g", "b"]])


@pytest.mark.slow
@pytest.mark.parametrize("make", [small_mlp, lambda: BayesMinimumRiskClassifier(table_boosting())])
def test_an_empty_string_is_missing(make):
    """In the training, in predictions, and in the file."""
    X = pd.DataFrame({"s": ["", "z", None, "w"] * 20, "x": range(80)})
    model = make().fit(X, [0, 1, 0, 0] * 20)
    empty, missing = X.assign(s=""), X.assign(s=None)
    assert_agrees(model, X, to_onnx(model, X))
    np.testing.assert_array_equal(model.predict_proba(empty), model.predict_proba(missing))


@pytest.mark.parametrize(
    ("names", "wrong"), [(["cost", "cost_"], "cost_"), (["", "a"], ""), (["a", "/3"], "/3")]
)
def test_names_of_columns_that_no_input_can_have(names, wrong):
    X = pd.DataFrame(np.eye(12, 2), columns=names)
    model = BayesMinimumRiskClassifier().fit(X, np.arange(12) % 2)
    with pytest.raises(ValueError, match=f"X has a column '{wrong}', a name that no input"):
        to_onnx(model, X)


@pytest.mark.slow
@pytest.mark.parametrize("copied", [copy, deepcopy, lambda file: pickle.loads(pickle.dumps(file))])
def test_a_file_is_a_value(problem, copied):
    file = to_onnx(small_mlp().fit(problem.X, problem.y), problem.X)
    found = copied(file)
    assert (type(found), found) == (type(file), file)
    assert found.SerializeToString() == file.SerializeToString()
    with pytest.raises(AttributeError, match="ir_version"):
        found.ir_version = 8  # which would not be written
    found.model.ir_version = 8
    assert type(file.model).FromString(found.SerializeToString()).ir_version == 8


class Products(ProbabilisticLoss):
    """Its probabilities need an operation that torch does not export."""

    def __call__(self, outputs, target):
        label = target.label.view(-1, 1).expand(*outputs.shape[:-1], 1)
        return -outputs.log_softmax(-1).gather(-1, label).squeeze(-1)

    def probabilities(self, outputs):
        p = outputs.sigmoid().cumprod(-1)
        return p / p.sum(-1, keepdim=True)


def test_a_loss_that_cannot_be_exported_is_named(problem):
    model = small_mlp(loss=Products(), temperature=1.0).fit(problem.X, problem.y)
    with pytest.raises(ValueError, match=r"loss Products\(\) cannot be exported .*prod") as error:
        to_onnx(model, problem.X)
    assert "\x1b" not in str(error.value)


@pytest.mark.parametrize("unit", ["ns", "D"])
def test_labels_that_json_does_not_know_are_refused_first(problem, unit):
    """Dates in nanoseconds would become integers without a word."""
    days = np.array(["2024-01-01", "2024-02-01", "2024-03-01"], f"datetime64[{unit}]")
    model = BayesMinimumRiskClassifier().fit(problem.X, days[problem.y])
    with pytest.raises(ValueError, match=r"^classes_ are \[.*expected texts, numbers or booleans"):
        to_onnx(model, problem.X[:0])  # before the rows are read


def test_columns_with_missing_strings_are_named():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"region": rng.choice(["a", "b"], 200), "age": rng.normal(size=200)})
    y = (X["region"] == "a").astype(int)
    X.loc[::7, "region"] = None
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer((encoder, ["region"]), remainder="passthrough")
    model = BayesMinimumRiskClassifier(make_pipeline(columns, HistGradientBoostingClassifier()))
    with pytest.raises(ValueError, match=r"Strings are missing in \['region'\]"):
        to_onnx(model.fit(X, y), X)
