"""The service of examples/serve.py, started as a user starts it."""

import importlib
import json
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitivePoolClassifier
from auxcst_sklearn.onnx import to_onnx
from tests.factories import small_stack

for package in ("onnxscript", "onnxruntime", "starlette", "uvicorn"):
    pytest.importorskip(package, reason="the extras onnx and serve are not installed")

pytest.importorskip("torch", minversion="2.7")

SCRIPT = Path(__file__).parents[2] / "examples" / "serve.py"


def table(n):
    rng = np.random.default_rng(n)
    amount = np.where(rng.uniform(size=n) < 0.2, np.nan, rng.lognormal(3, 2, size=n))
    country = rng.choice(np.array(["NL", "TW", None], dtype=object), size=n)
    return pd.DataFrame({"amount": amount, "country": country, "hour": rng.integers(24, size=n)})


@pytest.fixture(scope="module")
def model():
    X = table(300)
    y = np.where(X["hour"] > 12, "stop", "pay")
    cost = np.column_stack([np.where(y == "stop", 50.0, 0), np.where(y == "pay", 5.0, 0)])
    return small_stack().fit(X, y, cost=cost * (1 + X[["hour"]].to_numpy()))


@pytest.fixture(scope="module")
def service(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("service") / "model.onnx"
    to_onnx(model, table(300), path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(SCRIPT), str(path), "--port", str(port)]
    process = subprocess.Popen(command)
    try:
        yield wait_for(f"http://127.0.0.1:{port}", process)
    finally:
        process.terminate()
        process.wait(10)


def wait_for(url, process):
    for _ in range(300):
        assert process.poll() is None, "the service ended"
        try:
            urlopen(f"{url}/schema", timeout=5).close()
        except URLError:
            time.sleep(0.1)
        else:
            return url
    raise TimeoutError(url)


def read(path):
    """A file as the service reads it, in this process."""
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        return importlib.import_module("serve").Decider(path)
    finally:
        sys.path.pop(0)


def post(url, body):
    """Status and answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urlopen(Request(f"{url}/decide", data), timeout=30) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


def as_json(X):
    records = X.astype(object).where(X.notna(), None).to_dict("records")
    return [{name: getattr(v, "item", lambda v=v: v)() for name, v in r.items()} for r in records]


def test_eight_clients_get_the_costs_of_the_model(model, service):
    X = table(80)
    with ThreadPoolExecutor(8) as clients:
        found = list(clients.map(lambda row: post(service, row), as_json(X)))
    assert {status for status, _ in found} == {200}
    costs = [[answer["cost"][label] for label in model.classes_] for _, answer in found]
    expected = model.predict_cost(X)
    np.testing.assert_allclose(costs, expected, rtol=1e-5, atol=1e-5 * expected.max())
    assert [answer["decision"] for _, answer in found] == model.predict(X).tolist()
    p = [[answer["probability"][label] for label in model.classes_] for _, answer in found]
    np.testing.assert_allclose(p, model.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "not a row"),
        ([1, 2], "no JSON object"),
        ({"amount": 1.0, "country": "NL"}, r"inputs ['hour'] are missing or unknown"),
        ({"amount": 1.0, "country": "NL", "hour": 1, "day": 2}, "inputs ['day']"),
        ({"amount": "much", "country": "NL", "hour": 1}, "amount holds 'much'; expected a number"),
        ({"amount": [1, 2], "country": "NL", "hour": 1}, "amount has shape (2,); expected (1,)"),
        ({"amount": 1.0, "country": 7, "hour": 1}, "country holds 7; expected a string or null"),
        (b'{"amount": NaN, "country": "NL", "hour": 1}', "amount holds NaN"),
        (b'{"amount": 1e999, "country": "NL", "hour": 1}', "amount holds a number that is too"),
        (b"[" * 100_000, "not a row"),
        ({"amount": 1.0, "country": "\ud800", "hour": 1}, "surrogates not allowed"),
        ({"\ud800": 1}, "are missing or unknown"),
    ],
)
def test_bad_rows_get_a_reason(service, body, reason):
    status, answer = post(service, body)
    assert status == 422
    assert reason in answer["error"]


def test_decisions_other_than_the_classes(tmp_path):
    rng = np.random.default_rng(0)
    X, cost = rng.normal(size=(60, 2)), rng.uniform(size=(60, 2, 3))
    y = np.where(X[:, 0] > 0, "stop", "pay")
    model = BayesMinimumRiskClassifier(decisions=["wave", "ask", "block"]).fit(X, y, cost=cost)
    to_onnx(model, X, tmp_path / "model.onnx")
    decider = read(tmp_path / "model.onnx")
    rows = [{"X": x, "cost_matrices": c} for x, c in zip(X.tolist(), cost.tolist())]
    found = [decider.decide(decider.arrays(row)) for row in rows]
    assert [answer["decision"] for answer in found] == model.decide(X, cost=cost).tolist()
    np.testing.assert_allclose(
        [[answer["cost"][label] for label in model.decisions_] for answer in found],
        model.predict_cost(X, cost=cost),
    )
    assert set(found[0]["probability"]) == {"pay", "stop"}


def test_rows_without_finite_costs_get_a_reason(tmp_path):
    rng = np.random.default_rng(0)
    X, cost = rng.normal(size=(60, 2)), rng.uniform(size=(60, 2, 2))
    y = (X[:, 0] > 0).astype(int)
    to_onnx(small_stack().fit(X, y, cost=cost), X, tmp_path / "model.onnx")
    decider = read(tmp_path / "model.onnx")
    matrix = [[0, 1], [2, 0]]
    row = {"X": [1, 2], "cost_matrices": matrix}
    assert decider.decide(decider.arrays(row))["decision"] in (0, 1)
    for wrong in ({"X": [1, 1e39]}, {"cost_matrices": [[0, None], [2, 0]]}):
        with pytest.raises(ValueError, match="too large, or missing where none may be"):
            decider.decide(decider.arrays({**row, **wrong}))


def test_decisions_are_not_named_like_classes(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, "fraud", "fine")
    costs = {"decisions": ["pass", "decline", "review"], "cost_matrix": [[0, 5, 1], [9, 0, 1]]}
    model = small_stack(**costs).fit(X, y)
    to_onnx(model, X, tmp_path / "model.onnx")
    decider = read(tmp_path / "model.onnx")

    found = [decider.decide(decider.arrays({"X": row.tolist()})) for row in X]

    assert [answer["decision"] for answer in found] == model.decide(X).tolist()
    np.testing.assert_allclose(
        [[answer["cost"][label] for label in model.decisions_] for answer in found],
        model.predict_cost(X),
        rtol=1e-4,
    )
    assert set(found[0]["probability"]) == {"fine", "fraud"}


def test_a_pool_is_served(tmp_path):
    X = table(300)
    members = [
        ("boosting", HistGradientBoostingClassifier(max_iter=5)),
        ("network", small_stack(max_epochs=20)),
    ]
    labels = np.where(X["hour"] + X["amount"].isna() > 12, "stop", "pay")
    X["country"] = X["country"].astype("category")
    pool = CostSensitivePoolClassifier(members, cost_matrix=[[0, 5], [50, 0]], cv=2, random_state=0)
    to_onnx(pool.fit(X, labels), X, tmp_path / "pool.onnx")
    decider = read(tmp_path / "pool.onnx")
    found = [decider.decide(decider.arrays(row)) for row in as_json(X)]
    assert [answer["decision"] for answer in found] == pool.predict(X).tolist()


def test_other_requests(service):
    status, answer = post(service, b" " * 2**21)
    assert (status, "larger" in answer["error"]) == (413, True)
    with urlopen(f"{service}/schema", timeout=5) as answer:
        schema = json.load(answer)
    assert schema["classes"] == schema["decisions"] == ["pay", "stop"]
    assert schema["inputs"]["country"] == {"type": "tensor(string)", "shape": [1]}
    assert post(service, {"amount": None, "country": None, "hour": 3})[0] == 200
