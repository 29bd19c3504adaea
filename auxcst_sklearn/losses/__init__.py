"""The losses of a head: K outputs per sample against the K costs of its predictions.

A loss defines the training loss of one head, the conversion of outputs to estimated costs, and the
initial biases of the head. Inside the network, costs are in units of the mean cost above each row's
minimum; the formulas hold in any unit.
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
    "get_loss",
]


def __dir__() -> list[str]:
    return __all__


LOSSES: dict[str, Loss] = {
    "one_sided": OneSided(),
    "smooth_one_sided": SmoothOneSided(),
    "softmin": Softmin(),
    "squared": Squared(),
    "cross_entropy": CrossEntropy(),
    "bayes_risk": BayesRisk(),
}


def get_loss(loss: str | Loss) -> Loss:
    """Return the loss with the given name; an instance is returned unchanged.

    Parameters
    ----------
    loss : str or Loss
        A name in ``LOSSES``, such as ``"one_sided"``, or an instance such as ``Softmin(tau=0.5)``.

    Returns
    -------
    Loss
        The loss object.

    Raises
    ------
    ValueError
        If there is no loss of that name.

    Examples
    --------
    >>> from auxcst_sklearn.losses import get_loss
    >>> get_loss("softmin")
    Softmin(tau=1.0)
    """
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        raise ValueError(
            f"loss is {loss!r}; expected one of {', '.join(map(repr, LOSSES))}, or an instance "
            "of auxcst_sklearn.losses.Loss."
        )
    return LOSSES[loss]
