"""What a table of `bench_tables` is, and how it is loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from numpy.random import RandomState
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pandas import DataFrame


class Table(NamedTuple):
    """Features, labels from 0 on, and costs: known ones (n, K, K) or one matrix (K, K).

    A function of the labels and a random state for a matrix that the seed draws.
    """

    X: DataFrame
    y: NDArray
    costs: NDArray | Callable[[NDArray, RandomState], NDArray]


class TableSet(NamedTuple):
    """How a table is loaded from the folder, and the largest share of its rows to learn from.

    `known` if each row has a cost matrix of its own. Half of the rows are reserved for the seeds of
    the benchmark, unless the whole table is either for them or for development.
    """

    load: Callable[[Path], Table]
    n_classes: int = 2
    share: float = 1 / 2
    reserves: bool = True
    known: bool = False
