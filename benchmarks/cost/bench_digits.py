"""Tuned cost-sensitive network against cost-blind ones on digits, paired over cost draws.

Runs the demo's comparison with seeds 0, 1, ...; each seed draws the split into halves, the costs
and the initial weights anew. Writes the table with versions and seeds as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
from pathlib import Path

import numpy as np
import sklearn
import torch

from benchmarks.common.folders import RESULTS, ROOT
from benchmarks.common.provenance import provenance

compare = runpy.run_path(str(ROOT / "examples" / "demo_digits.py"))["compare"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-seeds", type=int, default=5)
    parser.add_argument("--n-jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=RESULTS / "digits.json")
    options = parser.parse_args()

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
    error = cost.std(axis=0, ddof=1) / np.sqrt(len(runs))
    print(f"\n{'method':30s}{'mean test cost':>15s}{'s.e.':>8s}{'tuned is lower on':>20s}")
    for j, name in enumerate(methods):
        wins = f"{(cost[:, 0] < cost[:, j]).sum()} of {len(runs)}" if j else ""
        print(f"{name:30s}{cost[:, j].mean():15.4f}{error[j]:8.4f}{wins:>20s}")

    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps({**provenance(), "runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
