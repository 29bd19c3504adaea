"""The losses of a head: K outputs per sample are compared with the K costs of its predictions.

A loss defines the training loss of one head, the conversion of outputs to estimated costs, and the
initial biases of the head. "bayes_risk" and "cross_entropy" learn class probabilities; "one_sided"
(the paper), "smooth_one_sided", "softmin" and "squared" learn the costs. Inside the network, the
unit of costs is the mean cost above each sample's minimum. The formulas are valid in any unit.
"""

from __future__ import annotations

from ._bayes_risk import BayesRisk, CrossEntropy
from ._loss import LayerWiseLoss, Loss, ProbabilisticLoss, Target
from ._regression import OneSided, SmoothOneSided, Softmin, Squared

__all__ = [
    "LOSSES",
    "BayesRisk",
    "CrossEntropy",
    "LayerWiseLoss",
    "Loss",
    "OneSided",
    "ProbabilisticLoss",
    "SmoothOneSided",
    "Softmin",
    "Squared",
    "Target",
]
__dir__ = __all__.copy  # without imported names


LOSSES: dict[str, Loss] = {
    "one_sided": OneSided(),
    "smooth_one_sided": SmoothOneSided(),
    "softmin": Softmin(),
    "squared": Squared(),
    "cross_entropy": CrossEntropy(),
    "bayes_risk": BayesRisk(),
}

# For errors about those without.
NAMES_WITH_PROBABILITIES = "loss=" + " or ".join(
    repr(name) for name, loss in LOSSES.items() if isinstance(loss, ProbabilisticLoss)
)
