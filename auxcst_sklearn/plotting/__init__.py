"""Displays: models compared, the cost of mistakes, thresholds, the losses of layers.

They follow scikit-learn's convention: ``from_...`` creates and draws one, ``plot`` draws it again.
"""

from ._comparison import CostComparisonDisplay
from ._confusion import CostConfusionDisplay
from ._layer_loss import LayerLossDisplay
from ._threshold import CostThresholdDisplay

__all__ = [
    "CostComparisonDisplay",
    "CostConfusionDisplay",
    "CostThresholdDisplay",
    "LayerLossDisplay",
]
__dir__ = __all__.copy  # without imported names
