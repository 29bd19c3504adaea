"""From the paper's network to the default of the package, one part at a time.

Each row has the parts of the rows above it. Three layers of 128 neurons, and alpha 0.2, are common
to all. Run ``python -m benchmarks.paper.parts --help`` for options.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from auxcst_sklearn import PAPER, CostSensitiveAuxMLP
from benchmarks.common.engine import Result
from benchmarks.common.statistics import standard_error
from benchmarks.cost.fit_methods import timed
from benchmarks.paper import draws
from benchmarks.paper.dense import judge
from benchmarks.paper.draws import Dataset, draw
from benchmarks.paper.options import make_parser
from benchmarks.paper.report import Row, save
from benchmarks.paper.runs import Configuration, run_all

# Parameters that have the default from this row on; those that no row names are equal anyway.
PARTS: dict[str, list[str]] = {
    "PAPER": [],
    "AdamW, rate, stopping, averaged weights": [
        *("optimizer", "learning_rate", "schedule", "early_stopping", "ema_epochs", "weight_decay")
    ],
    "SiLU, dropout": ["activation", "dropout"],
    "Bayes risk, temperature": ["loss", "temperature"],
    # Bins are in every third network; pixels are not scaled.
    "five networks": ["n_networks", "n_bins", "standardize", "learn_scales"],
}
WITHOUT_HEADS = "the default without heads"


@dataclass(frozen=True)
class PartsConfiguration(Configuration):
    """All that determines the result of one run; `part` is the last part that it has."""

    train_size: int | None
    seed: int
    part: str
    method: str = "parts"
    tuning: bool = False


def parameters(part: str) -> dict[str, Any]:
    """What differs from the default."""
    if part == WITHOUT_HEADS:
        return {"alpha": 0.0}
    names = list(PARTS)
    added = {name for row in names[: names.index(part) + 1] for name in PARTS[row]}
    return {name: value for name, value in PAPER.items() if name not in added}


def run(configuration: PartsConfiguration, data: Dataset, device: str) -> Result:
    """Train a network and test it."""
    drawn = draw(configuration, data)
    network = CostSensitiveAuxMLP(
        **parameters(configuration.part),
        cost_matrix=drawn.cost_matrix,
        device=device,
        random_state=configuration.seed,
    )
    fitted, seconds = timed(lambda: network.fit(drawn.X_train, drawn.y_train))
    return {**judge(fitted, drawn), "seconds": round(seconds, 2)}


def main() -> dict[str, list[Row]]:
    parser = make_parser(__doc__)
    add = parser.add_argument
    add("--datasets", nargs=1, choices=draws.DATASETS, default=["mnist"], metavar="NAME")
    add("--train-size", type=int, default=4000, help="training examples, before thinning out")
    options = parser.parse_args()

    configurations = [
        PartsConfiguration(data, options.train_size, seed, part)
        for data, seed, part in product(options.datasets, options.seeds, [*PARTS, WITHOUT_HEADS])
    ]
    rows = run_all(configurations, options, load=draws.load, run=run)
    lines = [" ".join(f"{cell:40}" for cell in line).rstrip() for line in table(rows)]
    save("parts", options, "\n".join(lines))
    return {"runs": rows}


def table(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Mean cost of each row, its difference to the row above, paired by seed, and CPU seconds."""
    yield ["with", "cost (s.e.)", "minus the row above", "CPU s"]
    above: dict[int, float] = {}
    for part in [*PARTS, WITHOUT_HEADS]:
        found = [row for row in rows if row["part"] == part and "test_cost" in row]
        cost = {row["seed"]: row["test_cost"] for row in found}
        paired = [cost[seed] - above[seed] for seed in cost if seed in above]
        seconds = f"{np.mean([row['seconds'] for row in found]):.1f}"
        yield [part, with_error([*cost.values()]), with_error(paired) if paired else "", seconds]
        above = cost


def with_error(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f} ({standard_error(values):.3f})"


if __name__ == "__main__":
    main()
