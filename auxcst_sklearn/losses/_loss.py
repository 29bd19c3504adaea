"""The interface of a loss, its targets, and the training objective over all heads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from .._checks.bases import BaseEstimator
from ..costs._statistics import CostStatistics


class Target(NamedTuple):
    """Costs, labels and weights of a batch, as tensors.

    Parameters
    ----------
    cost : Tensor of shape (n_samples, n_decisions)
        Cost vectors, in the unit of the training.
    label : Tensor of int64 of shape (n_samples,)
        Index of the true class.
    weight : Tensor of shape (n_samples,), default=None
        Weights of the samples, with a mean of 1 over the training set. If None, all are equal.
    matrices : Tensor of shape (n_samples, n_classes, n_decisions), default=None
        Cost matrix of each sample, if costs are known at prediction time.
    """

    cost: Tensor
    label: Tensor
    weight: Tensor | None = None
    matrices: Tensor | None = None


class Loss(BaseEstimator, ABC):
    """Loss of one head. Subclass it for your own loss, and pass an instance as ``loss=``.

    By default, the outputs are estimated costs. A loss with other outputs overrides `n_outputs`
    (the number of outputs), `to_cost` (the costs that follow from them) and `start_bias` (their
    initial biases). As in an estimator of scikit-learn, each argument of the constructor is an
    attribute of the same name, so that a search can set it, such as by ``loss__smoothing``.
    """

    def set_params(self, **params: Any) -> Self:
        """Set parameters, which the constructor checks.

        Parameters
        ----------
        **params : dict
            Values of arguments of the constructor.

        Returns
        -------
        self : Loss
            The loss itself.
        """
        vars(self).update(vars(type(self)(**{**self.get_params(), **params})))
        return self

    @abstractmethod
    def __call__(self, outputs: Tensor, target: Target) -> Tensor:
        """Return the loss of every sample, without its weight.

        Parameters
        ----------
        outputs : Tensor of shape (..., n_samples, n_outputs)
            Outputs of one head, or of several heads along the first dimensions.
        target : Target
            Costs and labels of the samples.

        Returns
        -------
        Tensor of shape (..., n_samples)
            Losses before averaging.
        """

    def n_outputs(self, n_classes: int, n_decisions: int) -> int:
        """Return the number of outputs of a head, by default one for each decision.

        Parameters
        ----------
        n_classes, n_decisions : int
            Number of classes and of cost columns. The columns are the classes, unless the costs
            have other decisions.

        Returns
        -------
        int
            Number of outputs.
        """
        return n_decisions

    def _of_samples(self, outputs: Tensor, target: Target) -> Tensor:
        """The loss of every sample; an error for a mean of them, as criteria of torch return it."""
        losses = self(outputs, target)
        if losses.shape != outputs.shape[:-1]:
            raise ValueError(
                f"The loss {type(self).__name__} returned the shape {tuple(losses.shape)} for "
                f"outputs of shape {tuple(outputs.shape)}; expected the loss of each sample, "
                f"{tuple(outputs.shape[:-1])}, as with reduction='none'."
            )
        return losses

    def _mean(self, outputs: Tensor, target: Target) -> Tensor:
        """Mean loss of each head, which some losses compute faster than sample by sample."""
        losses = self._of_samples(outputs, target)
        return (losses if target.weight is None else losses * target.weight).mean(dim=-1)

    def to_cost(self, outputs: Tensor, statistics: CostStatistics) -> Tensor:
        """Convert outputs to estimated costs. By default, these are the outputs themselves.

        Parameters
        ----------
        outputs : Tensor of shape (..., n_outputs)
            Outputs of a head.
        statistics : object
            Statistics of the training costs with three arrays: `mean`, the mean cost vector
            (n_decisions,); `class_mean`, the mean cost vector of each class (n_classes,
            n_decisions); and `prior`, the class frequencies (n_classes,).

        Returns
        -------
        Tensor of shape (..., n_decisions)
            Estimated costs, in the unit of the training.
        """
        return outputs

    def start_bias(self, statistics: CostStatistics) -> Tensor:
        """Return the initial biases of a head: the mean cost vector, or 0 for other outputs.

        Parameters
        ----------
        statistics : object
            Statistics of the training costs with three arrays: `mean`, the mean cost vector
            (n_decisions,); `class_mean`, the mean cost vector of each class (n_classes,
            n_decisions); and `prior`, the class frequencies (n_classes,).

        Returns
        -------
        Tensor of shape (n_outputs,)
            Biases.
        """
        return self._start(statistics, torch.as_tensor(statistics.mean))

    def _start(self, statistics: CostStatistics, bias: Tensor) -> Tensor:
        """Biases, if there is one for each output."""
        n = self.n_outputs(*statistics.class_mean.shape)
        return bias if len(bias) == n else bias.new_zeros(n)

    def _for_statistics(self, statistics: CostStatistics) -> Loss:
        """The loss for a training set with these class frequencies and mean costs."""
        return self


class ProbabilisticLoss(Loss):
    """Loss whose outputs give class probabilities, so that a temperature may be learnt.

    The estimated costs are the expected costs under these probabilities. By default, there is an
    output for each class. Its initial bias is the logarithm of the class frequency.
    """

    @abstractmethod
    def probabilities(self, outputs: Tensor) -> Tensor:
        """Return the class probabilities, from which the estimated costs follow.

        Parameters
        ----------
        outputs : Tensor of shape (..., n_outputs)
            Outputs of the network, with or without a temperature.

        Returns
        -------
        Tensor of shape (..., n_classes)
            Probabilities.
        """

    def n_outputs(self, n_classes: int, n_decisions: int) -> int:
        """Return the number of outputs of a head, by default one for each class."""
        return n_classes

    def to_cost(self, outputs: Tensor, statistics: CostStatistics) -> Tensor:
        """Return the expected cost of each prediction under the class probabilities."""
        p = self.probabilities(outputs)
        p = p if p.device.type == "mps" else p.double()  # MPS has no float64
        return p @ p.new_tensor(statistics.class_mean)

    def start_bias(self, statistics: CostStatistics) -> Tensor:
        """Return the logarithms of the class frequencies as initial biases, or 0."""
        return self._start(statistics, torch.as_tensor(statistics.prior).log())

    def with_temperature(self, outputs: Tensor, temperature: float) -> Tensor:
        """Return outputs whose logits are divided by the temperature.

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

    def with_probabilities(self, outputs: Tensor, probability: Tensor) -> Tensor:
        """Return outputs with other class probabilities, by default their logarithms.

        Parameters
        ----------
        outputs : Tensor of shape (..., n_outputs)
            Outputs of the network.
        probability : Tensor of shape (..., n_classes)
            Class probabilities, such as means of the probabilities of several heads.

        Returns
        -------
        Tensor of the shape of `outputs`
            Outputs for which `probabilities` returns `probability`.
        """
        return probability.log()

    def _has_logits(self, n_classes: int) -> bool:
        """Whether `with_probabilities` makes outputs that have given probabilities."""
        p = torch.arange(1.0, n_classes + 1).unsqueeze(0) / (n_classes * (n_classes + 1) / 2)
        if self.n_outputs(n_classes, n_classes) != n_classes:
            return False
        recovered = self.probabilities(self.with_probabilities(p.log(), p))
        return torch.allclose(recovered, p, rtol=1e-3)


class LayerWiseLoss(nn.Module):
    """The training objective: sum over hidden layers of alpha_i L_i, plus the loss of the output.

    The objective of several networks is the sum of their objectives. The networks share no weights.
    Minimising the sum therefore minimises each objective.

    Parameters
    ----------
    loss : Loss
        Loss of the output layer.
    aux_loss : Loss
        Loss of the auxiliary heads.
    alpha : sequence of float, of length n_heads
        Weight of each auxiliary head.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.losses import LayerWiseLoss, OneSided, Target
    >>> objective = LayerWiseLoss(OneSided(), OneSided(), alpha=[0.5])
    >>> target = Target(cost=torch.tensor([[0.0, 1.0]]), label=torch.tensor([0]))
    >>> hidden, output = torch.tensor([[[1.0, 1.0]]]), torch.tensor([[[0.2, 1.0]]])
    >>> total, losses = objective([hidden, output], target)
    >>> total, losses.flatten()
    (tensor(0.7000), tensor([1.0000, 0.2000]))
    """

    alpha_of_layers: Sequence[float] = ()  # with those of weight 0, which have no head

    def __init__(self, loss: Loss, aux_loss: Loss, alpha: Sequence[float]) -> None:
        super().__init__()
        self.loss = loss
        self.aux_loss = aux_loss
        weights = torch.tensor([*alpha, 1.0], dtype=torch.float32).unsqueeze(1)
        self.alphas = nn.Buffer(weights, persistent=False)

    def _bind(self, statistics: CostStatistics) -> None:
        """Make the losses those of a training set; one that all heads share stays one."""
        is_shared = self.loss is self.aux_loss
        self.loss = self.loss._for_statistics(statistics)
        self.aux_loss = self.loss if is_shared else self.aux_loss._for_statistics(statistics)

    def _start_biases(self, statistics: CostStatistics) -> tuple[Tensor, Tensor]:
        """The initial biases of the output and of the auxiliary heads."""
        start = self.loss.start_bias(statistics)
        is_shared = self.loss is self.aux_loss
        return start, start if is_shared else self.aux_loss.start_bias(statistics)

    def _weigh(self, alpha_of_layers: Sequence[float]) -> None:
        """Set the weights of all layers; those of weight 0 have no head."""
        self.alpha_of_layers = alpha_of_layers
        weights = [weight for weight in alpha_of_layers if weight]
        now = self.alphas.new_tensor([*weights, 1.0]).unsqueeze(1)
        self.alphas = nn.Buffer(now, persistent=False)

    def forward(self, outputs: Sequence[Tensor], target: Target) -> tuple[Tensor, Tensor]:
        """Return the weighted sum of the heads' mean losses, and these losses.

        Parameters
        ----------
        outputs : sequence of Tensor of shape (n_networks, n_samples, n_classes)
            Outputs of the heads. The output layer is last.
        target : Target
            Costs, labels and weights of the batch. All networks have the same samples, or each
            network has its own samples, which are concatenated.

        Returns
        -------
        total : Tensor of shape ()
            The objective. The weight of the output layer is 1.
        losses : Tensor of shape (n_heads + 1, n_networks)
            Mean loss of each head of each network, detached from the graph.
        """
        if self.loss is self.aux_loss:
            means = _means(self.loss, outputs, target)
        else:
            means = _means(self.loss, outputs[-1:], target)
            if len(outputs) > 1:
                means = torch.cat([_means(self.aux_loss, outputs[:-1], target), means])
        total = means.sum() if len(outputs) == 1 else (means * self.alphas).sum()
        return total, means.detach()


def _means(loss: Loss, outputs: Sequence[Tensor], target: Target) -> Tensor:
    """Mean losses (n_heads, n_networks)."""
    n_heads, (n_networks, n_samples, _), n_rows = len(outputs), outputs[0].shape, len(target.label)
    if n_rows == n_samples:
        # In memory samples come last, as in the network: gradients of another layout are slow.
        r = torch.cat([output.mT for output in outputs]).mT if n_heads > 1 else outputs[0]
        return loss._mean(r.squeeze(0), target).view(n_heads, n_networks)
    r = torch.stack(tuple(outputs))
    losses = loss._of_samples(r.view(n_heads, n_rows, -1), target)
    if target.weight is not None:
        losses = losses * target.weight
    return losses.view(n_heads, n_networks, n_samples).mean(dim=-1)
