"""From a training set to a training: losses, module, net, training rows and held-out rows."""

from __future__ import annotations

import os
from abc import abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from .._inputs import Inputs
from .._training.distributed import processes
from .._training.holdout import folds, hold_out, sampled_folds
from .._training.rows import Rows, RowSets
from .._training.runtime import seeded
from .._training.training_set import TrainingSet
from ..costs._statistics import CostScale
from ..losses import LayerWiseLoss, Loss, ProbabilisticLoss, get_loss
from ..modules import AuxNetwork
from ..modules._cost_network import ClassAndCostNetwork
from ..modules._stacked import stack
from .parameters import (
    check_callbacks,
    check_net_params,
    optimizer_arguments,
    resolve_batch_size,
    resolve_device,
    resolve_learning_rate,
)

if TYPE_CHECKING:  # skorch is slow to import: on first use
    from .._training.net import CostNet
    from .._training.training import Training

# With fewer rows, none are held out.
MIN_HOLD_OUT_ROWS = 10


@dataclass
class Prepared:
    """What a training needs beside a net: rows in the form of the network, costs in units."""

    data: TrainingSet
    scale: CostScale
    rows: Rows
    held_out: Rows | None


class BuildMixin:
    """Builds a training from the parameters of an estimator."""

    net_: CostNet
    _inputs: Inputs
    classes_: np.ndarray
    decisions_: np.ndarray
    _random_state: np.random.RandomState
    loss: str | Loss
    max_epochs: int
    schedule: str
    batch_size: int | str
    learning_rate: Any
    weight_decay: float
    optimizer: str | type
    early_stopping: bool
    device: str
    verbose: int | bool
    callbacks: list[Any] | None
    net_params: dict[str, Any] | None
    distributed: Literal["auto", False]

    validation_fraction: float

    # Parameters that some estimators lack.
    aux_loss: str | Loss | None = None
    n_networks = 1
    averaging = 0.0
    temperature: float | str = 1.0
    warm_start = False
    precision = "float32"
    checkpoint_dir: str | os.PathLike[str] | None = None
    checkpoint_every = 1
    store_held_out_proba = False

    # Whether the loss may add a cost network, which learns costs that differ within a class.
    _may_add_cost_network = True

    @abstractmethod
    def _make_inputs(self) -> Inputs:
        """What X becomes, before any X is known."""

    @abstractmethod
    def _make_module(self, n_features: int, n_outputs: int) -> tuple[AuxNetwork, list[float]]:
        """Build the network, and the weight alpha of each of its auxiliary heads."""

    def _net_arguments(self, module: AuxNetwork) -> dict[str, Any]:
        """Arguments of the skorch net that the estimator itself needs; here none."""
        return {}

    def _pretrain(self, net: CostNet, rows: Rows) -> None:
        """Pretrain the hidden layers before joint training; here nothing."""

    def _build(
        self,
        data: TrainingSet,
        resume: bool,
        *,
        validation: TrainingSet | None = None,
        stream: bool = False,
    ) -> Training:
        """All steps before the training of the whole network."""
        return self._assemble(self._prepare(data, validation, resume, stream), resume, stream)

    def _prepare(
        self,
        data: TrainingSet,
        validation: TrainingSet | None,
        resume: bool = False,
        stream: bool = False,
    ) -> Prepared:
        """Learn inputs and unit of costs, and bring all rows into their form for the network."""
        data = data.with_positive_weights()
        if resume:
            data, scale = self._continue(data, stream), self.net_.scale
        else:
            self._inputs.learn(data.X, stream=stream)
            scale = data.scale()
            data = data.in_units(scale)
        data = replace(data, X=self._inputs.transform(data.X))
        device, held_out = resolve_device(self.device), None
        if validation is not None:
            validation = replace(validation, X=self._inputs.transform(validation.X))
            held_out = Rows(validation.with_positive_weights().in_units(scale), device)
        return Prepared(data, scale, Rows(data, device), held_out)

    def _assemble(self, prepared: Prepared, resume: bool = False, stream: bool = False) -> Training:
        """The net with the training rows of its networks, and their held-out rows."""
        from .._training.training import Training

        data, rows, held_out = prepared.data, prepared.rows, prepared.held_out
        net = self.net_ if resume else self._make_net(data, prepared.scale, stream)
        n = net.n_networks
        if held_out is not None:
            training = Training(net, rows.shared(n), held_out.shared(n))
        elif self.early_stopping and not stream:
            training = Training(net, *self._share_out(n, rows, data))
        else:
            training = Training(net, rows.shared(n))
        if not resume:
            with net.thread_limit():
                self._pretrain(net, training.rows.sets[0])
        net.seed(self._draw_seed())
        return training

    def _share_out(
        self, n_networks: int, rows: Rows, data: TrainingSet
    ) -> tuple[RowSets, RowSets | None]:
        """Training rows and held-out rows of each network; with few rows, none are held out."""
        if len(rows) < MIN_HOLD_OUT_ROWS:
            return rows.shared(n_networks), None
        if not (self.warm_start and hasattr(self, "_fold_seed")):  # rows seen once stay seen
            self._fold_seed = self._draw_seed()
        seed, groups = self._fold_seed, data.groups
        n_folds = max(n_networks, round(1 / self.validation_fraction))
        share = self.validation_fraction if n_networks == 1 else 1 / n_folds
        if rows.in_blocks:
            return _sample_out(rows, data, n_networks, share, seed)
        if n_networks == 1:
            parts = [hold_out(data.label, share, random_state=seed, groups=groups)]
        else:
            parts = folds(data.label, n_folds, random_state=seed, groups=groups)
        seen, held_out = zip(*parts[:n_networks])
        return RowSets([rows.part(index) for index in seen]), rows.held_out(held_out)

    def _continue(self, data: TrainingSet, stream: bool) -> TrainingSet:
        """Add the samples that a training continues with, in its units."""
        net = self.net_
        self._check_cost_network(data)
        net.use_callbacks(check_callbacks(self.callbacks))
        net.verbose = self._verbose()
        size = self._resolve_batch_size(data, stream)
        if stream:
            if self.batch_size == "auto":
                # A first block may be tiny, but then many small steps for later blocks take long.
                size = max(net.batch_size, size)
            self._inputs = copy(self._inputs)  # unchanged if the call fails
            self._inputs.update(data.X, net.module_)
        net.batch_size = size
        return net.continue_on(data, stream=stream)

    def _check_cost_network(self, data: TrainingSet) -> None:
        """Raise an error for costs that do not fit the network of a continued training."""
        n_classes = len(self.classes_)
        if self.net_.criterion_.loss.n_cost_outputs(n_classes):
            if data.per_class:
                raise ValueError(
                    "Training continues with a network that has learnt per-sample costs with a "
                    "cost network, which costs of classes do not need. Refit "
                    "(warm_start=False), or pass cost= as before."
                )
        elif self._may_learn_sample_costs(data):
            target = data.in_units(data.scale()).target()
            if self.net_.criterion_.loss.for_sample_costs(target).n_cost_outputs(n_classes):
                raise ValueError(
                    "Training continues with a network that has learnt costs of classes, and it "
                    "has no cost network for costs that differ within a class, as those in cost "
                    "do. Refit (warm_start=False), or pass per-sample costs from the first "
                    "call on."
                )

    def _calibrates(self, net: CostNet) -> bool:
        """Whether a temperature is to be learnt, if there are rows for it."""
        return self.temperature == "auto" and isinstance(net.criterion_.loss, ProbabilisticLoss)

    def _make_net(self, data: TrainingSet, scale: CostScale, stream: bool) -> CostNet:
        from .._training.net import CostNet
        from .._training.stack_net import StackNet

        device = resolve_device(self.device)
        loss, aux_loss = self._losses(data, stream)
        statistics = data.statistics()
        modules = []
        for i in range(self.n_networks):
            module, alpha = self._make_network(data, loss)
            self._inputs.vary(module, i)
            module.start_at(loss.start_bias(statistics), aux_loss.start_bias(statistics))
            modules.append(module.float())
        module = modules[0] if len(modules) == 1 else stack(modules)
        arguments = {
            **optimizer_arguments(self.optimizer, self.weight_decay, device),
            "lr": resolve_learning_rate(
                self.learning_rate, self.schedule, int(np.prod(data.X.shape[1:]))
            ),
            "max_epochs": self.max_epochs,
            "batch_size": self._resolve_batch_size(data, stream),
            "user_callbacks": check_callbacks(self.callbacks),
            "device": device,
            "train_split": None,
            "verbose": self._verbose(),
            **self._inputs.net_arguments(),
            **self._net_arguments(module),
            **check_net_params(self.net_params),
        }
        known = {"scale": scale, "statistics": statistics, **arguments}
        if self.n_networks > 1:
            net: CostNet = StackNet.of(module, loss, aux_loss, alpha, **known)
        else:
            net = CostNet(module, LayerWiseLoss(loss, aux_loss, alpha), **known)
        net.module.set_precision(self.precision == "bf16")
        if isinstance(self.temperature, Real):
            net.temperature = float(self.temperature)
        net.initialize()
        return net

    def _resolve_batch_size(self, data: TrainingSet, stream: bool) -> int:
        schedule = self.schedule if self.early_stopping and not stream else "constant"
        return resolve_batch_size(self.batch_size, len(data.label), schedule)

    def _n_outputs(self, loss: Loss) -> int:
        """One output per class for losses with probabilities, one per decision for others."""
        losses = (loss, get_loss(self.aux_loss or loss))
        kinds = {isinstance(one, ProbabilisticLoss) for one in losses}
        if len(kinds) > 1 and len(self.decisions_) != len(self.classes_):
            raise ValueError(
                f"loss={self.loss!r} and aux_loss={self.aux_loss!r} have different outputs, "
                f"{len(self.classes_)} classes and {len(self.decisions_)} decisions; expected both "
                "with class probabilities, or both without. Leave aux_loss out."
            )
        return len(self.classes_ if True in kinds else self.decisions_)

    def _losses(self, data: TrainingSet, stream: bool = False) -> tuple[Loss, Loss]:
        """Losses of the output and of the auxiliary heads."""
        loss = get_loss(self.loss)
        aux_loss = loss if self.aux_loss is None else get_loss(self.aux_loss)
        if self._may_learn_sample_costs(data):
            loss = loss.for_sample_costs(data.target(), stream)
        return loss, aux_loss

    def _may_learn_sample_costs(self, data: TrainingSet) -> bool:
        """Whether costs differ within classes, and may have to be learnt from the features."""
        return self._may_add_cost_network and not data.per_class and data.matrices is None

    def _verbose(self) -> int:
        """How much the net prints, in one process only."""
        return int(self.verbose) if processes().rank == 0 else 0

    def _make_network(self, data: TrainingSet, loss: Loss) -> tuple[AuxNetwork, list[float]]:
        """The network, together with a cost network if the loss needs one, and its alphas."""
        seed, n_features, n_classes = self._draw_seed(), data.X.shape[1], len(self.classes_)
        with seeded(seed):
            module, alpha = self._make_module(n_features, self._n_outputs(loss))
        if n_cost_outputs := loss.n_cost_outputs(n_classes):
            with seeded(seed + 1):  # the same start, whatever heads the other network has
                costs, _ = self._make_module(n_features, n_cost_outputs)
            costs.heads.clear()
            module = ClassAndCostNetwork(module, costs)
        return module, alpha

    def _check_use_of_validation(self, net: CostNet) -> None:
        """Raise an error for a validation set used neither for stopping nor for a temperature."""
        if not (self.early_stopping or self._calibrates(net)):
            raise ValueError(
                "X_val has no use here: early_stopping=False, and no temperature is learnt. Set "
                "early_stopping=True, or leave X_val and y_val out."
            )

    def _draw_seed(self) -> int:
        return int(self._random_state.randint(np.iinfo(np.int32).max))


def _sample_out(
    rows: Rows, data: TrainingSet, n_networks: int, share: float, seed: int
) -> tuple[RowSets, RowSets]:
    """For very many rows: the training rows of each network, and a sample of its held-out rows."""
    found = sampled_folds(
        data.label, n_networks, share, rows.row_nbytes, random_state=seed, groups=data.groups
    )
    of_row = torch.from_numpy(found.of_row)
    sample = rows.gathered(np.concatenate(found.rows), np.concatenate(found.weight))
    ends = np.cumsum([len(part) for part in found.rows])[:-1]
    held_out = sample.held_out(np.split(np.arange(len(sample)), ends))
    return RowSets([rows.without(of_row, i) for i in range(n_networks)]), held_out
