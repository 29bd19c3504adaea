"""Fits on a GPU: its tests, seconds and memory, beside a plain torch loop and beside the CPU.

First the tests that train run, on the GPU where `device` is "auto". Then our estimators and the
loop of `raw_loop` fit an MLP, a CNN, a SqueezeNet and a transformer of tokens and masks by name
(both fine-tuning, from random weights, on random rows) on the GPU in float32 and bf16, and last on
the CPU. No fit starts after `--minutes`; the file is written after each. `--small` tries all fits
on the CPU.
"""

from __future__ import annotations

import gc
import re
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from collections import namedtuple
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

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
    *(f"tests/estimators/test_{name}.py" for name in ("parameters", "mlp", "cnn", "fine_tuning")),
]
METHODS = ("ours", "raw")
CASES = {
    "mlp": Case(100_000, (30,), 4, 5, METHODS),
    "cnn": Case(20_000, (3, 32, 32), 10, 3, METHODS),
    "net": Case(2_000, (3, 224, 224), 10, 2, METHODS),
    "tokens": Case(4_000, (32,), 50, 2, METHODS, width=384, depth=6),
}
# Shapes of rows in the small run.
SMALL = {"mlp": (30,), "cnn": (3, 8, 8), "net": (3, 32, 32), "tokens": (8,)}
WORDS = 5000
FIRES = [name for name, part in SqueezeNet().named_modules() if isinstance(part, Fire)]


Fit = namedtuple("Fit", "case method device precision batch_size")


class FineTuned(nn.Module):
    """SqueezeNet by hand: heads on the means of the maps of its fire modules, without gradient."""

    def __init__(self, n_classes: int) -> None:
        super().__init__()
        self.body, self.heads, self.maps = SqueezeNet(n_classes), nn.ModuleList(), []
        for fire in map(self.body.get_submodule, FIRES):
            fire.register_forward_hook(lambda *call: self.maps.append(call[-1]))
            self.heads.append(nn.Linear(2 * len(fire.expand1x1.bias), n_classes))

    def forward_heads(self, x: Tensor) -> list[Tensor]:
        self.maps.clear()
        output = self.body(x.float() / 255)
        pairs = zip(self.heads, self.maps, strict=True)
        return [*(head(maps.mean((2, 3)).detach()) for head, maps in pairs), output]


class Encoder(nn.Module):
    """Transformer blocks, the mean over tokens, and by hand the same heads as ours."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, case.width)
        block = nn.TransformerEncoderLayer(
            case.width, 12, 4 * case.width, activation="gelu", batch_first=True
        )
        self.blocks = nn.TransformerEncoder(block, case.depth, enable_nested_tensor=False)
        self.out = nn.Linear(case.width, case.n_classes)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        x = self.blocks(self.embed(input_ids), src_key_padding_mask=attention_mask == 0)
        return self.out(mean_of_tokens(x, attention_mask))


class HeadedEncoder(nn.Module):
    def __init__(self, case: Case) -> None:
        super().__init__()
        self.body = Encoder(case)
        heads = (nn.Linear(case.width, case.n_classes) for _ in range(case.depth - 1))
        self.heads = nn.ModuleList(heads)

    def forward_heads(self, ids: Tensor) -> list[Tensor]:
        mask, x = torch.ones_like(ids), self.body.embed(ids)
        outputs = []
        for head, block in zip([*self.heads, self.body.out], self.body.blocks.layers):
            x = block(x, src_key_padding_mask=mask == 0)
            mean = mean_of_tokens(x, mask)
            outputs.append(head(mean if head is self.body.out else mean.detach()))
        return outputs


def mean_of_tokens(x: Tensor, mask: Tensor) -> Tensor:
    weight = mask.unsqueeze(-1).to(x.dtype)
    return (x * weight).sum(1) / weight.sum(1)


def tokens(case: Case) -> tuple[NDArray, NDArray, NDArray]:
    """Rows of words, of which each class has its own, without padding."""
    _, y, cost_matrix = draw(replace(case, shape=(1,)))
    rng, of_class = np.random.default_rng(0), WORDS // case.n_classes
    ids = rng.integers(of_class, size=(case.rows, *case.shape)) + of_class * y[:, np.newaxis]
    return ids, y, cost_matrix


def train_ours(fit: Fit, case: Case, cost_matrix: NDArray, X: Any, y: NDArray) -> None:
    """Fit one network for all epochs, with a head per layer, as the loop by hand does."""
    model: Any = ours(case, cost_matrix, recipe=RECIPES[""])
    if fit.case == "net":
        tuning: dict[str, Any] = {"pretrained": True, "early_stopping": False}
        tuning |= {"hidden_layers": FIRES, "max_epochs": case.epochs}
        model = CostSensitiveAuxNet(SqueezeNet(case.n_classes), cost_matrix=cost_matrix, **tuning)
    elif fit.case == "tokens":
        tuning = {"pretrained": True, "early_stopping": False, "max_epochs": case.epochs}
        model = CostSensitiveAuxNet(Encoder, module__case=case, cost_matrix=cost_matrix, **tuning)
        X = {"input_ids": X, "attention_mask": np.ones_like(X)}
    model.set_params(device=fit.device, precision=fit.precision, batch_size=fit.batch_size)
    model.set_params(random_state=0).fit(X, y)


def train_raw(fit: Fit, case: Case, cost_matrix: NDArray, X: NDArray, y: NDArray) -> None:
    """The same in plain torch; bf16 is autocast."""
    torch.manual_seed(0)
    network: Any
    if fit.case == "tokens":
        network = HeadedEncoder(case)
    else:
        is_net = fit.case == "net"
        network = FineTuned(case.n_classes) if is_net else make_network(case, RECIPES[""])
    arrays = (cost_matrix.astype(np.float32), X, y)
    costs, rows, label = (torch.from_numpy(array).to(fit.device) for array in arrays)
    loss = raw_loop.make_loss("cross_entropy", costs, RECIPES[""].smoothing)
    sizes: dict[str, Any] = {"epochs": case.epochs, "batch_size": fit.batch_size}
    with torch.autocast(fit.device, torch.bfloat16, enabled=fit.precision == "bf16"):
        raw_loop.train(network.to(fit.device), rows, label, loss, one_cycle=True, **sizes)


def time_fit(fit: Fit, case: Case, repeats: int) -> dict[str, Any]:
    """Wall seconds, on a GPU after a fit to two batches, and the most memory in the last one."""
    X, y, cost_matrix = tokens(case) if fit.case == "tokens" else draw(case)
    train = train_ours if fit.method == "ours" else train_raw
    few, gpu, seconds = 2 * fit.batch_size, fit.device != "cpu", []
    if gpu:
        train(fit, replace(case, epochs=1), cost_matrix, X[:few], y[:few])
    for _ in range(repeats if gpu else 1):
        if gpu:
            gc.collect()  # a network that is left over is not of this fit
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        train(fit, case, cost_matrix, X, y)
        if gpu:
            torch.cuda.synchronize()
        seconds.append(round(time.perf_counter() - start, 4))
    peak = round(torch.cuda.max_memory_allocated() / 1e6, 1) if gpu else None
    return {**fit._asdict(), "seconds": seconds, "gpu_megabytes": peak}


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
    done = [r for r in records if "error" not in r]
    seconds = {Fit(*(r[f] for f in Fit._fields)): statistics.median(r["seconds"]) for r in done}
    rows = []
    for fit in (fit for fit in seconds if fit.method == "ours"):
        float32 = fit._replace(precision="float32")
        others = {"over_raw": fit._replace(method="raw"), "over_float32": float32}
        others["over_cpu"] = float32._replace(device="cpu")
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
    counts: dict[str, Any] = {"ended": ended, "seconds": round(time.perf_counter() - start)}
    counts["passed"] = sum(result == "PASSED" for _, result in results)
    return {**counts, "others": [" ".join(pair) for pair in results if pair[1] != "PASSED"]}


def parse_options(arguments: Sequence[str] | None) -> Namespace:
    """Options; the small run has its own sizes and no tests."""
    parser = make_parser(__doc__, out=RESULTS / "gpu.json")
    rows = [case.rows for case in CASES.values()]
    parser.add_argument("--rows", nargs=4, type=int, default=rows, help="of each case")
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[128, 512])
    parser.add_argument("--repeats", type=int, default=3, help="fits on the GPU; one on the CPU")
    parser.add_argument("--minutes", type=float, default=7, help="no fit starts later")
    parser.add_argument("--test-seconds", type=float, default=120, help="0 for no tests")
    parser.add_argument("--small", action="store_true", help="tiny fits on the CPU, no tests")
    options = parser.parse_args(arguments)
    options.device = "cpu" if options.small else "cuda"
    cases = zip(CASES.items(), options.rows, strict=True)
    options.sizes = {name: replace(case, rows=rows) for (name, case), rows in cases}
    if options.small:
        options.batch_sizes, options.test_seconds = [16], 0
        for name, shape in SMALL.items():
            sizes = {"width": 24, "depth": 2} if name == "tokens" else {}
            options.sizes[name] = replace(CASES[name], rows=100, epochs=1, shape=shape, **sizes)
    elif not torch.cuda.is_available():
        parser.error("torch sees no GPU; --small runs on the CPU")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(arguments)
    end = time.monotonic() + 60 * options.minutes
    result: dict[str, Any] = {
        **provenance(),
        "device": "cpu" if options.small else torch.cuda.get_device_name(),
        "threads": torch.get_num_threads(),
        "cases": [{"name": name, **asdict(case)} for name, case in options.sizes.items()],
        "tests": run_tests(options.test_seconds) if options.test_seconds else None,
    }
    records, fits = [], list(plan(options))
    while True:
        rest = {"ratios": ratios(records), "left_out": [fit._asdict() for fit in fits]}
        write_json(options.out, {**result, "fits": records, **rest})
        if not fits or time.monotonic() > end:
            return
        fit = fits.pop(0)
        try:
            records.append(time_fit(fit, options.sizes[fit.case], options.repeats))
        except Exception as error:  # such as a GPU without the memory: the others go on
            records.append({**fit._asdict(), "error": repr(error)})
        print(records[-1], flush=True)


if __name__ == "__main__":
    main()
