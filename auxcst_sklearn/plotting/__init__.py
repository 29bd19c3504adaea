"""Displays: cost against a parameter or threshold, losses of all layers, costs of mistakes.

They follow scikit-learn's convention: ``from_...`` creates and draws one, ``plot`` draws it again.
"""

from ._confusion import CostConfusionDisplay
from ._curve import CostCurveDisplay
from ._layer_loss import LayerLossDisplay
from ._threshold import CostThresholdDisplay

__all__ = ["CostConfusionDisplay", "CostCurveDisplay", "CostThresholdDisplay", "LayerLossDisplay"]
