"""Sets of time series for `bench_series`: a simulated ECG, and those that the package aeon ships.

Nothing is downloaded. Seed 0 has the published split of a set; other seeds draw splits of the same
sizes from all series, and the rows of the ECG.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from auxcst_sklearn.costs import ordinal_cost_matrix, tree_distance_cost_matrix
from benchmarks.cost.costs import lognormal

# Name in the files of aeon; those of JapaneseVowels are padded to one length.
OF_AEON = {
    "ACSF1": "ACSF1",
    "ArrowHead": "ArrowHead",
    "BasicMotions": "BasicMotions",
    "GunPoint": "GunPoint",
    "ItalyPowerDemand": "ItalyPowerDemand",
    "JapaneseVowels": "JapaneseVowels_eq",
    "OSULeaf": "OSULeaf",
}
SETS = ("ECG", *OF_AEON)
# Sets whose published split (seed 0) chose the default.
CHOSE = ("ECG", "ItalyPowerDemand", "OSULeaf")
MISSED = 20.0  # what it costs to take a day in winter for a day in summer
LEAVES = ["acer/circinatum", "acer/glabrum", "acer/macrophyllum", "acer/negundo"]
LEAVES += ["quercus/garryana", "quercus/kelloggii"]
FREQUENCY = (0.45, 0.25, 0.15, 0.1, 0.05)  # of the grades of the ECG
N_ECG, N_ECG_TEST = 500, 3000


class SeriesSplit(NamedTuple):
    """Series (n, channels, steps), labels from 0 on, and one cost matrix."""

    X_train: NDArray
    y_train: NDArray
    X_test: NDArray
    y_test: NDArray
    cost_matrix: NDArray

    def digest(self) -> str:
        return joblib.hash(tuple(self))


def draw(name: str, seed: int) -> SeriesSplit:
    """The split of a seed, which also draws the costs where no others are known."""
    if name == "ECG":
        rng = RandomState(seed)
        return SeriesSplit(*ecg(N_ECG, rng), *ecg(N_ECG_TEST, rng), ordinal_cost_matrix(
            len(FREQUENCY), over_cost=1, under_cost=6))  # fmt: skip
    (X, y), (X_test, y_test) = (read(name, part) for part in ("TRAIN", "TEST"))
    labels = np.unique(y, return_inverse=True)[1]
    if seed:
        n, X, y = len(X), np.concatenate([X, X_test]), np.concatenate([y, y_test])
        X, X_test, y, y_test = train_test_split(X, y, train_size=n, stratify=y, random_state=seed)
    classes, y = np.unique(y, return_inverse=True)
    y_test = np.searchsorted(classes, y_test)
    if name == "ItalyPowerDemand":
        matrix = np.array([[0, 1], [MISSED, 0]])
    elif name == "OSULeaf":
        matrix = np.array(tree_distance_cost_matrix(dict(zip(classes, LEAVES))), dtype=float)
    else:
        matrix = lognormal(labels, labels, RandomState(seed)).cost_matrix
    return SeriesSplit(X, y, X_test, y_test, matrix)


def read(name: str, part: str) -> tuple[NDArray[np.float32], NDArray]:
    """Read series and labels from a file of aeon: channels lie between colons, the label last."""
    package = find_spec("aeon")
    if package is None or package.origin is None:
        raise ImportError(
            f"The set {name} comes with the package aeon, which is not installed: pip install aeon,"
            " in an environment of its own if its numba needs an older numpy. ECG needs no package."
        )
    folder = Path(package.origin).parent / "datasets" / "data"
    lines = (folder / name / f"{OF_AEON[name]}_{part}.ts").read_text().splitlines()
    start = 1 + [line.strip().lower() for line in lines].index("@data")
    rows = [line.split(":") for line in lines[start:] if line.strip()]
    series = [[channel.split(",") for channel in channels] for *channels, _ in rows]
    return np.array(series, dtype=np.float32), np.array([label.strip() for *_, label in rows])


def ecg(n: int, rng: RandomState, n_steps: int = 150) -> tuple[NDArray[np.float32], NDArray]:
    """Heart beats in noise; their ST segments are lower in five grades, and beats less regular."""
    y, t = rng.choice(len(FREQUENCY), n, p=FREQUENCY), np.arange(n_steps)
    X = rng.normal(0, 0.25, (n, 1, n_steps))
    for x, grade in zip(X[:, 0], y):
        pause = rng.uniform(28, 36)
        beat, severity = rng.uniform(0, pause), grade + rng.normal(0, 0.35)
        x += 0.25 * np.sin(2 * np.pi * (t / n_steps * rng.uniform(0.5, 2) + rng.uniform()))
        while beat < n_steps + 10:
            s = t - beat
            x += 1.5 * np.exp(-0.5 * (s / 1.2) ** 2) - 0.3 * np.exp(-0.5 * ((s - 3) / 1.2) ** 2)
            x -= 0.13 * severity / (1 + np.exp(4 - s)) / (1 + np.exp(s - 12))
            x += (0.35 - 0.05 * severity) * np.exp(-0.5 * ((s - 14) / 3) ** 2)
            beat += pause * (1 + rng.normal(0, 0.03 + 0.02 * max(severity, 0)))
    return X.astype(np.float32), y
