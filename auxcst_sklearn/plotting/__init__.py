"""Displays: cost against a parameter or a threshold, losses of all layers, where cost is paid.

They follow scikit-learn's convention: ``from_...`` makes and draws one, ``plot`` draws it again.
"""

from ._confusion import CostConfusionDisplay
from ._curve import CostCurveDisplay
from ._layer_loss import LayerLossDisplay
from ._threshold import CostThresholdDisplay

__all__ = ["CostConfusionDisplay", "CostCurveDisplay", "CostThresholdDisplay", "LayerLossDisplay"]
