"""The unit of the costs inside a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Largest cost, in units of the mean cost above the smallest; float64 has 16 digits.
LARGEST = 1e15


@dataclass(frozen=True)
class CostScale:
    """Affine map between the caller's currency and costs of order one.

    The offset is the mean of the row minima, and the unit is the mean cost above them, so that
    training depends neither on the currency nor on a fee common to all decisions.
    """

    offset: float = 0.0
    unit: float = 1.0

    @classmethod
    def of(cls, cost: NDArray[Any], weight: NDArray[Any] | None = None) -> CostScale:
        """Scale of cost vectors (m, K), each counted `weight` times."""
        # Dividing by the largest value first keeps sums of huge costs finite.
        largest = np.abs(cost).max()
        if largest == 0:
            return cls()
        relative = cost / largest
        lowest = relative.min(axis=1)
        above = relative - lowest[:, np.newaxis]
        offset = largest * np.average(lowest, weights=weight)
        share = np.average(above, axis=0, weights=weight).sum()
        count = np.average(above > 0, axis=0, weights=weight).sum()
        unit = largest * (share / count) if count > 0 else 0.0
        if unit > 0 and float(largest) / float(unit) > LARGEST:
            raise ValueError(
                f"cost holds values of {largest:.3g}, but the costs of a row exceed their smallest "
                f"by {unit:.3g} on average; such differences are lost in rounding. Subtract the "
                "smallest cost of each row, which changes no decision, or correct the values."
            )
        return cls(float(offset), float(unit) if unit > 0 else 1.0)

    def towards(self, other: CostScale, share: float) -> CostScale:
        """Running mean of this scale and another, weighted by its share."""
        return CostScale(
            (1 - share) * self.offset + share * other.offset,
            (1 - share) * self.unit + share * other.unit,
        )

    def to_units(self, cost: NDArray[Any]) -> NDArray[Any]:
        """Convert costs to units of the network."""
        return cost / self.unit - self.offset / self.unit  # huge costs do not overflow

    def to_currency(self, estimate: NDArray[Any]) -> NDArray[Any]:
        """Convert estimates to the caller's currency."""
        return estimate * self.unit + self.offset
