"""Networks that differ in alpha and seed alone, trained as one network on batched matrices."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from ._base import BaseCostSensitiveNet
from ._batches import Rows, Task, epoch_means, join_targets
from ._schedule import one_cycle, set_rate
from ._threads import thread_limit
from .losses import Loss, Target
from .modules import AuxNetwork, stack, unstack


@contextmanager
def naming_alpha(alpha: object) -> Iterator[None]:
    """Say with which alpha a fit failed."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"With alpha={alpha}: {error}") from error


class BestWeights:
    """Early stopping of each network by itself, as skorch's callback does it for one."""

    def __init__(self, network: AuxNetwork, n_networks: int, patience: int) -> None:
        self.parameters = list(network.parameters())
        self.weights = [parameter.detach().clone() for parameter in self.parameters]
        self.cost = np.full(n_networks, np.inf)
        self.misses = np.zeros(n_networks, dtype=int)
        self.patience = patience

    @property
    def stopped(self) -> np.ndarray:
        """Which networks are done; the others may still find better weights."""
        return self.misses >= self.patience

    def update(self, cost: np.ndarray) -> None:
        """Keep the weights of networks whose held-out cost is smaller than before."""
        better = ~self.stopped & (cost < self.cost)
        self.cost[better] = cost[better]
        self.misses = np.where(better, 0, self.misses + 1)
        chosen = torch.from_numpy(better)
        for best, parameter in zip(self.weights, self.parameters):
            best[chosen] = parameter.detach()[chosen]

    @torch.no_grad()
    def restore(self) -> None:
        """Give every network the weights of its best epoch."""
        for best, parameter in zip(self.weights, self.parameters):
            parameter.copy_(best)


class JointTraining:
    """The training of estimators that `_begin` has prepared, all at once.

    The networks do not interact: what is minimised is the sum of what each would minimise alone,
    and the optimizers of torch treat every weight by itself.

    Parameters
    ----------
    models : sequence of estimators
        Those of one seed are ``len(tasks)`` apart.
    tasks : sequence of Task
        One for each seed.
    """

    def __init__(self, models: Sequence[BaseCostSensitiveNet], tasks: Sequence[Task]) -> None:
        self.models, self.tasks = models, tasks
        self.nets = [model.net_ for model in models]
        for i, net in enumerate(self.nets):
            net.scale, net.statistics = self._task(i).scale, self._task(i).statistics
        first = self.nets[0]
        self.criterion = first.criterion_
        self.network = stack([net.module_ for net in self.nets], len(tasks))
        self.parameters = list(self.network.parameters())
        args, kwargs = first.get_params_for_optimizer("optimizer", self.network.named_parameters())
        self.optimizer = first.optimizer(*args, **kwargs)
        layers = self.network.layers
        self.heads = [[layers.index(name) for name in net.module_.layers] for net in self.nets]
        self.head_weights = torch.zeros(
            len(layers), len(models), dtype=torch.float32, device=first.device
        )
        for i, (net, heads) in enumerate(zip(self.nets, self.heads)):
            self.head_weights[heads, i] = net.criterion_.head_weights

    def run(self) -> None:
        """Train the networks, and give each estimator its own."""
        from tqdm.auto import tqdm

        model, net = self.models[0], self.nets[0]
        silent = None if model.verbose else True  # None: a bar on a terminal only
        with (
            thread_limit(net.multiplications_per_row * net.batch_size * len(self.nets)),
            tqdm(total=model.max_epochs, unit="epoch", leave=False, disable=silent) as bar,
        ):
            best = None
            if self.tasks[0].valid is not None:
                best = BestWeights(self.network, len(self.nets), model.patience)
            rates = self._rates(model.schedule, model.max_epochs)
            for _ in range(model.max_epochs):
                self._run_epoch(rates, best)
                bar.update()
                if best is not None and best.stopped.all():
                    break
            if best is not None:
                best.restore()
            self._give_back()

    def _give_back(self) -> None:
        """Give every net its own weights."""
        unstack(self.network, [net.module_ for net in self.nets])
        for i, (model, net) in enumerate(zip(self.models, self.nets)):
            net.module_.eval()
            with naming_alpha(model.alpha):
                net.check_outputs(self._task(i).train)

    def _task(self, i: int) -> Task:
        return self.tasks[i % len(self.tasks)]

    def _rates(self, schedule: str, epochs: int) -> Iterator[float] | None:
        """The shares of the learning rate at each step; None for a constant one."""
        if schedule == "constant":
            return None
        n_batches = len(self.nets[0].get_iterator(self.tasks[0].train, training=True))
        for group in self.optimizer.param_groups:
            group["initial_lr"] = group["lr"]
        return one_cycle(epochs * n_batches)

    def _run_epoch(self, rates: Iterator[float] | None, best: BestWeights | None) -> None:
        start = time.time()
        running = np.ones(len(self.nets), dtype=bool) if best is None else ~best.stopped
        train = self._train(rates)
        valid = None if best is None else self._validate()
        duration = time.time() - start
        for i in np.flatnonzero(running):
            history, heads = self.nets[i].history, self.heads[i]
            history.new_epoch()
            history.record("epoch", len(history))
            with naming_alpha(self.models[i].alpha):
                self.nets[i].record("train", train[heads, i].tolist())
                if valid is not None:
                    self.nets[i].record("valid", valid[[*heads, -2, -1], i].tolist())
            history.record("dur", duration)
        if best is not None:
            best.update(np.array([net.history[-1, "valid_cost"] for net in self.nets]))

    @torch.enable_grad()
    def _train(self, rates: Iterator[float] | None) -> np.ndarray:
        """Pass over the training rows once; mean losses (n_heads, n_networks)."""
        self.network.train()
        means, sizes = [], []
        for batches in self._batches("train"):
            if rates is not None:
                set_rate(self.optimizer, next(rates))
            for parameter in self.parameters:
                parameter.grad = None
            x, target = _join(batches)
            losses = self._losses(self.network.forward_heads(x), target)
            (losses * self.head_weights).sum().backward()
            self.optimizer.step()
            means.append(losses.detach())
            sizes.append(x.shape[1])
        return epoch_means(means, sizes)

    @torch.no_grad()
    def _validate(self) -> np.ndarray:
        """Mean losses of the held-out rows, and below them the costs and weights of decisions."""
        self.network.eval()
        means, sizes = [], []
        for batches in self._batches("valid"):
            x, target = _join(batches)
            outputs = self.network.forward_heads(x)
            costs = [
                net.decision_cost(output, batches[i % len(batches)][1])
                for i, (net, output) in enumerate(zip(self.nets, outputs[-1]))
            ]
            means.append(torch.cat([self._losses(outputs, target), torch.stack(costs, dim=1)]))
            sizes.append(x.shape[1])
        return epoch_means(means, sizes)

    def _batches(self, part: str) -> Iterator[tuple[tuple[Tensor, Target], ...]]:
        """The batch of every seed, side by side."""
        rows: list[Rows] = [getattr(task, part) for task in self.tasks]
        return zip(*(net.get_iterator(r, part == "train") for net, r in zip(self.nets, rows)))

    def _losses(self, outputs: list[Tensor], target: Target) -> Tensor:
        """Mean losses (n_heads, n_networks)."""
        loss, aux_loss = self.criterion.loss, self.criterion.aux_loss
        if loss is aux_loss:
            return self._mean_losses(loss, outputs, target)
        hidden = self._mean_losses(aux_loss, outputs[:-1], target) if outputs[1:] else None
        main = self._mean_losses(loss, outputs[-1:], target)
        return main if hidden is None else torch.cat([hidden, main])

    def _mean_losses(self, loss: Loss, outputs: list[Tensor], target: Target) -> Tensor:
        cost, label, weight = target
        r = torch.stack(outputs)  # seeds take turns, so that targets of all repeat themselves
        if len(self.tasks) == 1:
            return loss.mean(r.flatten(0, 1), *target).view(r.shape[:2])
        losses = loss(r.view(-1, len(label), r.shape[-1]), cost, label)
        if weight is not None:
            losses = losses * weight
        return losses.reshape(r.shape[:-1]).mean(dim=-1)


def _join(batches: Sequence[tuple[Tensor, Target]]) -> tuple[Tensor, Target]:
    """Inputs (n_seeds, n_samples, ...), and the targets of the seeds one below the other."""
    xs, targets = zip(*batches)
    return torch.stack(xs), join_targets(targets)
