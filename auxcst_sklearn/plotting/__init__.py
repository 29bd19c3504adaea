"""Displays: cost against a parameter, the losses of all layers, and where the cost is paid.

They follow scikit-learn's convention: ``from_...`` makes and draws one, ``plot`` draws it again.
"""

from ._confusion import CostConfusionDisplay
from ._curve import CostCurveDisplay
from ._layer_loss import LayerLossDisplay

__all__ = ["CostConfusionDisplay", "CostCurveDisplay", "LayerLossDisplay"]
