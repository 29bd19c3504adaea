"""What is learnt in `bench_cost`: settings, and how a seed draws from them.

A :class:`Setting` crosses one kind of data with one kind of costs. A seed draws from it which rows
are learnt from and which are tested on (or, where data are synthetic, the whole problem), the
costs, the wrong labels and the random state of the methods, all of which meet the same
:class:`Draw`.

Seeds from :data:`DEVELOPMENT` on are for choosing defaults. They never see what the benchmark
tests on: rows that are reserved, or the problems, cost matrices and class trees that the smaller
seeds draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from benchmarks.cost.costs import COSTS
from benchmarks.cost.data import DATA

DEVELOPMENT = 100


class Draw(NamedTuple):
    """One draw of a setting: what a method learns from, and what it is judged by.

    `cost_matrix` holds for every example up to a positive factor, or is None; then
    `test_matrices` has one for each test example, for the method that gets the test costs.
    """

    X_train: NDArray
    y_train: NDArray
    cost_train: NDArray
    X_test: NDArray
    y_test: NDArray
    cost_test: NDArray
    cost_matrix: NDArray | None
    test_matrices: NDArray | None
    random_state: int


@dataclass(frozen=True)
class Setting:
    """A kind of data with a kind of costs."""

    data: str
    cost: str

    @property
    def name(self) -> str:
        return f"{self.data}/{self.cost}"

    @property
    def file_name(self) -> str:
        return self.name.replace("/", "_")

    @property
    def n_classes(self) -> int:
        return DATA[self.data].n_classes

    @property
    def costs_differ(self) -> bool:
        """Whether examples have costs that are not multiples of one matrix."""
        return self.cost in ("individual", "tumour")

    def draw(self, seed: int) -> list[Draw]:
        """All draws of a seed."""
        return [self._draw(seed, i) for i in range(DATA[self.data].n_draws)]

    def _draw(self, seed: int, i: int) -> Draw:
        entropy = np.random.SeedSequence([seed, i, crc32(self.name.encode())])
        of_data, of_costs, random_state = map(int, entropy.generate_state(3))
        data = DATA[self.data]
        split = data.draw(n_train=data.n_train, seed=of_data, development=seed >= DEVELOPMENT)
        X_train, y_train, X_test, y_test = split
        costs = COSTS[self.cost](X_train, y_train, RandomState(of_costs))
        of_train, of_test = costs.matrices(X_train), costs.matrices(X_test)
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
        return Draw(
            *(X_train, y_train, of_train[np.arange(len(y_train)), y_train]),
            *(X_test, y_test, of_test[np.arange(len(y_test)), y_test]),
            cost_matrix=costs.cost_matrix,
            test_matrices=of_test if costs.cost_matrix is None else None,
            random_state=random_state,
        )


SETTINGS: list[Setting] = [
    *(Setting("digits", cost) for cost in ("proportional", "tree", "lognormal")),
    *(Setting("wine", cost) for cost in ("proportional", "squared")),
    *(Setting("breast-cancer", cost) for cost in ("proportional", "tumour")),
    Setting("overlap2", "individual"),
    Setting("rare2", "proportional"),
    Setting("rare2", "individual"),
    Setting("overlap5", "scaled"),
    Setting("noise5", "proportional"),
    Setting("ordered5", "absolute"),
    *(Setting("overlap10", cost) for cost in ("proportional", "lognormal", "individual")),
    Setting("mislabelled10", "proportional"),
    Setting("ordered10", "squared"),
    *(Setting("overlap26", cost) for cost in ("proportional", "lognormal")),
    Setting("overlap50", "tree"),
]
