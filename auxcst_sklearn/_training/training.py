"""A training: a net, its training rows, and its held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .loop import Plan
from .net import CostNet
from .rows import RowSets
from .stack_net import JointNet


@dataclass
class Training:
    """A net (one network or a stack), its training rows, and its held-out rows.

    Held-out rows are used for early stopping if the plan has a patience, and for the temperature of
    the net.
    """

    net: CostNet
    rows: RowSets
    held_out: RowSets | None = None

    def run(self, plan: Plan) -> None:
        """Train the net."""
        with self.net.thread_limit():
            self.net.fit_rows(self.rows, self.held_out, plan)

    def with_rows_of(self, other: Training) -> Training:
        """The same net on the rows of another training, so that only one copy of them is kept."""
        return Training(self.net, other.rows, other.held_out)


def train_together(
    trainings: Sequence[Training], names: Sequence[str], n_seeds: int, plan: Plan
) -> None:
    """Train nets of one architecture as one stack; those of one seed are `n_seeds` apart."""
    net = JointNet([training.net for training in trainings], names, n_seeds)
    several = trainings[:n_seeds]
    rows = [rows for one in several for rows in one.rows.sets]
    held_out = [rows for one in several if one.held_out for rows in one.held_out.sets]
    Training(net, RowSets(rows), RowSets(held_out) if held_out else None).run(plan)
