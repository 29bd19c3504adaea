"""A training: a net, its training rows, and its held-out rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .loop import Plan
from .net import CostNet
from .rows import RowSets


@dataclass
class Training:
    """A net (one network or a stack), its training rows, and its held-out rows.

    Held-out rows are used for early stopping if the plan has a patience, and for the temperature of
    the net. `fold_seed` is the one that drew them, `attributes` are those of pretraining.
    """

    net: CostNet
    rows: RowSets
    held_out: RowSets | None = None
    fold_seed: int | None = None
    attributes: dict[str, Any] = field(default_factory=dict)

    def run(self, plan: Plan) -> None:
        """Train the net."""
        with self.net.thread_limit():
            self.net.fit_rows(self.rows, self.held_out, plan)
