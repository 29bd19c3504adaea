"""Displays: cost against a parameter, threshold or capacity, losses of layers, mistakes.

They follow scikit-learn's convention: ``from_...`` creates and draws one, ``plot`` draws it again.
"""

from ._capacity import CostCapacityDisplay
from ._confusion import CostConfusionDisplay
from ._curve import CostCurveDisplay
from ._layer_loss import LayerLossDisplay
from ._threshold import CostThresholdDisplay

__all__ = [
    "CostCapacityDisplay",
    "CostConfusionDisplay",
    "CostCurveDisplay",
    "CostThresholdDisplay",
    "LayerLossDisplay",
]
