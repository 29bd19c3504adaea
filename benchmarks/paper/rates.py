"""Held-out mean cost by learning rate: the runs by which rates were chosen, as a table.

Reads ``OUT/runs.jsonl`` and runs nothing. Each entry is one run of the tuning seed, judged after
its last epoch.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.common.options import make_parser
from benchmarks.paper.report import format_table
from benchmarks.paper.runs import RUNS


def main() -> None:
    options = make_parser(__doc__, out=Path("out")).parse_args()
    lines = (options.out / RUNS).read_text().splitlines()
    entries = [
        {
            "dataset": f"{identity['dataset']}, {identity['method']}, depth {identity['depth']}",
            "rate": _rates(identity),
            "alpha": identity["alpha"],
            "mean": run["result"].get("held_out_cost", float("nan")),
            "standard_error": None,
        }
        for run in map(json.loads, lines)
        if (identity := run["identity"])["tuning"]
    ]
    networks = dict.fromkeys(entry["dataset"] for entry in entries)
    text = "\n\n".join(
        format_table([e for e in entries if e["dataset"] == n], row="rate", column="alpha")
        for n in networks
    )
    (options.out / "rates.txt").write_text(text + "\n")
    print(text)


def _rates(identity: dict) -> str:
    rates = [identity["learning_rate"], identity["pretrain_learning_rate"]]
    return " / ".join(f"{rate:g}" for rate in rates if rate is not None)


if __name__ == "__main__":
    main()
