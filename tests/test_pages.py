"""The code of pages that go on from what a reader has: a fitted model, data, files."""

import re
import textwrap

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_classification

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from auxcst_sklearn.datasets import to_memmap
from tests.factories import small_stack
from tests.test_docs import ROOT

# An indented block after a line that ends in "::", or after the directive; no other directive.
BLOCK = re.compile(r"^(?:\.\. code-block:: python|(?!\.\. ).*::)\n\n((?:    .*\n|\n)+)", re.M)
# These need a group or a cluster, and run in the tests of training and in `test_cluster`.
ELSEWHERE = re.compile(r"init_process_group|Client\(|LocalCluster\(|ray\.")
# Ways to write the same file, by the package that reads the table.
SOURCES = ("pyarrow",)
RECIPE = re.compile(rf"import ({'|'.join(SOURCES)})\b(?s:.)*to_memmap\(")

X, Y = make_classification(300, 4, n_informative=3, n_redundant=0, random_state=0)
X = X.astype(np.float32)
FEATURES = ["amount", "age", "days_since_last"]


def fitted():
    return small_stack(cost_matrix=[[0, 1], [5, 0]]).fit(X, Y)


def models():
    return {}


def coming_from():
    return {"cost_mat": np.tile([1.0, 20.0, 0.0, 0.0], (len(X), 1))}


def production():
    for name in ("skops.io", "onnx", "skl2onnx", "onnxruntime", "starlette"):
        pytest.importorskip(name)
    pytest.importorskip("torch", minversion="2.7")  # of to_onnx
    np.save("rows.npy", X)
    return {"model": fitted(), "X_train": X, "X": X, "np": np, "table": mixed()}


def mixed():
    """A DataFrame with numbers and strings, some of them missing."""
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd"))
    table["e"] = np.where(X[:, 2] > 0, "NL", "FR")
    table.loc[::7, ["a", "e"]] = None
    return table


def payments():
    """A table with numbers, gaps, categories and labels."""
    table = pytest.importorskip("pandas").DataFrame(X[:, :3], columns=FEATURES)
    table.loc[::7, "age"] = None
    return table.assign(country=np.where(X[:, 3] > 0, "NL", "FR"), is_fraud=Y)


def scale():
    zarr = pytest.importorskip("zarr")
    pytest.importorskip("dask.array")
    payments().to_csv("payments.csv", index=False)
    zarr.save("rows.zarr", X)
    return {
        "X_sample": X,
        "y_sample": Y,
        "read_blocks": lambda: [(X[:150], Y[:150]), (X[150:], Y[150:])],
        "C": np.tile([[0.0, 1.0], [5.0, 0.0]], (len(X), 1, 1)),
        "np": np,
    }


@pytest.mark.slow
def test_inputs_of_a_file_from_a_frame(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    runtime, onnx = pytest.importorskip("onnxruntime"), pytest.importorskip("auxcst_sklearn.onnx")
    pytest.importorskip("torch", minversion="2.7")
    names = {"np": np, "table": mixed()}
    page = (ROOT / "docs" / "production.rst").read_text(encoding="utf-8")
    (code,) = [block for block in BLOCK.findall(page) if "is_numeric_dtype" in block]
    exec(textwrap.dedent(code), names)
    model = small_stack(cost_matrix=[[0, 1], [5, 0]]).fit(names["table"], Y)

    onnx.to_onnx(model, names["table"][:5], "model.onnx")
    (cost, *_) = runtime.InferenceSession("model.onnx").run(None, names["inputs"])

    np.testing.assert_allclose(cost, model.predict_cost(names["table"]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("calibration", [None, "sigmoid", "isotonic"])
def test_skops_needs_the_types_that_the_page_names(routing, calibration, monkeypatch, tmp_path):
    pytest.importorskip("skops.io")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "production.rst").read_text(encoding="utf-8")
    (code,) = [block for block in BLOCK.findall(page) if "get_untrusted_types" in block]
    rows = mixed() if calibration is None else X
    with sklearn.config_context(enable_metadata_routing=routing):
        if calibration is None:
            model = CostSensitiveEnsembleClassifier(cost_matrix=[[0, 1], [5, 0]], random_state=0)
            model.set_params(network__max_epochs=2, network__width=8, boosting__max_iter=5)
        else:
            model = BayesMinimumRiskClassifier(calibration=calibration, cv=3)
        names = {"model": model.fit(rows, Y, sample_weight=np.ones(len(Y)))}
        exec(textwrap.dedent(code), names)

    assert names["model"] is not model
    np.testing.assert_array_equal(names["model"].predict(rows), model.predict(rows))


@pytest.mark.parametrize("given", [models, coming_from, production, scale])
@pytest.mark.slow
def test_the_code_of_a_page_runs(given, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    page = ROOT / "docs" / f"{given.__name__}.rst"
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    names = {"__name__": given.__name__, **given()}
    n_run = 0
    for block in blocks:
        code = compile("\n".join(line[4:] for line in block.splitlines()), str(page), "exec")
        if ELSEWHERE.search(block) or RECIPE.search(block):
            continue
        if "model" in names and "da.from_zarr" in block:
            names["model"] = fitted()  # of the rows that the page predicts
        exec(code, names)
        n_run += 1
    assert n_run


@pytest.mark.parametrize("package", SOURCES)
def test_each_source_of_a_memory_map(package, monkeypatch, tmp_path):
    for name in (package, "pyarrow"):  # which may need a newer numpy
        pytest.importorskip(name, exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    payments().to_parquet("payments.parquet")
    page = (ROOT / "docs" / "scale.rst").read_text(encoding="utf-8")
    recipes = [block for block in BLOCK.findall(page) if RECIPE.search(block)]
    (code,) = [block for block in recipes if f"import {package}" in block]

    names = {"to_memmap": to_memmap, "features": FEATURES[::-1]}
    exec(textwrap.dedent(code), names)

    expected = payments()[FEATURES[::-1]].to_numpy(np.float32)
    np.testing.assert_array_equal(np.load("X.npy"), expected)
