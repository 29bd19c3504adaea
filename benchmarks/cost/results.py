"""The runs of `bench_cost` as arrays, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.statistics import standard_error
from benchmarks.cost.ranks import (
    RankTest,
    cost_ratio,
    geometric_error,
    geometric_mean,
    jackknife_error,
    rank_test,
)

DEFAULT = "ours: default"
SAME = ("same network: Bayes", "same network: Bayes, temperature")
ALWAYS = (DEFAULT, *SAME)
# Variants of our own would crowd the ranks.
UNRANKED = ("loss: ", "ours: default, ")


class Results:
    """Costs (settings, methods, seeds), CPU seconds alike, and those of a constant prediction.

    `ratio` compares with the same network, trained by cross-entropy and deciding by Bayes, with or
    without a temperature, whichever has the lower mean test cost in a setting: a choice in its
    favour.
    """

    def __init__(
        self, runs: Sequence[dict[str, Any]], settings: Sequence[str], methods: Sequence[str]
    ) -> None:
        there = {run["method"] for run in runs}
        self.settings = list(settings)
        self.methods = [method for method in methods if method in there]
        self.seeds = sorted({run["seed"] for run in runs})
        shape = len(self.settings), len(self.methods), len(self.seeds)
        self.cost, self.seconds = np.full((2, *shape), np.nan)
        self.constant = np.full((shape[0], shape[2]), np.nan)
        for run in runs:
            s, n = self.settings.index(run["setting"]), self.seeds.index(run["seed"])
            m = self.methods.index(run["method"])
            self.cost[s, m, n], self.seconds[s, m, n] = run["test_cost"], run["cpu_seconds"]
            self.constant[s, n] = run["constant_cost"]
        self.mean = self.cost.mean(axis=2)
        self.reference, self.ratio = self._against(SAME)

    def _against(self, rivals: Sequence[str]) -> tuple[NDArray, NDArray]:
        """Costs of the better rival of each setting, and the ratios of all methods to it."""
        there = [self.methods.index(name) for name in rivals if name in self.methods]
        if not there:
            return np.full(self.constant.shape, np.nan), np.full(self.mean.shape, np.nan)
        candidates = self.cost[:, there]
        best = candidates.mean(axis=2).argmin(axis=1)
        reference = candidates[np.arange(len(best)), best]
        constant = self.constant.mean(axis=1, keepdims=True)
        return reference, cost_ratio(self.mean, reference.mean(axis=1, keepdims=True), constant)

    def of(self, method: str) -> NDArray:
        """The ratios of a method to the reference, one per setting; NaN if it did not run."""
        if method not in self.methods:
            return np.full(len(self.settings), np.nan)
        return self.ratio[:, self.methods.index(method)]

    def by_setting(self) -> list[dict[str, Any]]:
        """What each method costs in each setting."""
        return [
            {
                "setting": setting,
                "method": method,
                "mean_cost": self.mean[s, m],
                "standard_error": standard_error(self.cost[s, m]),
                "ratio": self.ratio[s, m],
                "ratio_error": jackknife_error(
                    self.cost[s, m], self.reference[s], self.constant[s]
                ),
                "cpu_seconds": self.seconds[s, m].mean(),
            }
            for s, setting in enumerate(self.settings)
            for m, method in enumerate(self.methods)
            if not np.isnan(self.mean[s, m])
        ]

    def by_method(self) -> list[dict[str, Any]]:
        """What the ratios to the reference come to over the settings of each method."""
        ranked, ranks = self.ranks()
        rank = dict(zip(ranked, ranks.mean_rank)) if ranks else {}
        summary = []
        for m, method in enumerate(self.methods):
            ratio = self.ratio[:, m]
            there = ~np.isnan(ratio)
            worst = int(np.nanargmax(ratio))
            summary.append(
                {
                    "method": method,
                    "n_settings": int(there.sum()),
                    "geometric_mean": geometric_mean(ratio[there]),
                    "standard_error": geometric_error(ratio[there]),
                    "default_there": geometric_mean(self.of(DEFAULT)[there]),
                    "worst": ratio[worst],
                    "worst_setting": self.settings[worst],
                    "n_lower": int((ratio[there] < 1).sum()),
                    "mean_rank": rank.get(method),
                    "cpu_seconds": self.seconds[there, m].mean(),
                }
            )
        return summary

    def ranks(self) -> tuple[list[str], RankTest | None]:
        """Methods that ran everywhere, and the test on their ranks; None where it is undefined."""
        complete = ~np.isnan(self.mean).any(axis=0)
        ranked = [
            method
            for method, everywhere in zip(self.methods, complete)
            if everywhere and not method.startswith(UNRANKED)
        ]
        if len(ranked) < 3 or len(self.settings) < 2:
            return ranked, None
        return ranked, rank_test(self.mean[:, [self.methods.index(name) for name in ranked]])

    def heads(self) -> list[dict[str, Any]]:
        """What auxiliary heads do to each loss: the cost with them over the cost without."""
        effects = []
        for with_heads in self.methods:
            without = with_heads.removesuffix(".2")
            if without == with_heads or without not in self.methods:
                continue
            ratio = self.of(with_heads) / self.of(without)
            ratio = ratio[~np.isnan(ratio)]
            effects.append(
                {
                    "with_heads": with_heads,
                    "without": without,
                    "n_settings": len(ratio),
                    "ratio": geometric_mean(ratio),
                    "standard_error": geometric_error(ratio),
                    "n_lower": int((ratio < 1).sum()),
                }
            )
        return effects
