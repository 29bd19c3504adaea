"""Fits on a GPU: its tests, seconds and memory, beside a plain torch loop and beside the CPU.

First come the tests that train, on the GPU where `device` is "auto". Then an MLP, a CNN and
the fine-tuning of a SqueezeNet are fitted on the GPU, in float32 and bf16, by our estimators and by
the loop of `raw_loop`, and last on the CPU, in float32. Data and the weights of the SqueezeNet are
random: times do not depend on them. A fit that would start after `--minutes` is left out, and the
file is written after each fit. `--small` tries all fits on the CPU.
"""

from __future__ import annotations

import gc
import re
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from auxcst_sklearn import CostSensitiveAuxNet
from benchmarks.common.folders import RESULTS, ROOT
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.paper.pretrained import Fire, SqueezeNet
from benchmarks.speed import raw_loop
from benchmarks.speed.methods import RECIPES, Case, draw, make_network, ours

TESTS = [
    *(f"tests/training/test_{name}.py" for name in ("rows", "loop", "distributed")),
    *(f"tests/estimators/test_{name}.py" for name in ("parameters", "mlp", "cnn", "auxnet")),
    *(f"tests/estimators/test_{name}.py" for name in ("fine_tuning", "checkpoints", "saving")),
]
METHODS = ("ours", "raw")
CASES = {
    "mlp": Case(100_000, (30,), 4, epochs=5, methods=METHODS),
    "cnn": Case(20_000, (3, 32, 32), 10, epochs=3, methods=METHODS),
    "net": Case(2_000, (3, 224, 224), 10, epochs=2, methods=METHODS),
}
FIRES = [name for name, part in SqueezeNet().named_modules() if isinstance(part, Fire)]


class Fit(NamedTuple):
    """What is timed."""

    case: str
    method: str
    device: str
    precision: str
    batch_size: int


class FineTuned(nn.Module):
    """SqueezeNet by hand: heads on the means of the maps of its fire modules, without gradient."""

    def __init__(self, n_classes: int) -> None:
        super().__init__()
        self.body = SqueezeNet(n_classes)
        self.maps: list[Tensor] = []
        fires = [self.body.get_submodule(name) for name in FIRES]
        for fire in fires:
            fire.register_forward_hook(lambda *call: self.maps.append(call[-1]))
        self.heads = nn.ModuleList(
            nn.Linear(2 * fire.get_parameter("expand1x1.bias").numel(), n_classes) for fire in fires
        )

    def forward_heads(self, x: Tensor) -> list[Tensor]:
        self.maps.clear()
        output = self.body(x.float() / 255)
        means = [maps.mean((2, 3)).detach() for maps in self.maps]
        return [*(head(mean) for head, mean in zip(self.heads, means, strict=True)), output]


def train_ours(fit: Fit, case: Case, cost_matrix: NDArray, X: NDArray, y: NDArray) -> None:
    """Fit one network for all epochs, with a head per layer, as the loop by hand does."""
    model: Any = ours(case, cost_matrix, recipe=RECIPES[""])
    if fit.case == "net":
        model = CostSensitiveAuxNet(
            SqueezeNet(case.n_classes),
            hidden_layers=FIRES,
            head_gradient=0,
            pretrained_lr_factor=0.1,
            early_stopping=False,
            cost_matrix=cost_matrix,
            max_epochs=case.epochs,
            random_state=0,
        )
    model.set_params(device=fit.device, precision=fit.precision, batch_size=fit.batch_size)
    model.fit(X, y)


def train_raw(fit: Fit, case: Case, cost_matrix: NDArray, X: NDArray, y: NDArray) -> None:
    """The same in plain torch; bf16 is autocast."""
    torch.manual_seed(0)
    network = FineTuned(case.n_classes) if fit.case == "net" else make_network(case, RECIPES[""])
    arrays = (cost_matrix.astype(np.float32), X, y)
    costs, rows, label = (torch.from_numpy(array).to(fit.device) for array in arrays)
    loss = raw_loop.make_loss("cross_entropy", costs, RECIPES[""].smoothing)
    sizes = {"epochs": case.epochs, "batch_size": fit.batch_size}
    with torch.autocast(fit.device, torch.bfloat16, enabled=fit.precision == "bf16"):
        raw_loop.train(network.to(fit.device), rows, label, loss, one_cycle=True, **sizes)


def time_fit(fit: Fit, case: Case, repeats: int) -> dict[str, Any]:
    """Wall seconds after a fit to two batches, and the most memory that torch held on the GPU."""
    X, y, cost_matrix = draw(case)
    train = train_ours if fit.method == "ours" else train_raw
    few, gpu, seconds = 2 * fit.batch_size, fit.device != "cpu", []
    train(fit, replace(case, epochs=1), cost_matrix, X[:few], y[:few])
    gc.collect()
    if gpu:
        torch.cuda.reset_peak_memory_stats()
    for _ in range(repeats):
        start = time.perf_counter()
        train(fit, case, cost_matrix, X, y)
        if gpu:
            torch.cuda.synchronize()
        seconds.append(round(time.perf_counter() - start, 4))
        gc.collect()
    peak = {"gpu_megabytes": round(torch.cuda.max_memory_allocated() / 1e6, 1)} if gpu else {}
    return {**fit._asdict(), "seconds": seconds, **peak}


def plan(options: Namespace) -> Iterator[Fit]:
    """All fits, those on the GPU first."""
    for name in options.sizes:
        for size in options.batch_sizes:
            for precision in ("float32", "bf16"):
                yield from (Fit(name, m, options.device, precision, size) for m in METHODS)
    for name in options.sizes if options.device != "cpu" else ():
        yield from (Fit(name, m, "cpu", "float32", options.batch_sizes[0]) for m in METHODS)


def ratios(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Median seconds of each of our fits over those by hand, in float32, and on the CPU."""
    seconds = {Fit(*(r[f] for f in Fit._fields)): statistics.median(r["seconds"]) for r in records}
    rows = []
    for fit in (fit for fit in seconds if fit.method == "ours"):
        others = {
            "over_raw": fit._replace(method="raw"),
            "over_float32": fit._replace(precision="float32"),
            "over_cpu": fit._replace(device="cpu"),
        }
        found = {k: o for k, o in others.items() if o in seconds and o != fit}
        rows.append({**fit._asdict(), **{k: seconds[fit] / seconds[o] for k, o in found.items()}})
    return rows


def run_tests(limit: float) -> dict[str, Any]:
    """Results of the tests, as far as they came in so many seconds."""
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:xdist", *TESTS]
    start, ended = time.perf_counter(), True
    try:
        output = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=limit).stdout
    except subprocess.TimeoutExpired as error:
        output, ended = error.stdout or b"", False
    results = re.findall(r"^(\S+::.*?) (PASSED|FAILED|ERROR|SKIPPED)", output.decode(), re.M)
    names = {word: [n for n, result in results if result == word] for _, word in results}
    counts = {"passed": len(names.pop("PASSED", [])), **names}
    return {"ended": ended, "seconds": round(time.perf_counter() - start), **counts}


def parse_options(arguments: Sequence[str] | None) -> Namespace:
    """Options; the small run has its own sizes and no tests."""
    parser = make_parser(__doc__, out=RESULTS / "gpu.json")
    rows = [case.rows for case in CASES.values()]
    parser.add_argument("--rows", nargs=3, type=int, default=rows, help=f"of {', '.join(CASES)}")
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[128, 1024])
    parser.add_argument("--repeats", type=int, default=3, help="fits on the GPU; one on the CPU")
    parser.add_argument("--minutes", type=float, default=7, help="no fit starts later")
    parser.add_argument("--test-seconds", type=float, default=150, help="0 for no tests")
    parser.add_argument("--small", action="store_true", help="tiny fits on the CPU, no tests")
    options = parser.parse_args(arguments)
    options.device = "cpu" if options.small else "cuda"
    cases = [replace(c, rows=n) for c, n in zip(CASES.values(), options.rows, strict=True)]
    if options.small:
        options.batch_sizes, options.repeats, options.test_seconds = [16], 1, 0
        shapes = [(30,), (3, 8, 8), (3, 32, 32)]
        cases = [replace(c, rows=32, epochs=1, shape=s) for c, s in zip(cases, shapes, strict=True)]
    elif not torch.cuda.is_available():
        parser.error("torch sees no GPU; --small runs on the CPU")
    options.sizes = dict(zip(CASES, cases, strict=True))
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(arguments)
    end = time.monotonic() + 60 * options.minutes
    result: dict[str, Any] = {
        **provenance(),
        "device": "cpu" if options.small else torch.cuda.get_device_name(),
        "cuda": torch.version.cuda,
        "threads": torch.get_num_threads(),
        "cases": [{"name": name, **asdict(case)} for name, case in options.sizes.items()],
        "tests": run_tests(options.test_seconds) if options.test_seconds else None,
    }
    records, left_out = [], []
    for fit in plan(options):
        if time.monotonic() > end:
            left_out.append(fit._asdict())
        else:
            repeats = 1 if fit.device == "cpu" else options.repeats
            records.append(time_fit(fit, options.sizes[fit.case], repeats))
            print(records[-1], flush=True)
        rows = {"fits": records, "ratios": ratios(records), "left_out": left_out}
        write_json(options.out, {**result, **rows})


if __name__ == "__main__":
    main()
