"""One training by one and by two processes of a thread each: seconds of a fit, wall and CPU.

Each run is a fresh group of processes, which fit once to warm up; runs of one and two processes
take turns, and the least of each counts. CPU seconds are those of rank 0, with its share of the
exchange; they say what is left of the wall time where every process has a core to itself. "share
of the networks" is one process with the networks that it would have if those of the stack were
spread over two, without any exchange: a bound for that way to divide the work. Writes a JSON file
with versions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

from benchmarks.common.folders import RESULTS, ROOT
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance

# Parameters, and numbers of rows and features.
CASES = {
    "wide: 1 network of 3 x 1024, batch 512": (
        {"n_networks": 1, "width": 1024, "batch_size": 512, "max_epochs": 4},
        (8192, 100),
    ),
    "wide stack: 5 networks of 3 x 512, batch 512": (
        {"n_networks": 5, "width": 512, "batch_size": 512, "max_epochs": 3},
        (8192, 100),
    ),
    "small: 5 networks of 3 x 128, batch 128": ({"max_epochs": 8}, (4096, 30)),
}
SHARE = {1: 1, 5: 3}

SCRIPT = """
import json, sys, time
import torch
from torch import distributed as dist
from sklearn.datasets import make_classification
from auxcst_sklearn import CostSensitiveAuxMLP

rank, size, store, parameters, shape = json.loads(sys.argv[1])
torch.set_num_threads(1)
if size > 1:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
X, y = make_classification(*shape, n_informative=10, n_classes=5, random_state=0)
model = CostSensitiveAuxMLP(**parameters, patience=100, device="cpu", random_state=0)
CostSensitiveAuxMLP(**{**parameters, "max_epochs": 1}, device="cpu", random_state=0).fit(X, y)
wall, cpu = time.perf_counter(), time.process_time()
model.fit(X, y)
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


def run(size: int, parameters: dict, shape: tuple[int, int]) -> list[float]:
    """Wall and CPU seconds of rank 0."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        started = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    SCRIPT,
                    json.dumps([rank, size, f"{folder}/store", parameters, shape]),
                ],
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                env=variables,
            )
            for rank in range(size)
        ]
        outputs = [process.communicate(timeout=600)[0] for process in started]
    return [float(value) for value in outputs[0].split()]


def main() -> None:
    parser = make_parser(__doc__, out=RESULTS / "distributed.json")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each kind")
    options = parser.parse_args()
    rows = []
    for case, (parameters, shape) in CASES.items():
        share = {**parameters, "n_networks": SHARE[parameters.get("n_networks", 5)]}
        kinds = {
            "one process": (1, parameters),
            "two processes": (2, parameters),
            "share of the networks": (1, share),
        }
        runs: dict[str, list] = {kind: [] for kind in kinds}
        for _ in range(options.repeats):
            for kind, (size, of_kind) in kinds.items():
                runs[kind].append(run(size, of_kind, shape))
        for kind, found in runs.items():
            wall, cpu = (min(values) for values in zip(*found))
            rows.append({"case": case, "kind": kind, "wall": wall, "cpu": cpu, "runs": found})
            print(f"{case:48s}{kind:24s}{wall:8.2f}{cpu:8.2f}", flush=True)
    load = os.getloadavg() if hasattr(os, "getloadavg") else None
    result = {**provenance(), "load_at_the_end": load, "cores": os.cpu_count(), "rows": rows}
    write_json(options.out, result)


if __name__ == "__main__":
    main()
