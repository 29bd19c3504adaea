"""A decision service: one ONNX file served over HTTP with onnxruntime.

    pip install "auxcst_sklearn[serve]"
    python examples/serve.py model.onnx --port 8000
    curl localhost:8000/decide -d '{"amount": 99.5, "country": "NL"}'

`auxcst_sklearn.onnx.to_onnx` writes the file. A row is a JSON object with a value for each column
if the model was fitted on a DataFrame, and otherwise {"X": [...]}. A missing value is null, and
"cost_matrices" holds the costs of this row if they are known when deciding. The response contains
the decision of least cost, the estimated cost of each, and the class probabilities if the model has
them. GET /schema lists the inputs. The process needs neither torch nor scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import uvicorn
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
    "tensor(string)": object,
}
LARGEST_BODY = 2**20


class Decider:
    """An ONNX file with the shapes and types of its inputs; threads may share it."""

    def __init__(self, path: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # one row is too little work for two threads
        self.session = onnxruntime.InferenceSession(path, options)
        self.inputs = {i.name: (i.type, tuple(i.shape[1:])) for i in self.session.get_inputs()}
        self.outputs = [output.name for output in self.session.get_outputs()]
        metadata = self.session.get_modelmeta().custom_metadata_map
        self.classes, self.decisions = (json.loads(metadata[k]) for k in ("classes", "decisions"))

    def schema(self) -> dict[str, Any]:
        """Types and shapes of a row, the classes, and the decisions."""
        inputs = {name: {"type": t, "shape": shape} for name, (t, shape) in self.inputs.items()}
        return {"inputs": inputs, "classes": self.classes, "decisions": self.decisions}

    def arrays(self, row: Any) -> dict[str, np.ndarray]:
        """A row as arrays; raises a ValueError with a reason if it is invalid."""
        if not isinstance(row, dict):
            raise ValueError("the body is no JSON object; expected a value for each input")
        if wrong := set(row) ^ set(self.inputs):
            raise ValueError(f"inputs {sorted(wrong)} are missing or unknown; see /schema")
        return {name: self._array(name, row[name]) for name in self.inputs}

    def _array(self, name: str, value: Any) -> np.ndarray:
        kind, shape = self.inputs[name]
        try:
            found = np.asarray(value, dtype=object)
            if shape == (1,) and found.ndim == 0:
                found = found[np.newaxis]
            if found.shape != shape:
                raise ValueError(f"has shape {found.shape}; expected {shape}")
            values = np.array([check_value(item, kind) for item in found.flat], DTYPES[kind])
            if values.dtype.kind == "f" and np.isinf(values).any():
                raise ValueError("holds a number that is too large or infinite")
            return values.reshape(1, *shape)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{name} {error}") from error

    def decide(self, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        """Decision, costs and probabilities of a row; raises a ValueError if one is not finite."""
        found = dict(zip(self.outputs, self.session.run(None, arrays)))
        if not all(np.isfinite(values).all() for values in found.values()):
            raise ValueError(
                "the costs are not finite: a number is too large, or missing where none may be"
            )
        answer: dict[str, Any] = {"decision": self.decisions[int(found.pop("index")[0])]}
        for name, values in found.items():
            labels = map(str, self.decisions if name == "cost" else self.classes)
            answer[name] = dict(zip(labels, values[0].tolist()))
        return answer


def check_value(value: Any, kind: str) -> Any:
    """A value with the type of an input; null if it is missing."""
    if kind == "tensor(string)":
        if value is None or isinstance(value, str):
            (value or "").encode()  # raises a ValueError for half a character
            return value or ""
        raise ValueError(f"holds {value!r}; expected a string or null")
    if value is None and kind in ("tensor(float)", "tensor(double)"):
        return math.nan
    whole = kind in ("tensor(int64)", "tensor(uint8)")
    if not isinstance(value, int if whole else (int, float)):
        raise ValueError(f"holds {value!r}; expected {'a whole number' if whole else 'a number'}")
    if math.isnan(value):
        raise ValueError("holds NaN; expected a number, or null where one is missing")
    if kind == "tensor(uint8)" and not 0 <= value <= 255:
        raise ValueError(f"holds {value!r}; expected a byte, 0 to 255")
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
            arrays = decider.arrays(json.loads(body))
            return JSONResponse(await run_in_threadpool(decider.decide, arrays))
        except (ValueError, RecursionError) as error:
            raise HTTPException(422, f"not a row: {error}") from error

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
