"""What a review desk of limited size saves, by `decide` and by two habits.

A customer is passed, acted on, or reviewed by a person, who finds the truth; a review costs a share
of what an average customer costs with the best constant decision, which is made up. Only a share of
the test rows can be reviewed. The same boosting, with the Bayes decision, gives all probabilities.
`decide(X, C, capacity=)` is compared with reviewing the most probable, the most expensive and none;
other rows are decided by expected cost. Then single rows are decided by the shadow prices of the
day before. Last, `assign` is timed on many rows with three limits. Results are written to `--out`
as `desk.json`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from auxcst_sklearn import BayesMinimumRiskClassifier
from auxcst_sklearn.decisions import assign, shadow_prices
from auxcst_sklearn.metrics import cost_difference, mean_cost
from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.cost.tables_data import load_table

SETS = ("churn", "telemarketing", "scoring_pakdd", "credit_default")
DECISIONS = ("pass", "act", "review")
N_TRAIN, N_DAYS = 6000, 10
FEE, PLACES = 0.2, 0.02  # of the cost of the best constant decision, and of the rows


class Desk(NamedTuple):
    """Test rows of a table: labels, probabilities of acting, costs (n, 2, 3) and expected ones."""

    y: NDArray[Any]
    p: NDArray[Any]
    cost: NDArray[Any]
    expected: NDArray[Any]


def desk(name: str, folder: Path, seed: int) -> Desk:
    """Fit to some rows of a table, and predict the others in random order."""
    table = load_table(name, folder)
    X = table.X.apply(lambda c: c.astype("category") if c.dtype.kind not in "biuf" else c)
    rows = np.arange(len(table.y))
    train, test = train_test_split(rows, train_size=N_TRAIN, stratify=table.y, random_state=seed)
    test = np.random.RandomState(seed).permutation(test)
    fee = FEE * table.costs[train, table.y[train]].mean(axis=0).min()
    cost = np.concatenate([table.costs, table.costs.min(axis=2, keepdims=True) + fee], axis=2)
    boosting = HistGradientBoostingClassifier(
        categorical_features="from_dtype", early_stopping=True, random_state=seed
    )
    model = BayesMinimumRiskClassifier(boosting, decisions=DECISIONS)
    model.fit(X.iloc[train], table.y[train], cost=cost[train])
    p = model.predict_proba(X.iloc[test])
    return Desk(table.y[test], p[:, 1], cost[test], model.predict_cost(X.iloc[test], cost[test]))


def habits(found: Desk, n: int) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Decisions with at most n reviews."""
    alone = found.expected[:, :2].argmin(axis=1)
    worst = found.cost[:, :, :2].max(axis=(1, 2))
    yield "decide", assign(found.expected, {"review": n}, decisions=DECISIONS)
    for name, order in (("most probable", found.p), ("most expensive", worst)):
        chosen = alone.copy()
        chosen[np.argsort(-order, kind="stable")[:n]] = 2
        yield name, chosen
    yield "no review", alone


def compare(name: str, folder: Path, seed: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Cost per customer of each way with paired intervals, and how single rows keep the budget."""
    found = desk(name, folder, seed)
    n = int(PLACES * len(found.y))
    labels = np.array(DECISIONS)
    by = {habit: labels[chosen] for habit, chosen in habits(found, n)}
    given = {"cost": found.cost, "classes": [0, 1], "decisions": DECISIONS}
    records = []
    for habit, decided in by.items():
        record = {
            "set": name,
            "seed": seed,
            "method": habit,
            "reviews": int((decided == "review").sum()),
        }
        record["cost"] = mean_cost(found.y, decided, **given)
        if habit != "decide":
            difference = cost_difference(found.y, by["decide"], decided, **given)
            record |= {f"decide minus this, {k}": v for k, v in difference._asdict().items()}
        records.append(record)
    return records, {"set": name, "seed": seed, **stream(found)}


def stream(found: Desk) -> dict[str, Any]:
    """Each day by the shadow prices of the day before, against the best assignment of that day."""
    days = np.array_split(np.arange(len(found.y)), N_DAYS)
    used, paid, best = [], 0.0, 0.0
    for before, day in zip(days, days[1:]):
        capacity = {"review": PLACES}
        price = shadow_prices(found.expected[before], capacity, decisions=DECISIONS)["review"]
        cost = found.expected[day]
        chosen = (cost + [0, 0, price]).argmin(axis=1)
        used.append(np.count_nonzero(chosen == 2) / int(PLACES * len(day)))
        paid += cost[np.arange(len(day)), chosen].sum()
        limited = assign(cost, capacity, decisions=DECISIONS)
        best += cost[np.arange(len(day)), limited].sum()
    return {
        "rows a day": len(days[0]),
        "reviews over budget, mean": float(np.mean(used)),
        "reviews over budget, sd of days": float(np.std(used, ddof=1)),
        "expected cost over that of each day's best assignment": float(paid / best),
    }


def time_assign(n_rows: int, results: Any) -> None:
    """Seconds of one assignment of five decisions with three limits, and the process's memory."""
    rng = np.random.default_rng(0)
    cost = rng.lognormal(3, 1.5, size=(n_rows, 1)) * rng.beta(
        0.5, 3, size=(n_rows, 5)
    ) + rng.random(5)
    start = time.perf_counter()
    chosen = assign(cost, {0: 0.02, 1: 0.1, 2: 5000})
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    places = np.bincount(chosen, minlength=5).tolist()
    results.put({"rows": n_rows, "places": places, "seconds": seconds, "peak_mib": peak})


def measured(n_rows: int) -> dict[str, Any]:
    """`time_assign` in a process of its own."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=time_assign, args=(n_rows, results))
    process.start()
    found: dict[str, Any] = results.get()
    process.join()
    return found


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = make_parser(__doc__, seeds=[0, 1, 2], out=RESULTS)
    parser.add_argument("--tables", type=Path, help="folder of credit_default.csv.gz")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS, help="tables")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the timed assignment")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(arguments)
    pairs = [compare(name, options.tables, seed) for name in options.sets for seed in options.seeds]
    content = provenance("empulse") | {
        "fee": FEE,
        "places": PLACES,
        "n_train": N_TRAIN,
        "runs": [record for records, _ in pairs for record in records],
        "streams": [record for _, record in pairs],
        "assign": [measured(options.rows)],
    }
    write_json(options.out / "desk.json", content)
    for record in (*content["runs"], *content["streams"], *content["assign"]):
        print(record)


if __name__ == "__main__":
    main()
