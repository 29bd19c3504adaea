"""Displays of compared models, of the cost of mistakes, of thresholds and of losses of layers.

As in scikit-learn, ``from_...`` creates a display and draws it. ``plot`` draws it again.
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
