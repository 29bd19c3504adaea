"""Held-out mean cost by learning rate: the runs by which rates were chosen, as a table.

Reads ``OUT/runs.jsonl`` and runs nothing. Each entry is one run of the tuning seed, judged after
its last epoch.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.common.ledger import Ledger
from benchmarks.common.options import make_parser
from benchmarks.paper.report import format_table
from benchmarks.paper.runs import RUNS


def main() -> None:
    options = make_parser(__doc__, out=Path("out")).parse_args()
    entries = [
        {
            "dataset": f"{identity['dataset']}, {identity['method']}, depth {identity['depth']}",
            "rate": _rates(identity),
            "alpha": identity.get("alpha"),
            "n_seeds": 1,
            "mean": result.get("held_out_cost", float("nan")),
            "standard_error": None,
        }
        for identity, result in Ledger(options.out / RUNS).runs.values()
        if identity["tuning"]
    ]
    networks = dict.fromkeys(entry["dataset"] for entry in entries)
    text = "\n\n".join(
        format_table([e for e in entries if e["dataset"] == n], row="rate", column="alpha")
        for n in networks
    )
    print(text)


def _rates(identity: dict) -> str:
    rates = [identity.get("learning_rate"), identity.get("pretrain_learning_rate")]
    return " / ".join(f"{rate:g}" for rate in rates if rate is not None)


if __name__ == "__main__":
    main()
