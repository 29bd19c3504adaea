"""The examples of the README and of the page on AuxCST, with rivals, on more splits and seeds.

Payments: the data of the quick start in twenty splits. Gradient boosting decides in the usual ways,
and by the expected cost of each payment; network and ensemble decide by expected cost. Digits: the
cost is the difference of the digits; deep networks with and without heads, four seeds. Results are
written to `--out` as `quick_start.json`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import sklearn
from scipy.stats import t
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split

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

N_SPLITS, N_SEEDS = 20, 4
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
    X, y = make_classification(4000, n_informative=8, weights=[0.9], flip_y=0, random_state=0)
    amount = np.random.default_rng(0).lognormal(4, 1, len(y))
    X = np.column_stack([X, np.log(amount)])
    C = binary_cost_matrices(fp_cost=5, tp_cost=5, fn_cost=amount, classes=[0, 1], pos_label=1)
    for split in range(N_SPLITS):
        X_train, X_test, y_train, y_test, C_train, C_test = train_test_split(
            X, y, C, random_state=split
        )
        start = time.process_time()
        for method, decided in decisions(X_train, y_train, C_train, X_test, C_test):
            seconds, start = time.process_time() - start, time.process_time()
            cost = mean_cost(y_test, decided, cost=C_test)
            yield {"split": split, "method": method, "cost": cost, "cpu_seconds": seconds}


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


def _error(values: Any, part: str) -> float:
    """Standard error of a mean over seeds, or over splits, which share most of their samples.

    Splits of one data set are not independent, so their variance is corrected as by Nadeau and
    Bengio (2003): with a quarter of the samples in the test set, a third is added to 1 / n.
    """
    overlap = 1 / 3 if part == "payments" else 0.0
    return float((np.var(values, ddof=1) * (1 / len(values) + overlap)) ** 0.5)


def summary(part: str, measure: str = "cost") -> dict[str, tuple[float, float]]:
    """Mean cost or seconds of each method, and the standard error over splits or seeds."""
    found = _of_methods(part, measure)
    return {method: (float(np.mean(v)), _error(v, part)) for method, v in found.items()}


def difference(method: str, other: str, part: str = "payments") -> tuple[float, float, float]:
    """Mean difference of two methods, paired by split or seed, and its 95 % interval."""
    costs = _of_methods(part, "cost")
    paired = np.subtract(costs[method], costs[other])
    low, high = t.interval(0.95, len(paired) - 1, paired.mean(), _error(paired, part))
    return float(paired.mean()), float(low), float(high)


def main(arguments: Sequence[str] | None = None) -> None:
    options = make_parser(__doc__, seeds=[0], out=RESULTS).parse_args(arguments)
    with sklearn.config_context(enable_metadata_routing=True):
        content = {"payments": list(payments()), "digits": list(digits())}
    write_json(options.out / "quick_start.json", provenance() | content)
    for part in content:
        for method, (cost, error) in summary(part).items():
            print(f"{cost:.2f} ({error:.2f})  {method}")


if __name__ == "__main__":
    main()
