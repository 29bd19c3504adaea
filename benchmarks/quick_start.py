"""The examples of the README and of the page on AuxCST, with rivals, on more data and seeds.

Payments: twenty sets of 3,000 training and 10,000 test payments from a simulation like that of the
quick start, of which no two share a payment, so that the sets are independent. Gradient boosting
decides in the usual ways, and by the expected cost of each payment; network and ensemble decide by
expected cost. Digits: the cost is the difference of the digits; deep networks with and without
heads, four seeds. Results are written to `--out` as `quick_start.json`, where the parts that are
not run stay.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import sklearn
from scipy.stats import sem, t
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import TunedThresholdClassifierCV

from auxcst_sklearn import (
    PAPER,
    BayesMinimumRiskClassifier,
    CostSensitiveAuxMLP,
    CostSensitiveEnsembleClassifier,
    CSAEPretrainedMLP,
)
from auxcst_sklearn.costs import binary_cost_matrices
from auxcst_sklearn.metrics import cost_scorer, mean_cost
from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import from_json, write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance

N_SETS, N_SEEDS, N_TRAIN, N_TEST = 20, 4, 3_000, 10_000
PAPER_DEEP = {"depth": 8, "width": 64, "max_epochs": 40}


def decisions(X: Any, y: Any, C: Any, X_test: Any, C_test: Any) -> Iterator[tuple[str, Any]]:
    """The decisions of each method for the test samples."""
    boosting = HistGradientBoostingClassifier(random_state=0)
    balanced = HistGradientBoostingClassifier(class_weight="balanced", random_state=0)
    threshold = TunedThresholdClassifierCV(boosting, scoring=cost_scorer)
    rule = BayesMinimumRiskClassifier(boosting, calibration="isotonic")
    network = CostSensitiveAuxMLP(random_state=0)
    headless = CostSensitiveAuxMLP(alpha=0, random_state=0)
    ensemble = CostSensitiveEnsembleClassifier(random_state=0)
    yield "boosting, most probable class", boosting.fit(X, y).predict(X_test)
    yield "boosting, balanced class weights", balanced.fit(X, y).predict(X_test)
    yield "boosting, tuned threshold", threshold.fit(X, y, cost=C).predict(X_test)
    yield "boosting, expected cost", rule.fit(X, y, cost=C).predict(X_test, cost=C_test)
    yield "network", network.fit(X, y, cost=C).predict(X_test, cost=C_test)
    yield "network, most probable class", network.predict_proba(X_test).argmax(axis=1)
    yield "network without heads", headless.fit(X, y, cost=C).predict(X_test, cost=C_test)
    yield "ensemble", ensemble.fit(X, y, cost=C).predict(X_test, cost=C_test)


def payments() -> Iterator[dict[str, Any]]:
    size = N_TRAIN + N_TEST
    shape = {"n_samples": N_SETS * size, "n_informative": 8, "weights": [0.9], "flip_y": 0}
    X, y = make_classification(**shape, random_state=0)
    amount = np.random.default_rng(0).lognormal(4, 1, len(y))
    X = np.column_stack([X, np.log(amount)])
    C = binary_cost_matrices(fp_cost=5, tp_cost=5, fn_cost=amount, classes=[0, 1], pos_label=1)
    for i, start in enumerate(range(0, len(y), size)):
        train, test = slice(start, start + N_TRAIN), slice(start + N_TRAIN, start + size)
        begin = time.process_time()
        for method, decided in decisions(X[train], y[train], C[train], X[test], C[test]):
            seconds, begin = time.process_time() - begin, time.process_time()
            cost = mean_cost(y[test], decided, cost=C[test])
            yield {"set": i, "method": method, "cost": cost, "cpu_seconds": seconds}


def digits() -> Iterator[dict[str, Any]]:
    X, y = load_digits(return_X_y=True)
    X = X / 16
    given = {"cost_matrix": abs(np.subtract.outer(range(10), range(10)))}
    for seed in range(N_SEEDS):
        given["random_state"] = seed
        models = {
            "3 layers": CostSensitiveAuxMLP(**given),
            "3 layers, without heads": CostSensitiveAuxMLP(alpha=0, **given),
            "8 layers": CostSensitiveAuxMLP(depth=8, **given),
            "8 layers, without heads": CostSensitiveAuxMLP(depth=8, alpha=0, **given),
            **{
                f"one network, 8 layers, {label}": CostSensitiveAuxMLP(
                    n_networks=1, depth=8, alpha=alpha, **given
                )
                for label, alpha in {"without heads": 0, "alpha 0.2": 0.2, "alpha 0.5": 0.5}.items()
            },
            "one network, 3 layers": CostSensitiveAuxMLP(n_networks=1, **given),
            "PAPER, 8 layers": CostSensitiveAuxMLP(**PAPER | PAPER_DEEP | given),
            "PAPER, 8 layers, without heads": CostSensitiveAuxMLP(
                **PAPER | PAPER_DEEP | given | {"alpha": 0}
            ),
            "CSDNN, 8 layers": CSAEPretrainedMLP(**PAPER_DEEP | given),
        }
        for method, model in models.items():
            start = time.process_time()
            cost = -model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])
            seconds = time.process_time() - start
            yield {"seed": seed, "method": method, "cost": cost, "cpu_seconds": seconds}


def _of_methods(part: str, measure: str) -> dict[str, list[float]]:
    values = defaultdict(list)
    for run in from_json((RESULTS / "quick_start.json").read_text(encoding="utf-8"))[part]:
        values[run["method"]].append(run[measure])
    return values


def summary(part: str, measure: str = "cost") -> dict[str, tuple[float, float]]:
    """Mean cost or seconds of each method, and the standard error over sets or seeds."""
    found = _of_methods(part, measure)
    return {method: (float(np.mean(v)), float(sem(v))) for method, v in found.items()}


def difference(method: str, other: str, part: str = "payments") -> tuple[float, float, float]:
    """Mean difference of two methods, paired by set or seed, and its 95 % interval."""
    costs = _of_methods(part, "cost")
    paired = np.subtract(costs[method], costs[other])
    low, high = t.interval(0.95, len(paired) - 1, paired.mean(), sem(paired))
    return float(paired.mean()), float(low), float(high)


def main(arguments: Sequence[str] | None = None) -> None:
    parts = {"payments": payments, "digits": digits}
    parser = make_parser(__doc__, seeds=[0], out=RESULTS)
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts), help="to run")
    options = parser.parse_args(arguments)
    file = options.out / "quick_start.json"
    stored = from_json(file.read_text(encoding="utf-8")) if file.exists() else {}
    kept = {part: stored[part] for part in parts if part in stored}
    with sklearn.config_context(enable_metadata_routing=True):
        content = {part: list(parts[part]()) for part in options.parts}
    write_json(file, provenance() | kept | content)
    for part in content:
        for method, (cost, error) in summary(part).items():
            print(f"{cost:.2f} ({error:.2f})  {method}")


if __name__ == "__main__":
    main()
