"""The net of an estimator: training, predictions in currency, and pickling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import gen_batches
from skorch import NeuralNet
from skorch.callbacks import Callback
from skorch.utils import get_map_location, to_tensor
from torch import Tensor

from ..costs._statistics import CostStatistics
from ..losses import LayerWiseLoss, ProbabilisticLoss, Target
from ..losses._sample_risk import LARGEST_TABLE, SampleRisk
from ..modules._layers import SeededModule
from ..modules._network import AuxNetwork, copy_of
from .batches import Batches, Rows, shuffled_batches
from .devices import densify, free_memory, largest_output, multiplications_per_row
from .geometric_mean import MANY_CLASSES
from .plan import rows_by_memory
from .processes import ALONE, Processes, processes
from .schedule import RATE_FACTOR
from .state import FORMAT, check_format, from_state, saved_arguments, to_state
from .temperature import SMALLEST
from .torch_modes import neutral_torch_modes, thread_limit

# Up to this many rows are computed in batches of one size: the rounding of a product depends on its
# number of rows, and scikit-learn requires that 20 rows get alone, to 1e-7, what they get together.
PADDED_ROWS = 20

# Largest size in bytes of a batch of validation samples of all networks together, on a CPU.
EVALUATED_BYTES = 2**26
# Rows whose outputs show how many rows a GPU has memory for.
N_MEASURED = 4

# Entries of a skorch history that its callbacks read, but the user does not need.
SKORCH_ENTRIES = {"batches", "train_loss_best", "valid_loss_best", "valid_cost_best"}


class CostNet(NeuralNet):
    """A skorch net of networks side by side, with the statistics of its costs, and a temperature.

    The temperature divides the logits of the class probabilities. Inputs are as the network takes
    them. `forward`, `predict_proba`, `history`, `save_params`, `load_params` and ``clone`` are as
    in skorch; `forward` returns the outputs of all networks (n_samples, n_networks, n_outputs). The
    net is trained by the `fit` of its estimator.
    """

    _default_callbacks: list[tuple[str, Callback]] = []
    callbacks_: list[tuple[str, Callback]]
    optimizer_: Any
    batch_size: int
    iterator_valid__batch_size: int
    lr: float
    optimizer__weight_decay: float
    verbose: int

    callbacks: list[Any]
    generators: list[torch.Generator]
    device_generator: torch.Generator

    temperature: float = 1.0
    # Weights of heads and output in the geometric mean, which replaces the temperature.
    head_weights: NDArray[np.float64] | None = None

    def __init__(
        self,
        module: AuxNetwork,
        criterion: LayerWiseLoss,
        *,
        statistics: CostStatistics,
        may_grow: bool = True,
        **arguments: Any,
    ) -> None:
        super().__init__(module, criterion, **arguments)
        self.statistics = statistics
        # Whether a GPU may compute more rows at once; not if the user has set their number.
        self.may_grow = may_grow

    def initialize_for_prediction(self) -> None:
        """Initialize without the optimizer, which takes a second of imports."""
        self._initialize_virtual_params()
        self._initialize_module()
        self._initialize_criterion()
        self._initialize_history()
        self.callbacks_, self.optimizer_, self.initialized_ = [], None, True

    @property
    def n_networks(self) -> int:
        """Number of networks."""
        return self.module_.n_networks

    @cached_property
    def multiplications_per_row(self) -> float:
        """Multiply-adds of a forward pass of one row by all networks."""
        return multiplications_per_row(self.module_)

    def rows_at_once(self, usual: int, n_rows: int, last: Callable[[slice], Tensor]) -> int:
        """Samples of a batch without a gradient: the usual number, or more if a GPU has memory.

        The `last` rows are tried, because sequences are sorted by their length.
        """
        if not self.may_grow or (free := free_memory(self.device)) is None:
            return usual
        with neutral_torch_modes():
            tried = last(slice(max(0, n_rows - N_MEASURED), n_rows)).to(self.device)
            nbytes = largest_output(self.module_, tried)
        return rows_by_memory(usual, self.batch_size, nbytes, free)

    # --------------------------------------------------------------- training

    def prepare_optimizer(self) -> None:
        """Make the optimizer of a loaded net, and note the rates that schedules change."""
        if self.optimizer_ is None:
            self.initialize_callbacks()
            self._initialize_optimizer()
        for group in self.optimizer_.param_groups:
            # Schedules multiply the first rate of each group, so it is noted before they change the
            # rate. A group of pretrained weights has a smaller first rate.
            if "initial_lr" not in group:
                group["initial_lr"] = group["lr"] = group["lr"] * group.get(RATE_FACTOR, 1.0)

    def seed(self, seed: int) -> None:
        """Seed the generators of shuffling and of all modules that draw random numbers."""
        n, seeds = self.n_networks, np.array([seed])
        if n > 1:
            seeds = np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=n)
        self.generators = [torch.Generator().manual_seed(s) for s in seeds.tolist()]
        self.device_generator = torch.Generator(device=self.device)
        self.device_generator.manual_seed(processes().seed(seed))
        for module in self.module_.modules():
            if isinstance(module, SeededModule):
                module.generator = self.device_generator

    def thread_limit(self) -> AbstractContextManager[Any]:
        """Limit the threads of a training."""
        return thread_limit(self.batch_size * self.multiplications_per_row)

    def training_batches(self, sets: Sequence[Rows], group: Processes = ALONE) -> Batches:
        """Shuffled batches of every set of rows."""
        return shuffled_batches(sets, self.batch_size, self.generators, group)

    def evaluation_batches(self, sets: Sequence[Rows], group: Processes = ALONE) -> Batches:
        """Large batches of every set of rows, in order."""
        most, n = EVALUATED_BYTES // (len(sets) * sets[0].row_nbytes), len(sets[0])
        usual = max(1, min(max(self.batch_size, self.iterator_valid__batch_size), most))
        if n > usual:
            usual = self.rows_at_once(usual, n, lambda last: sets[0][torch.arange(n)[last]][0])
        return Batches(sets, group.from_first(usual), group=group)

    def infer(self, x: Any, **fit_params: Any) -> Tensor:
        """Outputs of all networks for a batch, (n_samples, n_networks, n_outputs)."""
        return self.module_(to_tensor(x, self.device).unsqueeze(0), **fit_params).movedim(0, 1)

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> NoReturn:
        """Raise an error: labels have no costs and no units here."""
        raise TypeError(
            "A fitted net_ cannot be trained by itself, because it has neither the costs nor the "
            "validation samples. Call fit or partial_fit of the estimator."
        )

    partial_fit = fit

    def records(self, start: int) -> list[dict[str, Any]]:
        """The records of the finished epochs from `start` on, for the user."""
        return [
            {key: value for key, value in record.items() if key not in SKORCH_ENTRIES}
            for record in self.history[start:]
            if "train_loss" in record
        ]

    def copy_for_training(self) -> CostNet:
        """A net of its own, with the same weights, optimizer state and history."""
        copied = CostNet(
            copy_of(self.module_),
            deepcopy(self.criterion_),
            statistics=self.statistics,
            callbacks=self.callbacks,
            may_grow=self.may_grow,
            **saved_arguments(vars(self)),
        )
        copied.initialize_for_prediction()
        if self.optimizer_ is not None:  # as of a loaded net
            copied.callbacks_ = self.callbacks_
            copied._initialize_optimizer()
            copied.optimizer_.load_state_dict(deepcopy(self.optimizer_.state_dict()))
        copied.history.extend(self.history)
        copied.temperature, copied.head_weights = self.temperature, self.head_weights
        return copied

    # ------------------------------------------------------------ prediction

    def paid(self, output: Tensor, target: Target) -> Tensor:
        """Cost of the decision for each row of outputs."""
        if target.matrices is None or not isinstance(self.criterion_.loss, ProbabilisticLoss):
            expected = self.to_cost(output)
        else:
            expected = (self.probabilities(output).unsqueeze(1) @ target.matrices).squeeze(1)
        return target.cost.gather(1, expected.argmin(dim=1, keepdim=True)).squeeze(1)

    def forward_ensemble(self, x: Tensor, module: Any = None) -> Tensor:
        """Outputs of the networks after the temperature, with the probabilities of their mean.

        `module` is a copy of the module of the net, with other settings.
        """
        loss = self.criterion_.loss
        output = self._at_temperature(self.forward_voted(x, module))
        if not self.is_geometric:
            return output
        logs = loss.probabilities(output).clamp(min=SMALLEST).log()
        # Every network returns the outputs of the common mean. What follows can average over
        # networks without knowing about it.
        return loss.with_probabilities(output, logs.mean(dim=0).softmax(dim=-1).expand_as(logs))

    @property
    def is_geometric(self) -> bool:
        """Whether the mean of the networks' probabilities is geometric."""
        has_many_classes = len(self.statistics.weight) >= MANY_CLASSES
        return self.n_networks > 1 and has_many_classes and self.has_logits

    @cached_property
    def has_logits(self) -> bool:
        """Whether the loss has class probabilities, and outputs for given ones."""
        loss = self.criterion_.loss
        return isinstance(loss, ProbabilisticLoss) and loss._has_logits(len(self.statistics.weight))

    def forward_voted(self, x: Tensor, module: Any = None) -> Tensor:
        """Outputs of the output layer, or with the mean probabilities of all layers.

        `module` is a copy of the module of the net, with other settings.
        """
        module = self.module_ if module is None else module
        if self.head_weights is None:
            return module(x)
        used = self.head_weights > 0
        layers = np.array(module.layers)[used].tolist()
        heads, loss = module.forward_heads(x, layers), self.criterion_.loss
        # `forward_heads` always returns the output, which is cut off here if only heads have a
        # weight.
        logs = self.log_probabilities(heads)[: used.sum()]  # the output may have no weight
        weights = logs.new_tensor(self.head_weights[used])
        mean = torch.einsum("l,l...->...", weights, logs).softmax(dim=-1)
        return loss.with_probabilities(heads[-1], mean)

    def log_probabilities(self, heads: Sequence[Tensor]) -> Tensor:
        """Logarithms (n_layers, n_networks, n_samples, n_classes), clipped as in `log_clipped`."""
        losses = [self.criterion_.aux_loss] * (len(heads) - 1) + [self.criterion_.loss]
        p = torch.stack([loss.probabilities(r) for loss, r in zip(losses, heads)])
        return p.clamp(min=SMALLEST).log()

    def to_cost(self, output: Tensor) -> Tensor:
        """Estimated costs from the output layer, after the temperature."""
        return self.criterion_.loss.to_cost(self._at_temperature(output), self.statistics)

    def probabilities(self, output: Tensor) -> Tensor:
        """Class probabilities from the output layer, after the temperature."""
        return self.criterion_.loss.probabilities(self._at_temperature(output))

    def _at_temperature(self, output: Tensor) -> Tensor:
        if self.temperature == 1:
            return output
        return self.criterion_.loss.with_temperature(output, self.temperature)

    def predict_heads(
        self, X: np.ndarray | sparse.csr_matrix, *, every_head: bool = False
    ) -> list[np.ndarray]:
        """Estimated costs (n, K) in currency: of the output, or of every head."""

        def compute(x: Tensor) -> list[Tensor]:
            hidden = self.module_.forward_heads(x)[:-1] if every_head else []
            estimates = [self.criterion_.aux_loss.to_cost(r, self.statistics) for r in hidden]
            output = self.criterion_.loss.to_cost(self.forward_ensemble(x), self.statistics)
            return [r.mean(dim=0) for r in (*estimates, output)]

        return [*map(self.statistics.to_currency, self._predict_batches(X, compute))]

    def predict_proba(self, X: np.ndarray | sparse.csr_matrix) -> np.ndarray:
        """Class probabilities (n, K), for losses that have them."""
        (p,) = self.staged_proba(X, every_head=False)
        return p

    def staged_proba(
        self, X: np.ndarray | sparse.csr_matrix, *, every_head: bool = True
    ) -> list[np.ndarray]:
        """Class probabilities (n, K) of the output, or of every head, whose losses have them."""

        def compute(x: Tensor) -> list[Tensor]:
            hidden = self.module_.forward_heads(x)[:-1] if every_head else []
            probabilities = [self.criterion_.aux_loss.probabilities(r) for r in hidden]
            output = self.criterion_.loss.probabilities(self.forward_ensemble(x))
            return [p.mean(dim=0) for p in (*probabilities, output)]

        return [p / p.sum(axis=1, keepdims=True) for p in self._predict_batches(X, compute)]

    @property
    def learns_sample_costs(self) -> bool:
        """Whether costs that differ within a class are estimated for each row."""
        return isinstance(self.criterion_.loss, SampleRisk)

    def expected_cost(
        self, X: np.ndarray | sparse.csr_matrix, probability: np.ndarray
    ) -> np.ndarray:
        """Costs (n, K) in currency under given probabilities, by the costs learnt for each row."""

        def compute(x: Tensor) -> list[Tensor]:
            return [self.criterion_.loss.class_costs(self.module_(x)).mean(dim=0)]

        expected = np.empty_like(probability)
        n, n_classes = probability.shape
        for rows in gen_batches(n, max(1, LARGEST_TABLE // n_classes**2)):
            (matrices,) = self._predict_batches(X[rows], compute)
            expected[rows] = (probability[rows, :, np.newaxis] * matrices).sum(axis=1)
        return self.statistics.to_currency(expected)

    def _predict_batches(
        self, X: np.ndarray | sparse.csr_matrix, compute: Callable[[Tensor], list[Tensor]]
    ) -> list[np.ndarray]:
        """Results of all rows in float64, computed batch by batch."""
        n = X.shape[0]
        few = n <= PADDED_ROWS
        arrays: list[np.ndarray] = []
        size = self.module_.even_rows if few else self.iterator_valid__batch_size
        lengths = None if few else self.module_.lengths(X)
        # Rows of similar length share a batch, which is cut to its longest row.
        order = None if lengths is None else lengths.argsort().numpy()
        if n > size:
            size = self.rows_at_once(
                size, n, lambda last: densify(X[last if order is None else order[last]])
            )
        limit = thread_limit(min(size, n) * self.multiplications_per_row)
        with neutral_torch_modes(), torch.no_grad(), limit:
            for start in range(0, n, size):
                rows: Any = slice(start, start + size)
                rows = rows if order is None else order[rows]
                x = densify(X[rows]).to(self.device)
                m = len(x)
                if few:  # a copy, because rounding may depend on the position in memory
                    padded = x.new_zeros((size, *x.shape[1:]))
                    padded[:m] = x
                    x = padded
                results = [r[:m].cpu().numpy() for r in compute(x.unsqueeze(0))]
                if not arrays:  # one array for all: many small ones fragment the memory
                    arrays = [np.empty((n, *r.shape[1:])) for r in results]
                for whole, part in zip(arrays, results):
                    whole[rows] = part
        return arrays

    # ----------------------------------------------------------------- state

    def __getstate__(self) -> dict[str, Any]:
        """Arrays and plain values, without the state that only training needs."""
        return {
            "format": FORMAT,
            "module": to_state(self.module_),
            "objective": to_state(self.criterion_),
            "arguments": {**saved_arguments(vars(self)), "may_grow": self.may_grow},
            "statistics": self.statistics,
            "temperature": self.temperature,
            "head_weights": self.head_weights,
            "history": list(self.history),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        check_format(state.get("format"))
        arguments = dict(state["arguments"])
        device = get_map_location(arguments["device"])  # the CPU if there is no such device
        arguments["device"] = self._check_device(arguments["device"], device)
        self.__init__(  # type: ignore[misc]
            from_state(state["module"]),
            from_state(state["objective"]),
            statistics=state["statistics"],
            callbacks=[],
            **arguments,
        )
        self.initialize_for_prediction()
        self.history.extend(state["history"])
        self.temperature, self.head_weights = state["temperature"], state["head_weights"]
