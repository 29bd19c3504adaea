"""A decision service: one ONNX file served over HTTP with onnxruntime.

    pip install ".[serve]"  # in a clone
    python examples/serve.py model.onnx --port 8000
    curl localhost:8000/decide -d '{"amount": 99.5, "country": "NL"}'

`auxcst_sklearn.onnx.to_onnx` writes the file. A row is a JSON object with a value for each column
if the model was fitted on a DataFrame, and otherwise {"X": [...]}. Values are as a CSV has them:
numbers also as strings, True and False for 1 and 0, and null or "" for a missing one. Further
columns are ignored. Arrays by name, such as the ids and the mask of a text, have the shapes of
/schema, in which a name stands for any length. If the file has such an input, "cost_matrices" are
the costs of this row, unless a function of the service computes them:
`make_app(Decider("model.onnx", costs))`. The answer is the decision of least cost, the estimated
cost of each, the class probabilities if the model has them, and the version of the file.

    curl localhost:8000/decide -d '{"rows": [{...}, {...}], "capacity": {"review": 20}}'
    curl localhost:8000/decide -d '{"rows": [{...}], "shadow_prices": {"review": 4.5}}'

decide a batch, in which 20 rows at most are reviewed, and rows by the shadow prices that the answer
to an earlier batch has. Whole numbers in "capacity" are numbers of rows, also 1.0; numbers between
0 and 1 are shares of the batch. GET /schema lists the inputs. The process needs neither torch nor
scikit-learn; only "capacity" needs scikit-learn, and auxcst_sklearn.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import uvicorn
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

DTYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
    "tensor(string)": object,
}
LARGEST_BODY = 2**24
# Fields of a row that are refused where the file has no such input; other columns are ignored.
OF_REQUESTS = {"rows", "capacity", "shadow_prices", "cost_matrices"}
SHOWN = 60  # characters of a value in a message


class WrongValueError(ValueError):
    """A value that the model cannot read: of which field, and what was expected."""

    def __init__(self, field: str, value: Any, expected: str, problem: str = "") -> None:
        shown = repr(value)[:SHOWN]
        super().__init__(f"{field} {problem or f'contains {shown}'}; expected {expected}")
        self.about = {"field": field, "value": shown, "expected": expected}


class Decider:
    """An ONNX file with the shapes and types of its inputs; threads may share it.

    `costs` computes the cost matrix (n_classes, n_decisions) of a row from its JSON object; without
    it, requests hold the matrices that the file reads.
    """

    def __init__(
        self, path: str | Path, costs: Callable[[dict[str, Any]], Any] | None = None
    ) -> None:
        self.costs = costs
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # one row is too little work for two threads
        file = Path(path).read_bytes()
        self.version = sha256(file).hexdigest()[:12]
        self.session = onnxruntime.InferenceSession(file, options)
        self.inputs = {i.name: (i.type, tuple(i.shape[1:])) for i in self.session.get_inputs()}
        self.outputs = [output.name for output in self.session.get_outputs()]
        metadata = self.session.get_modelmeta().custom_metadata_map
        if missing := {"classes", "decisions"} - set(metadata):
            raise ValueError(
                f"{path} has no metadata {sorted(missing)}; expected a file of "
                "auxcst_sklearn.onnx.to_onnx"
            )
        self.classes, self.decisions = (json.loads(metadata[k]) for k in ("classes", "decisions"))
        if costs is not None and "cost_matrices" not in self.inputs:
            raise ValueError(
                f"{path} has no input cost_matrices for the costs; expected a file of "
                "to_onnx(..., cost_input=True)"
            )

    def schema(self) -> dict[str, Any]:
        """Types and shapes of a row, the classes, the decisions, and the version of the file."""
        inputs = {name: {"type": t, "shape": shape} for name, (t, shape) in self.inputs.items()}
        if self.costs is not None:
            del inputs["cost_matrices"]
        labels = {"classes": self.classes, "decisions": self.decisions}
        return {"inputs": inputs, **labels, "version": self.version}

    # ----------------------------------------------------------------- rows

    def arrays(self, row: Any) -> dict[str, np.ndarray]:
        """A row as arrays; raises a ValueError with a reason if it is invalid."""
        if not isinstance(row, dict):
            raise ValueError("a row is no JSON object; expected a value for each input")
        if self.costs is not None:
            matrix = matrix_of(self.costs, row, self.classes, self.decisions)
            row = {**row, "cost_matrices": matrix}
        if missing := set(self.inputs) - set(row):
            raise ValueError(f"inputs {sorted(missing)} are missing; see /schema")
        if unknown := (OF_REQUESTS & set(row)) - set(self.inputs):
            raise ValueError(f"inputs {sorted(unknown)} are unknown; see /schema")
        found, sizes = {}, dict[str, int]()  # of dimensions that are free, by their names
        for name, (_, shape) in self.inputs.items():
            found[name] = self._array(name, row[name], [sizes.get(n, n) for n in shape])
            sizes.update(zip(shape, found[name].shape[1:]))
        return found

    def _array(self, name: str, value: Any, shape: list[Any]) -> np.ndarray:
        """A value as an array of this shape, in which a name is any length."""
        kind, _ = self.inputs[name]
        found = np.asarray(value, dtype=object)
        if shape == [1] and found.ndim == 0:
            found = found[np.newaxis]
        fits = len(shape) == found.ndim and found.size > 0
        if not fits or any(isinstance(n, int) and n != m for n, m in zip(shape, found.shape)):
            raise WrongValueError(name, value, f"{tuple(shape)}", f"has shape {found.shape}")
        try:
            values = np.array([read_value(item, kind) for item in found.flat], DTYPES[kind])
        except (ValueError, OverflowError) as error:
            raise WrongValueError(name, value, expected_value(kind), str(error)) from error
        if values.dtype.kind == "f" and np.isinf(values).any():
            raise WrongValueError(
                name, value, "a finite one", "contains a number that is too large or infinite"
            )
        return values.reshape(1, *found.shape)

    # ------------------------------------------------------------- decisions

    def answer(self, body: Any) -> dict[str, Any]:
        """The answer to a row, or to a batch with its limits or shadow prices."""
        is_batch = isinstance(body, dict) and isinstance(body.get("rows"), list)
        if not is_batch or "rows" in self.inputs:
            return {**self.decide(self.arrays(body)), "version": self.version}
        rows, given = body["rows"], {key: body[key] for key in body if key != "rows"}
        if not rows or set(given) - {"capacity", "shadow_prices"} or len(given) > 1:
            raise ValueError(
                'expected {"rows": [...]}, and perhaps one of "capacity" and "shadow_prices"'
            )
        parts = []
        for i, row in enumerate(rows):
            try:
                parts.append(self.arrays(row))
            except ValueError as error:
                raise of_row(i, error) from error
        limits = {key: self._by_decision(key, value) for key, value in given.items()}
        answers, shadow_prices = self.decide_all(parts, **limits)
        return {"answers": answers, "shadow_prices": shadow_prices, "version": self.version}

    def _by_decision(self, name: str, given: Any) -> dict[Any, float]:
        """Numbers by the labels of decisions."""
        labels = {str(label): label for label in self.decisions}
        is_mapping = isinstance(given, dict) and set(given) <= set(labels)
        if not is_mapping or not all(is_amount(value) for value in given.values()):
            raise WrongValueError(name, given, f"numbers from 0 on for some of {[*labels]}")
        amounts = {labels[label]: value for label, value in given.items()}
        if name == "shadow_prices":
            return amounts
        if any(value > 1 and value % 1 for value in given.values()):
            raise WrongValueError(name, given, "numbers of rows, or shares below 1")
        # JSON has one kind of numbers: 1 and 1.0 are one row.
        return {label: value if value % 1 else int(value) for label, value in amounts.items()}

    def decide(self, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        """Decision, costs and probabilities of a row; raises a ValueError if one is not finite."""
        return self.decide_all([arrays])[0][0]

    def decide_all(
        self,
        rows: list[dict[str, np.ndarray]],
        capacity: dict[Any, float] | None = None,
        shadow_prices: dict[Any, float] | None = None,
    ) -> tuple[list[dict[str, Any]], dict[str, float]]:
        """The same for a batch, and the shadow prices of the decisions."""
        found = self._run(rows)
        index, cost = found.pop("index"), found["cost"]
        unknown = np.flatnonzero(~np.isfinite(cost).all(axis=1)).tolist()
        if unknown:
            row = unknown[0]
            values = rows[row].items()
            gaps = [k for k, v in values if v.dtype.kind == "f" and np.isnan(v).any()]
            error = ValueError(
                "the costs are not finite: a number is too large, or missing where none may be"
                + (f"; missing are {gaps}" if gaps else "")
            )
            raise of_row(row, error) if len(cost) > 1 else error
        if capacity is not None:
            index, shadow_prices = assigned(cost, capacity, self.decisions)
        elif shadow_prices is not None:
            index = (cost + [shadow_prices.get(label, 0.0) for label in self.decisions]).argmin(
                axis=1
            )
        answers: list[dict[str, Any]] = [{"decision": self.decisions[i]} for i in index]
        for name, values in found.items():
            labels = [*map(str, self.decisions if name == "cost" else self.classes)]
            for answer, row in zip(answers, values.tolist()):
                answer[name] = dict(zip(labels, row))
        return answers, {str(label): price for label, price in (shadow_prices or {}).items()}

    def _run(self, rows: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """The outputs of the file for rows, which are run one by one if their lengths differ."""
        if len({tuple(values.shape for values in row.values()) for row in rows}) == 1:
            rows = [{name: np.concatenate([row[name] for row in rows]) for name in self.inputs}]
        try:
            outputs = [self.session.run(None, row) for row in rows]
        except InvalidArgument as error:
            reason = str(error).partition("Status Message: ")[2] or error
            raise ValueError(f"the model cannot compute a row: {reason}") from error
        return dict(zip(self.outputs, map(np.concatenate, zip(*outputs))))


def of_row(i: int, error: ValueError) -> ValueError:
    """An error with the place of its row in a batch."""
    placed = ValueError(f"row {i}: {error}")
    placed.about = {"row": i, **getattr(error, "about", {})}  # type: ignore[attr-defined]
    return placed


def matrix_of(
    costs: Callable[[dict[str, Any]], Any], row: dict[str, Any], classes: Any, decisions: Any
) -> Any:
    """The cost matrix of a row; its labels, if it has some, are in the order of the file."""
    try:
        found = costs(row)
        names = ("index", "columns") if hasattr(found, "columns") else ("classes", "decisions")
        for name, wanted in zip(names, (classes, decisions)):
            if (given := getattr(found, name, None)) is not None and [*given] != wanted:
                raise ValueError(f"they have the {name} {[*given]}; expected {wanted}")
        return np.asarray(found, np.float64).tolist()
    except Exception as error:  # The function gets whatever the client has sent.
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"the costs of a row cannot be computed, {reason}") from error


def is_amount(value: Any) -> bool:
    """Whether a value is a number from 0 on that a float holds; an int has any number of digits."""
    return type(value) in (int, float) and 0 <= value <= sys.float_info.max


def assigned(
    cost: np.ndarray, capacity: dict[Any, float], decisions: list[Any]
) -> tuple[np.ndarray, dict[Any, float]]:
    """Positions of the decisions within limits, and the shadow prices of these."""
    try:
        from auxcst_sklearn.decisions import assign, shadow_prices
    except ImportError as error:
        raise ValueError(f"capacity needs {error.name} where the service runs") from error
    prices = shadow_prices(cost, capacity, decisions=decisions)
    return assign(cost, capacity, decisions=decisions), prices


# --------------------------------------------------------------------- values


def expected_value(kind: str) -> str:
    """What an input takes."""
    of_kind = {"tensor(string)": "a string or null", "tensor(int64)": "a whole number"}
    of_kind |= {"tensor(uint8)": "a byte, 0 to 255", "tensor(bool)": "true or false"}
    return of_kind.get(kind, "a number or null")


def read_value(value: Any, kind: str) -> Any:
    """A value in the type of an input; raises a ValueError that names the problem."""
    problem = f"contains {repr(value)[:SHOWN]}"
    if kind == "tensor(string)":
        if value is not None and not isinstance(value, str):
            raise ValueError(problem)
        (value or "").encode()  # raises a ValueError for half a character
        return value or ""
    whole = kind in ("tensor(int64)", "tensor(uint8)", "tensor(bool)")
    if (value is None or value == "") and not whole:
        return math.nan
    if isinstance(value, str):
        value = {"true": "1", "false": "0"}.get(value.lower(), value)
        try:
            value = (int if whole else float)(value)
        except ValueError as error:
            raise ValueError(problem) from error
    if not isinstance(value, int if whole else (int, float)):
        raise ValueError(problem)
    if math.isnan(value):
        raise ValueError("contains NaN instead of null")
    most = {"tensor(uint8)": 255, "tensor(bool)": 1}.get(kind, math.inf)
    if most < math.inf and not 0 <= value <= most:
        raise ValueError(problem)
    return value


def make_app(decider: Decider) -> Starlette:
    """The service."""

    async def decide(request: Request) -> JSONResponse:
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > LARGEST_BODY:
                raise HTTPException(413, f"the body is larger than {LARGEST_BODY} bytes")
        try:
            given = json.loads(body)
            return JSONResponse(await run_in_threadpool(decider.answer, given))
        except (ValueError, RecursionError) as error:
            about = getattr(error, "about", {})
            return JSONResponse({"error": f"not a row: {error}", **about}, 422)

    async def schema(request: Request) -> JSONResponse:
        return JSONResponse(decider.schema())

    async def refuse(request: Request, error: Exception) -> JSONResponse:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return JSONResponse({"error": getattr(error, "detail", str(error))}, status)

    routes = [Route("/decide", decide, methods=["POST"]), Route("/schema", schema)]
    return Starlette(routes=routes, exception_handlers={HTTPException: refuse})


def main() -> None:
    """Serve a file."""
    parser = argparse.ArgumentParser(description="Serve the decisions of an ONNX file.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    app = make_app(Decider(arguments.file))
    uvicorn.run(app, host=arguments.host, port=arguments.port, log_level="warning")


if __name__ == "__main__":
    main()
