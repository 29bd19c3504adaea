"""The interface of a loss, and its targets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..costs._statistics import CostStatistics


class Target(NamedTuple):
    """Costs, labels and weights of a batch as tensors, or of a training set as arrays.

    Parameters
    ----------
    cost : Tensor of shape (n_samples, n_classes)
        Cost vectors, in units of the training.
    label : Tensor of int64 of shape (n_samples,)
        Index of the true class.
    weight : Tensor of shape (n_samples,), default=None
        Weights of the samples, with a mean of 1 over the training set; None for equal ones.
    matrices : Tensor of shape (n_samples, n_classes, n_classes), default=None
        Cost matrix of each sample, if costs are known when deciding.
    """

    cost: Any  # arrays have no common type with tensors
    label: Any
    weight: Any | None = None
    matrices: Any | None = None


class Loss(ABC):
    """Loss of one head. Subclass it for your own loss, and pass an instance as ``loss=``."""

    @abstractmethod
    def __call__(self, outputs: Tensor, target: Target) -> Tensor:
        """Loss of every sample, without its weight.

        Parameters
        ----------
        outputs : Tensor of shape (..., n_samples, n_classes)
            Outputs of one head, or of several heads stacked in front.
        target : Target
            Costs and labels of the samples.

        Returns
        -------
        Tensor of shape (..., n_samples)
            Losses, not yet averaged.
        """

    def mean(self, outputs: Tensor, target: Target) -> Tensor:
        """Mean loss of each head; override it if it can be computed faster than sample by sample.

        Parameters
        ----------
        outputs : Tensor of shape (..., n_samples, n_classes)
            Outputs of one head, or of several heads stacked in front.
        target : Target
            Costs, labels and weights of the samples.

        Returns
        -------
        Tensor of shape (...)
            Means of the losses times the weights.
        """
        losses = self(outputs, target)
        return (losses if target.weight is None else losses * target.weight).mean(dim=-1)

    def to_cost(self, outputs: Tensor, statistics: CostStatistics) -> Tensor:
        """Convert outputs to estimated costs; by default the outputs themselves.

        Parameters
        ----------
        outputs : Tensor of shape (..., n_outputs)
            Outputs of a head.
        statistics : object
            Statistics of the training costs, with the arrays `mean`, the mean cost vector
            (n_classes,), `class_mean`, that of each class (n_classes, n_classes), and `prior`, the
            class frequencies (n_classes,).

        Returns
        -------
        Tensor of shape (..., n_classes)
            Estimated costs, in units of the training.
        """
        return outputs

    def start_bias(self, statistics: CostStatistics) -> Tensor:
        """Initial biases of a head: the mean cost vector, which is the best constant estimate.

        Parameters
        ----------
        statistics : object
            Statistics of the training costs, as in `to_cost`.

        Returns
        -------
        Tensor of shape (n_outputs,)
            Biases.
        """
        return torch.as_tensor(statistics.mean)

    def for_sample_costs(self, target: Target, stream: bool = False) -> Loss:
        """Return the loss for a training set with per-sample costs; by default the same.

        Parameters
        ----------
        target : Target
            Costs in units, labels and weights of the training set, as arrays.
        stream : bool, default=False
            Whether more samples will follow, whose costs may differ even if these do not.

        Returns
        -------
        Loss
            The loss to train with.
        """
        return self

    def for_more_samples(self, target: Target, stream: bool = False) -> Loss:
        """Return the loss for a training that continues with other samples; by default the same.

        Parameters
        ----------
        target : Target
            Costs in units, labels and weights of the new training set, as arrays.
        stream : bool, default=False
            Whether they are added to the previous samples, rather than replace them.

        Returns
        -------
        Loss
            The loss to continue with.
        """
        return self

    def rescaled(self, factor: float, shift: float) -> Loss:
        """Return the loss for another unit of the costs; by default the same.

        Parameters
        ----------
        factor, shift : float
            A cost c becomes ``factor * c + shift``.

        Returns
        -------
        Loss
            The loss to continue with.
        """
        return self

    def n_cost_outputs(self, n_classes: int) -> int:
        """Number of outputs of a cost network in addition to the class network; 0 for none.

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


class ProbabilisticLoss(Loss):
    """Loss whose outputs are logits of class probabilities, so that a temperature may be learnt."""

    @abstractmethod
    def probabilities(self, outputs: Tensor) -> Tensor:
        """Class probabilities, from which the estimated costs follow.

        Parameters
        ----------
        outputs : Tensor of shape (..., n_outputs)
            Outputs of the network, with or without a temperature.

        Returns
        -------
        Tensor of shape (..., n_classes)
            Probabilities.
        """

    def with_temperature(self, outputs: Tensor, temperature: float) -> Tensor:
        """Outputs with less confident probabilities: logits divided by the temperature.

        Parameters
        ----------
        outputs : Tensor of shape (..., n_outputs)
            Outputs of the network.
        temperature : float
            Divisor of the logits.

        Returns
        -------
        Tensor of the shape of `outputs`
            Scaled outputs.
        """
        return outputs / temperature
