"""The service of examples/serve.py, started as a user starts it."""

import csv
import hashlib
import importlib
import json
import os
import re
import socket
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from torch import nn

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxNet
from auxcst_sklearn.costs import cost_matrices
from auxcst_sklearn.decisions import shadow_prices
from auxcst_sklearn.onnx import to_onnx
from tests.factories import small_stack

pytestmark = pytest.mark.slow

for package in ("onnxscript", "onnxruntime", "starlette", "uvicorn"):
    pytest.importorskip(package, reason="the extras onnx and serve are not installed")

pytest.importorskip("torch", minversion="2.7")

NUMBER = re.compile(r"(?<![\w'\",.])\d+(?:\.\d+)?(?![\w'\",]*')")
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


@contextmanager
def started(*command, folder=None):
    """The address of a service, in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, *map(str, command), "--port", str(port)]
    variables = {**os.environ, "PYTHONPATH": str(SCRIPT.parent)}
    process = subprocess.Popen(command, cwd=folder, env=variables)
    try:
        yield wait_for(f"http://127.0.0.1:{port}", process)
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="module")
def service(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("service") / "model.onnx"
    to_onnx(model, table(300), path)
    with started(SCRIPT, path) as url:
        yield url


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


def read(path, costs=None):
    """A file as the service reads it, in this process."""
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        return importlib.import_module("serve").Decider(path, costs)
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


def decided(url, body):
    """The decisions for rows that the service takes, and its whole answer."""
    status, found = post(url, body)
    assert status == 200
    return [answer["decision"] for answer in found["answers"]], found


def written(model, X, folder, costs=None):
    """The file of a model, as the service reads it."""
    to_onnx(model, X, folder / "model.onnx")
    return read(folder / "model.onnx", costs)


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


FINE = {"amount": 1.0, "country": "NL", "hour": 1}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "not a row"),
        ({**FINE, "amount": "nan"}, "amount contains NaN instead of null; expec"),
        ({**FINE, "amount": "1e999"}, "amount contains a number that is too"),
        ({"rows": []}, 'expected {"rows": [...]}'),
        ({"rows": [{}], "capacity": {}, "shadow_prices": {}}, 'one of "capacity" and "shadow_pr'),
        ({"rows": [7]}, "row 0: a row is no JSON object"),
        ([1, 2], "a row is no JSON object"),
        ({"amount": 1.0, "country": "NL"}, r"inputs ['hour'] are missing"),
        ({**FINE, "shadow_prices": {}}, "inputs ['shadow_prices'] are unknown"),
        ({**FINE, "cost_matrices": 2}, "inputs ['cost_matrices']"),
        ({**FINE, "amount": "much"}, "amount contains 'much'; expected a number"),
        ({**FINE, "amount": [1, 2]}, "amount has shape (2,); expected (1,)"),
        ({**FINE, "country": 7}, "country contains 7; expected a string or null"),
        (b'{"amount": NaN, "country": "NL", "hour": 1}', "amount contains NaN"),
        (b'{"amount": 1e999, "country": "NL", "hour": 1}', "amount contains a number that is too"),
        (b"[" * 100_000, "not a row"),
        ({**FINE, "country": "\ud800"}, "surrogates not allowed"),
        ({"\ud800": 1}, "are missing"),
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
    decider = written(model, X, tmp_path)
    rows = [{"X": x, "cost_matrices": c} for x, c in zip(X.tolist(), cost.tolist())]
    found = [decider.decide(decider.arrays(row)) for row in rows]
    assert [answer["decision"] for answer in found] == model.decide(X, cost=cost).tolist()
    costs = [[answer["cost"][label] for label in model.decisions_] for answer in found]
    np.testing.assert_allclose(costs, model.predict_cost(X, cost=cost))
    assert set(found[0]["probability"]) == {"pay", "stop"}


def test_rows_without_finite_costs_get_a_reason(tmp_path):
    rng = np.random.default_rng(0)
    X, cost = rng.normal(size=(60, 2)), rng.uniform(size=(60, 2, 2))
    y = (X[:, 0] > 0).astype(int)
    decider = written(small_stack().fit(X, y, cost=cost), X, tmp_path)
    row = {"X": [1, 2], "cost_matrices": [[0, 1], [2, 0]]}
    assert decider.decide(decider.arrays(row))["decision"] in (0, 1)
    for wrong in ({"X": [1, 1e39]}, {"cost_matrices": [[0, None], [2, 0]]}):
        with pytest.raises(ValueError, match="too large, or missing where none may be"):
            decider.decide(decider.arrays({**row, **wrong}))


def test_other_requests(service):
    status, answer = post(service, b" " * (2**24 + 1))
    assert (status, "larger" in answer["error"]) == (413, True)
    with urlopen(f"{service}/schema", timeout=5) as answer:
        schema = json.load(answer)
    assert schema["classes"] == schema["decisions"] == ["pay", "stop"]
    assert schema["inputs"]["country"] == {"type": "tensor(string)", "shape": [1]}
    assert post(service, {"amount": None, "country": None, "hour": 3})[0] == 200


# ------------------------------------------------- rows of a CSV, limits, prices

READ = ["region", "age", "days"]
SERVICE = """
from serve import Decider, make_app

def costs(claim):
    amount = float(claim["claim_amount"])
    fraud = [amount, max(0.6 * amount, 15), 120 + 0.1 * amount]
    return [fraud, [0, 15, 120]]
"""


def terms_of(claims):
    amount = claims["claim_amount"]
    fraud = {"pay": amount, "call": np.maximum(0.6 * amount, 15), "investigate": 120 + 0.1 * amount}
    return {"honest": {"pay": 0, "call": 15, "investigate": 120}, "fraud": fraud}


def claims(n, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "region": rng.choice(np.array(["north", "south", None], dtype=object), size=n),
            "age": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.normal(50, 10, n).round(2)),
            "days": rng.integers(900, size=n),
            "claim_amount": rng.lognormal(6, 1, n).round(2),
        }
    )


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A network, its file, and the service that computes the costs of a row."""
    X, path = claims(400, 0), tmp_path_factory.mktemp("desk") / "model.onnx"
    y = np.where((X["days"] > 400) & (X["region"] == "south"), "fraud", "honest")
    network = small_stack().fit(X[READ], y, cost=cost_matrices(terms_of(X)))
    to_onnx(network, X[READ], path)
    (path.parent / "desk.py").write_text(f"{SERVICE}\napp = make_app(Decider('model.onnx', costs))")
    with started("-m", "uvicorn", "desk:app", folder=path.parent) as url:
        yield network, path, url


def as_strings(X, path):
    """The rows of a CSV, as its reader has them."""
    X.to_csv(path, index=False)
    with path.open(newline="") as file:
        return [*csv.DictReader(file)]


def test_rows_as_a_csv_has_them(desk, tmp_path):
    network, path, url = desk
    X = claims(50, 1)
    rows = as_strings(X, tmp_path / "claims.csv")
    assert {type(value) for row in rows for value in row.values()} == {str}
    decisions, found = decided(url, {"rows": rows})
    C = cost_matrices(terms_of(X))
    assert decisions == network.decide(X[READ], cost=C).tolist()
    assert len(set(decisions)) > 1
    costs = [list(answer["cost"].values()) for answer in found["answers"]]
    expected = network.predict_cost(X[READ], cost=C)
    np.testing.assert_allclose(costs, expected, rtol=1e-5, atol=1e-5 * expected.max())
    version = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    status, one = post(url, {**rows[7], "note": "not read by the file"})
    assert (status, one.pop("version"), found["version"]) == (200, version, version)
    assert one["decision"] == decisions[7]
    with urlopen(f"{url}/schema", timeout=5) as answer:
        schema = json.load(answer)
    assert schema["version"] == version
    assert set(schema["inputs"]) == set(READ)


def costs_of_rows():
    """The function of the service."""
    names = {}
    exec(SERVICE.replace("from serve import Decider, make_app", ""), names)
    return names["costs"]


def test_costs_need_a_file_that_reads_them(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = small_stack().fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="no input cost_matrices"):
        written(model, X, tmp_path, costs_of_rows())


def test_costs_with_labels_have_the_order_of_the_file(desk):
    _, path, _ = desk
    (row,) = as_json(claims(1, 0))
    C = cost_matrices(terms_of(row))
    frame = pd.DataFrame(C, C.classes, C.decisions)
    expected = read(path, costs_of_rows()).answer(row)
    for found in (C, frame, frame.to_numpy()):
        assert read(path, lambda row, found=found: found).answer(row) == expected
    for other in (C[::-1], frame[["call", "investigate", "pay"]], frame[::-1]):
        with pytest.raises(ValueError, match="cannot be computed, .*they have the .*; expected"):
            read(path, lambda row, other=other: other).answer(row)
    with pytest.raises(ValueError, match="cannot be computed, ZeroDivisionError"):
        read(path, lambda row: 1 / 0).answer(row)


def test_limits_of_a_batch_and_prices_of_the_day_before(desk, tmp_path):
    network, _, url = desk
    yesterday, today = claims(80, 2), claims(40, 3)
    rows, later = (as_strings(X, tmp_path / "claims.csv") for X in (yesterday, today))
    limits = {"investigate": 4, "call": 0.1}
    C = cost_matrices(terms_of(yesterday))

    decisions, found = decided(url, {"rows": rows, "capacity": limits})

    assert decisions == network.decide(yesterday[READ], cost=C, capacity=limits).tolist()
    assert decisions.count("investigate") == 4
    expected = network.predict_cost(yesterday[READ], cost=C)
    prices = shadow_prices(expected, limits, decisions=network.decisions_)
    assert found["shadow_prices"] == pytest.approx(prices, rel=1e-4)

    decisions, _ = decided(url, {"rows": later, "shadow_prices": found["shadow_prices"]})
    C = cost_matrices(terms_of(today))
    assert decisions == network.decide(today[READ], cost=C, shadow_prices=prices).tolist()
    assert decisions != network.decide(today[READ], cost=C).tolist()


def test_whole_numbers_of_json_are_rows_and_the_callers_request_stays(desk, tmp_path):
    decider = read(desk[1], costs_of_rows())
    rows = as_strings(claims(40, 3), tmp_path / "claims.csv")
    expected = decider.answer({"rows": rows, "capacity": {"investigate": 1, "call": 4}})
    for limits in ({"investigate": 1.0, "call": 4.0}, {"investigate": 1, "call": 0.1}):
        request = {"rows": rows, "capacity": limits}
        before = json.dumps(request)
        for _ in range(2):
            assert decider.answer(request) == expected
        assert json.dumps(request) == before
    with pytest.raises(ValueError, match="expected numbers of rows, or shares below 1"):
        decider.answer({"rows": rows, "capacity": {"call": 1.5}})


ROW = {"region": "south", "age": "52", "days": "417", "claim_amount": "810.5"}


@pytest.mark.parametrize(
    ("change", "about"),
    [
        ({"age": "old"}, {"field": "age", "value": "'old'", "expected": "a number or null"}),
        ({"region": 7}, {"field": "region", "value": "7", "expected": "a string or null"}),
    ],
)
def test_a_wrong_field_is_named(desk, change, about):
    status, found = post(desk[2], {**ROW, **change})
    assert status == 422
    assert found.pop("error").startswith(f"not a row: {about['field']} contains {about['value']}; ")
    assert found == about
    status, found = post(desk[2], {"rows": [ROW, {**ROW, **change}]})
    assert (status, found["row"], found["field"]) == (422, 1, about["field"])


def test_gaps(desk):
    _, _, url = desk
    assert post(url, {**ROW, "age": "", "region": None, "days": None})[0] == 200
    for amount, reason in ((None, "cannot be computed, TypeErr"), ("nan", "matrices contains NaN")):
        status, found = post(url, {**ROW, "claim_amount": amount})
        assert (status, reason in found["error"]) == (422, True)
    status, found = post(url, {"rows": [ROW, ROW, {**ROW, "claim_amount": ""}]})
    assert (status, found["row"]) == (422, 2)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"capacity": {"phone": 1}}, "expected numbers from 0 on for some of ['pay', 'call', 'inv"),
        ({"shadow_prices": {"call": -1}}, "shadow_prices contains {'call': -1}; expected numb"),
        ({"shadow_prices": {"call": "much"}}, "expected numbers from 0 on"),
        ({"capacity": [1]}, "capacity contains [1]; expected numbers"),
        ({"capacity": {"pay": 0, "call": 0, "investigate": 0}}, "capacity"),
        ({"budget": 1}, 'expected {"rows": [...]}'),
    ],
)
def test_wrong_limits_get_a_reason(desk, limits, reason):
    status, found = post(desk[2], {"rows": [ROW], **limits})
    assert status == 422
    assert reason in found["error"]


def test_whole_numbers_of_a_pipeline(tmp_path):
    X = pd.DataFrame({"shop": [1, 2, 3, 4] * 20})
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    model = make_pipeline(encoder, BayesMinimumRiskClassifier()).fit(X, X["shop"] > 2)
    decider = written(model, X, tmp_path)
    assert len({decider.answer({"shop": s})["cost"]["True"] for s in (1, "True", True)}) == 1
    for shop in (3, "3"):
        assert decider.answer({"shop": shop})["decision"] is True
    with pytest.raises(ValueError, match="shop contains 'x'; expected a number"):
        decider.arrays({"shop": "x"})


class Words(nn.Module):
    """Words with a mask, a flag and an amount."""

    def __init__(self):
        super().__init__()
        self.embed, self.hidden, self.out = nn.Embedding(50, 8), nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, ids, attention_mask, flag, amount):
        assert flag.dtype == torch.bool
        x = (self.embed(ids) * attention_mask.unsqueeze(-1)).sum(1) * flag.unsqueeze(1)
        return self.out(self.hidden(x * amount.unsqueeze(1)).relu())


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    rng = np.random.default_rng(0)
    ids = rng.integers(1, 50, (60, 6))
    X = {"ids": ids, "attention_mask": np.ones((60, 6), int), "flag": ids[:, 0] > 9}
    X["amount"] = rng.normal(size=60)
    model = CostSensitiveAuxNet(Words, max_epochs=2, random_state=0).fit(X, ids[:, 1] % 2)
    return model, written(model, X, tmp_path_factory.mktemp("words"))


def test_arrays_by_name_of_any_length(words):
    model, decider = words
    rows = [
        {"ids": [*range(1, n + 1)], "attention_mask": [1] * n, "flag": flag, "amount": 0.5}
        for n, flag in ((3, True), (3, "false"), (9, 1), (1, "TRUE"))
    ]
    alone = [decider.answer(row) for row in rows]
    for row, found in zip(rows, alone):
        given = {name: np.array([row[name]]) for name in ("ids", "attention_mask", "amount")}
        given["flag"] = np.array([str(row["flag"]).lower() in ("true", "1")])
        expected = model.predict_cost(given)[0]
        np.testing.assert_allclose([*found["cost"].values()], expected, rtol=1e-4)
    for batch in (rows[:2], rows):  # of one length, and of several
        answers = decider.answer({"rows": batch, "capacity": {"1": 1}})["answers"]
        for one, other in zip(answers, alone):
            assert one["cost"] == pytest.approx(other["cost"], rel=1e-5)
        assert sum(one["decision"] for one in answers) <= 1


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"attention_mask": [1, 1]}, r"ids has shape \(3,\); expected \(2,\)"),
        ({"ids": [], "attention_mask": []}, r"attention_mask has shape \(0,\)"),
        ({"ids": 3}, r"ids has shape \(\); expected \(3,\)"),
        ({"flag": 2}, "flag contains 2; expected true or false"),
        ({"flag": None}, "flag contains None; expected true or false"),
        ({"flag": "yes"}, "flag contains 'yes'; expected true or false"),
        ({"ids": [99, 1, 2]}, "cannot compute a row: .*99 must be within"),
    ],
)
def test_wrong_arrays_by_name(words, wrong, reason):
    row = {"ids": [1, 2, 3], "attention_mask": [1, 1, 1], "flag": True, "amount": 1}
    with pytest.raises(ValueError, match=reason):
        words[1].answer({**row, **wrong})


def test_a_text_is_a_row(tmp_path):
    texts = ["pay my bill", "lost card", "card stolen", "bill payment"] * 10
    rule = BayesMinimumRiskClassifier(cost_matrix=[[0, 1], [3, 0]])
    model = make_pipeline(TfidfVectorizer(), rule).fit(texts, ["bill", "card", "card", "bill"] * 10)
    decider = written(model, texts, tmp_path)
    found = decider.answer({"rows": [{"X": text} for text in texts[:4]]})
    assert [answer["decision"] for answer in found["answers"]] == model.predict(texts[:4]).tolist()
    with pytest.raises(ValueError, match="X contains 7; expected a string"):
        decider.answer({"X": 7})


def rounded(answer):
    """An answer without the version of the file, and its numbers apart."""
    text = json.dumps({**answer, "version": len(answer.get("version", ""))})
    return NUMBER.sub("#", text), [float(number) for number in NUMBER.findall(text)]


def test_the_answers_of_the_page(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    page = (SCRIPT.parents[1] / "docs" / "production.rst").read_text(encoding="utf-8")
    blocks = re.findall(r"code-block:: python\n\n((?:    .*\n|\n)+)", page)
    (code,) = [block for block in blocks if "cost_matrices(terms" in block]
    exec(textwrap.dedent(code), {})
    (code,) = [block for block in blocks if "make_app(" in block]
    Path("insurer.py").write_text(textwrap.dedent(code))
    asked = re.findall(r"\$ curl \S+ -d '([^$]+)'\n    (\{[^$]+?\})\n(?:\n|\Z)", page)
    assert len(asked) == 3
    with started("-m", "uvicorn", "insurer:app", folder=tmp_path) as url:
        for request, answer in asked:
            (text, numbers), (expected, printed) = (
                rounded(found) for found in (post(url, json.loads(request))[1], json.loads(answer))
            )
            assert text == expected
            np.testing.assert_allclose(numbers, printed, rtol=0.1)  # of other releases of torch


@pytest.mark.parametrize("price", [10**309, 10**400, 2**1024])
def test_amounts_that_no_float_holds_get_a_reason(desk, price):
    status, found = post(desk[2], {"rows": [ROW], "shadow_prices": {"call": price}})
    assert (status, found["field"]) == (422, "shadow_prices")


@pytest.mark.parametrize("region", [None, 5, ["south"]])
def test_costs_that_raise_any_error_get_a_reason(desk, region):
    def costs(row):
        return costs_of_rows()(row) if row["region"].lower() == "south" else [[0, 1, 2], [3, 4, 5]]

    decider = read(desk[1], costs)
    assert decider.answer(ROW)["decision"]
    with pytest.raises(ValueError, match="costs of a row cannot be computed, AttributeError"):
        decider.answer({**ROW, "region": region})


def test_files_of_others_are_refused(tmp_path):
    skl2onnx = pytest.importorskip("skl2onnx")
    path = tmp_path / "other.onnx"
    X = np.eye(4, dtype=np.float32)
    file = skl2onnx.to_onnx(LogisticRegression().fit(X, [0, 1, 0, 1]), X)
    path.write_bytes(file.SerializeToString())
    with pytest.raises(ValueError, match=r"no metadata \['classes', 'decisions'\]; expected a fi"):
        read(path)
