"""The temperature of probabilities: which ones are tried, their prior, and the best of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

# Probabilities are clipped here, so that no single row decides on a temperature or a weight.
SMALLEST = 1e-6
# Prior for temperature 1, and for weights with a sum of at most 1, worth this many rows. Larger
# sums make probabilities surer than the members, and rows without a mistake set no bound.
PRIOR_ROWS = 10

# Temperatures are tried within these bounds, by their logarithms.
LOWEST, HIGHEST = np.log(1 / 5), np.log(9)
# For calibration: steps grow with the distance from 1, where small steps already change small
# probabilities.
HEATS = np.concatenate(
    [-(np.linspace((-LOWEST) ** 0.5, 0, 16)[:-1] ** 2), np.linspace(0, HIGHEST**0.5, 24) ** 2]
)
# For early stopping, which tries them after each epoch: fewer.
STOP_HEATS = np.r_[np.linspace(LOWEST, 0, 6)[:-1], np.linspace(0, HIGHEST, 12)]


def prior(heats: NDArray[np.float64], n_samples: float) -> NDArray[np.float64]:
    """What each log temperature adds to a mean risk of samples: its square, worth some rows.

    It keeps the temperature of few samples near 1: otherwise rare, expensive mistakes that do not
    occur among them would seem impossible. It is divided by their number, as risks are means.
    """
    return PRIOR_ROWS / n_samples * heats**2


def best_temperature(risks: NDArray[np.float64], n_samples: float) -> float:
    """The temperature of least risk; of several risks the geometric mean of their temperatures.

    The `risks` (n_temperatures, n_risks) are means over samples at the temperatures of `HEATS`.
    """
    best = (risks + prior(HEATS, n_samples)[:, np.newaxis]).argmin(axis=0)
    return float(np.exp(HEATS[best].mean()))


def log_clipped(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms of probabilities that are not too small."""
    return np.log(np.clip(probability, SMALLEST, 1))


def log_loss_of(
    logs: NDArray[np.float64], label: NDArray[np.intp], weight: NDArray[np.float64] | None = None
) -> float:
    """Mean log loss of log probabilities; NaN of no rows."""
    if not len(label):
        return float("nan")
    return float(-np.average(logs[np.arange(len(label)), label], weights=weight))


def at_temperature(
    probability: NDArray[np.float64], temperature: float, known: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Probabilities at a temperature, 0 for classes that are not `known`."""
    return softmax(np.where(known, log_clipped(probability), -np.inf) / temperature, axis=1)
