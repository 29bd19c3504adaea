"""Tuned cost-sensitive network against cost-blind ones on digits, paired over cost draws.

Runs the demo's comparison with seeds 0, 1, ...; each seed draws the split into halves, the costs
and the initial weights anew. Writes the table with versions and seeds as JSON.
"""

from __future__ import annotations

import os
import runpy

import numpy as np
import sklearn
import torch

from benchmarks.common.folders import RESULTS, ROOT
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.common.statistics import standard_error

DEMO = ROOT / "examples" / "demo_digits.py"


def main() -> None:
    parser = make_parser(__doc__, n_seeds=5, n_jobs=os.cpu_count(), out=RESULTS / "digits.json")
    options = parser.parse_args()
    compare = runpy.run_path(str(DEMO))["compare"]

    sklearn.set_config(enable_metadata_routing=True)
    torch.set_num_threads(1)  # networks this small are slower on several threads
    runs = []
    for seed in range(options.n_seeds):
        search, rows = compare(seed, n_jobs=options.n_jobs)
        chosen = {key.split("__")[1]: str(value) for key, value in search.best_params_.items()}
        runs.append({"seed": seed, "chosen": chosen, "rows": rows})
        print(seed, chosen, {row["method"]: round(row["test cost"], 4) for row in rows}, flush=True)

    methods = [row["method"] for row in runs[0]["rows"]]
    cost = np.array([[row["test cost"] for row in run["rows"]] for run in runs])
    error = [standard_error(of_method) for of_method in cost.T]
    print(f"\n{'method':30s}{'mean test cost':>15s}{'s.e.':>8s}{'tuned is lower on':>20s}")
    for j, name in enumerate(methods):
        wins = f"{(cost[:, 0] < cost[:, j]).sum()} of {len(runs)}" if j else ""
        print(f"{name:30s}{cost[:, j].mean():15.4f}{error[j]:8.4f}{wins:>20s}")

    write_json(options.out, {**provenance(), "runs": runs})


if __name__ == "__main__":
    main()
