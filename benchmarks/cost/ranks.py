"""Statistics of `bench_cost`: costs as ratios to a reference, and ranks over settings.

Arrays of costs have a row per setting, a column per method and, where seeds are told apart, a
layer per seed; NaN where a method did not run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from benchmarks.common.statistics import standard_error


def cost_ratio(cost: NDArray, reference: NDArray, constant: NDArray) -> NDArray:
    """Ratio of mean costs, each raised by a thousandth of what a constant prediction costs.

    The small addition keeps ratios finite, and near 1, where next to nothing is paid at all: on
    a test set on which hardly a mistake is made, a ratio would say how lucky the reference was.
    """
    little = constant / 1000
    return (cost + little) / (reference + little)


def jackknife_error(cost: NDArray, reference: NDArray, constant: NDArray) -> float:
    """Standard error of the ratio of mean costs over the seeds, which pair the two."""
    n = len(cost)
    if n == 1:
        return float("nan")
    without = [
        cost_ratio(*(np.delete(values, i).mean() for values in (cost, reference, constant)))
        for i in range(n)
    ]
    return float(np.std(without) * np.sqrt(n - 1))


def geometric_mean(ratio: NDArray) -> float:
    """Geometric mean of the ratios; NaN if one is."""
    return float(np.exp(np.log(ratio).mean()))


def geometric_error(ratio: NDArray) -> float:
    """Standard error of the geometric mean over the settings."""
    return geometric_mean(ratio) * standard_error(np.log(ratio))


class RankTest(NamedTuple):
    """Friedman's test that all methods cost the same, and Nemenyi's critical difference.

    Two methods whose mean ranks differ by less than `critical_difference` are not told apart at
    the level of 5 %.
    """

    n_settings: int
    mean_rank: NDArray
    statistic: float
    p_value: float
    critical_difference: float


def rank_test(cost: NDArray) -> RankTest:
    """Rank three methods or more by the mean costs (n_settings, n_methods), without NaN."""
    n_settings, n_methods = cost.shape
    statistic, p_value = friedmanchisquare(*cost.T)
    # Nemenyi's q is the studentized range of infinitely many degrees of freedom, over sqrt(2).
    q = studentized_range.ppf(0.95, n_methods, np.inf) / np.sqrt(2)
    return RankTest(
        n_settings,
        rankdata(cost, axis=1).mean(axis=0),
        float(statistic),
        float(p_value),
        float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_settings))),
    )
