"""What a loss is, and what it is computed from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor

from .._scaling import CostStatistics


class Target(NamedTuple):
    """What a batch of examples is learnt from.

    Parameters
    ----------
    cost : Tensor of shape (n_samples, n_classes)
        Cost vectors, in units of the training.
    label : Tensor of shape (n_samples,), integer
        Index of the true class.
    weight : Tensor of shape (n_samples,), default=None
        Weights of the examples; None for equal ones.
    """

    cost: Tensor
    label: Tensor
    weight: Tensor | None = None


class Loss(ABC):
    """What a head learns. Subclass it for a loss of your own and pass an instance as ``loss=``."""

    @abstractmethod
    def __call__(self, outputs: Tensor, cost: Tensor, label: Tensor) -> Tensor:
        """Loss of every example.

        Parameters
        ----------
        outputs : Tensor of shape (..., n_samples, n_classes)
            Outputs of one head, or of several heads stacked in front.
        cost : Tensor of shape (n_samples, n_classes)
            Cost vectors.
        label : Tensor of shape (n_samples,), integer
            Index of the true class.

        Returns
        -------
        Tensor of shape (..., n_samples)
            Losses, not yet averaged.
        """

    def mean(
        self, outputs: Tensor, cost: Tensor, label: Tensor, weight: Tensor | None = None
    ) -> Tensor:
        """Mean loss of each head, for losses that compute it faster than example by example.

        Parameters
        ----------
        outputs : Tensor of shape (..., n_samples, n_classes)
            Outputs of one head, or of several heads stacked in front.
        cost : Tensor of shape (n_samples, n_classes)
            Cost vectors.
        label : Tensor of shape (n_samples,), integer
            Index of the true class.
        weight : Tensor of shape (n_samples,), default=None
            Weights of the examples, with a mean of 1 over the training set.

        Returns
        -------
        Tensor of shape (...)
            Means of the losses times the weights.
        """
        losses = self(outputs, cost, label)
        return (losses if weight is None else losses * weight).mean(dim=-1)

    def estimate(self, outputs: Tensor, statistics: CostStatistics) -> Tensor:
        """Turn outputs into estimated costs; here they are.

        Parameters
        ----------
        outputs : Tensor of shape (..., n_outputs)
            Outputs of a head.
        statistics : CostStatistics
            What the training costs say of the classes: `mean`, the mean cost vector (n_classes,),
            `class_mean`, that of each class (n_classes, n_classes), and `prior`, their shares
            (n_classes,), as arrays.

        Returns
        -------
        Tensor of shape (..., n_classes)
            Estimated costs, in units of the training.
        """
        return outputs

    def soften(self, outputs: Tensor, temperature: float) -> Tensor:
        """Outputs of class probabilities that are less certain; here logits, divided.

        Parameters
        ----------
        outputs : Tensor of shape (..., n_outputs)
            Outputs of the network.
        temperature : float
            What logits are divided by.

        Returns
        -------
        Tensor of the shape of `outputs`
            What `estimate` takes in their place.
        """
        return outputs / temperature

    @property
    def has_probabilities(self) -> bool:
        """Whether `probabilities` is defined, so that a temperature may be learnt."""
        return type(self).probabilities is not Loss.probabilities

    def probabilities(self, outputs: Tensor) -> Tensor:
        """Class probabilities, for losses whose estimates come from them.

        Parameters
        ----------
        outputs : Tensor of shape (..., n_outputs)
            Outputs of the network, softened or not.

        Returns
        -------
        Tensor of shape (..., n_classes)
            Probabilities.

        Raises
        ------
        NotImplementedError
            If the loss has none.
        """
        raise NotImplementedError(f"{type(self).__name__} has no class probabilities.")

    def start_bias(self, statistics: CostStatistics) -> Tensor:
        """Biases that a head starts with: the mean cost vector, the best guess of all.

        Parameters
        ----------
        statistics : CostStatistics
            What the training costs say of the classes, as in `estimate`.

        Returns
        -------
        Tensor of shape (n_outputs,)
            Biases.
        """
        return torch.as_tensor(statistics.mean)

    def specialize(self, cost: NDArray, label: NDArray, weight: NDArray | None) -> Loss:
        """Give the loss for a training set whose costs are per example; here the same.

        Parameters
        ----------
        cost : ndarray of shape (n_samples, n_classes)
            Cost vectors, in units.
        label : ndarray of shape (n_samples,), integer
            Index of the true class.
        weight : ndarray of shape (n_samples,) or None
            Sample weights.

        Returns
        -------
        Loss
            What is trained.
        """
        return self

    def resume(self, cost: NDArray, label: NDArray, weight: NDArray | None) -> Loss:
        """Give the loss for a training that goes on with other examples; here the same.

        Parameters
        ----------
        cost, label, weight
            As in `specialize`.

        Returns
        -------
        Loss
            What is trained from now on.
        """
        return self

    def n_cost_outputs(self, n_classes: int) -> int:
        """Outputs of a second network, which follow those of the first; 0 for none.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        Returns
        -------
        int
            Number of outputs.
        """
        return 0
