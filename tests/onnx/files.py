"""Files that are read by onnxruntime, and compared with their models."""

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("onnxscript", reason="the extra onnx is not installed")
pytest.importorskip("torch", minversion="2.7")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

N = 2_000


def table(n, seed):
    """Strings with missing ones, of few and of very many kinds, numbers with gaps, integers."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "gap": np.where(rng.uniform(size=n) < 0.2, np.nan, rng.normal(size=n)),
            "colour": rng.choice(np.array(["red", "green", "blue", None], object), size=n),
            "shop": np.array([f"s{i}" for i in np.minimum(rng.geometric(0.01, n), 400)], object),
            "rank": rng.integers(5, size=n),
        }
    )


def run(file, X, **more):
    """Outputs of a file by their names."""
    session = onnxruntime.InferenceSession(file.SerializeToString())
    inputs = session.get_inputs()
    if hasattr(X, "columns"):
        given = {i.name: as_input(X[c], i.type) for i, c in zip(inputs, X.columns)}
    else:
        given = {"X": X}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {**given, **more})))


def as_input(column, kind):
    if kind == "tensor(string)":
        return column.astype(object).where(column.notna(), "").to_numpy(object)[:, None]
    dtype = {"tensor(double)": np.float64, "tensor(int64)": np.int64}[kind]
    return column.to_numpy(dtype)[:, None]


def assert_agrees(model, X, file, cost=None, sure=0.99, **more):
    last, rows = model, X
    if hasattr(model, "steps"):
        last, rows = model[-1], model[:-1].transform(X) if len(model) > 1 else X
    found = run(file, X, **more)
    expected = last.predict_cost(rows) if cost is None else last.predict_cost(rows, cost)
    near = np.abs(found["cost"] - expected) <= 1e-5 * np.abs(expected).max(axis=1, keepdims=True)
    assert near.all()
    decided = np.sort(expected, axis=1)
    is_sure = decided[:, 1] - decided[:, 0] > 1e-6 * decided[:, 1]
    assert is_sure.mean() >= sure
    classes, decisions = (np.array(json.loads(one.value)) for one in file.metadata_props)
    np.testing.assert_array_equal(classes, last.classes_)
    np.testing.assert_array_equal(decisions, last.decisions_)
    np.testing.assert_array_equal(
        decisions[found["index"]][is_sure], decisions[expected.argmin(axis=1)][is_sure]
    )
    assert ("probability" in found) == hasattr(last, "predict_proba")
    if "probability" in found:
        np.testing.assert_allclose(found["probability"], model.predict_proba(X), atol=1e-6)
    for value in (*file.graph.input, *file.graph.output):
        assert value.type.tensor_type.shape.dim[0].dim_param
    one = run(file, X[:1], **{name: value[:1] for name, value in more.items()})
    np.testing.assert_allclose(one["cost"], found["cost"][:1], rtol=1e-5)
