"""Rows of `bench_growth`: thirty numbers, and claims with gaps, strings and few positives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from benchmarks.cost.tables_data import TableSplit
from benchmarks.cost.tables_extras import load

N_TEST = 25_000
N_LEVELS = (3, 5, 8, 12, 17, 23)
SHARE_OF_GAPS = 0.08


def numbers(n_rows: int) -> tuple[Any, NDArray, NDArray]:
    """Four classes of three clusters each, a twentieth of the labels at random."""
    X, y = make_classification(
        n_rows,
        30,
        n_informative=15,
        n_redundant=5,
        n_classes=4,
        n_clusters_per_class=3,
        class_sep=0.8,
        flip_y=0.05,
        random_state=0,
    )
    cost_matrix = np.array([[0, 1, 2, 1], [4, 0, 1, 6], [1, 1, 0, 1], [9, 5, 2, 0.0]])
    return load("pandas").DataFrame(X.astype(np.float32)), y, cost_matrix


def claims(n_rows: int) -> tuple[Any, NDArray, NDArray]:
    """Twelve numbers, four with gaps, and six columns of strings; 4 % positives.

    Amounts, counts, effects of categories, and products and steps of all of them.
    """
    rng = RandomState(0)
    effects = [0.7 * rng.standard_normal(n) for n in N_LEVELS]  # the same for all numbers of rows
    z = rng.standard_normal((n_rows, 12)).astype(np.float32)
    code = [(rng.random_sample(n_rows) ** 1.7 * levels).astype(int) for levels in N_LEVELS]
    score = sum(effect[c] for effect, c in zip(effects, code))
    score += 0.9 * z[:, 0] + 0.6 * abs(z[:, 4]) + 0.5 * np.sin(2 * z[:, 8]) + 0.4 * z[:, 9]
    score += 0.8 * z[:, 1] * z[:, 6] - 0.7 * (z[:, 2] > 0.8) * z[:, 7]
    score += 0.9 * (code[1] == 2) * (z[:, 3] > 0) + 0.6 * (code[3] % 3 == 1) * z[:, 5]
    y = (rng.random_sample(n_rows) < 1 / (1 + np.exp(9.0 - 1.3 * score))).astype(int)
    z[:, :4] = np.exp(z[:, :4])
    z[:, 4:6] = (3 * abs(z[:, 4:6])).round()
    for column in (1, 3, 6, 9):
        z[rng.random_sample(n_rows) < SHARE_OF_GAPS, column] = np.nan
    frame = load("pandas").DataFrame(z, columns=[f"number {i}" for i in range(12)])
    for i, (n, c) in enumerate(zip(N_LEVELS, code)):
        frame[f"string {i}"] = np.array([f"level {level}" for level in range(n)], object)[c]
    return frame, y, np.array([[0, 1.0], [20, 0]])


KINDS = {"numbers": numbers, "claims": claims}


def draw(kind: str, n_rows: int) -> TableSplit:
    """Training rows and test rows."""
    X, y, cost_matrix = KINDS[kind](n_rows + N_TEST)
    X, X_test, y, y_test = train_test_split(X, y, test_size=N_TEST, stratify=y, random_state=0)
    rows = X.reset_index(drop=True), y, X_test.reset_index(drop=True), y_test
    return TableSplit(*rows, cost_matrix, None, None, random_state=0)
