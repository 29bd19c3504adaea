"""What the steps of a fit ask of a network, which each estimator answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from .._checks.bases import BaseEstimator
from .._inputs.arrays import Preprocessor
from .._training.loop import Training
from .._training.plan import NetworkFacts, Plan
from ..costs._problem import Problem
from ..modules._network import AuxNetwork, SideBySide
from .decision import DecisionMixin
from .parameters import NetParameters


class Samples(NamedTuple):
    """What a fit is given: training set, validation set, and the inputs that read the X of both."""

    data: Problem
    validation: Problem | None
    inputs: Preprocessor


@dataclass(frozen=True)
class NetworkSpec:
    """What a network is made for: the plan, its inputs, some of its rows, and its outputs.

    It is made `like` another one of the same fit, if there is one, perhaps without heads.
    """

    plan: Plan
    inputs: Any  # a Preprocessor, whose first module each estimator knows
    rows: torch.Tensor
    n_outputs: int
    has_heads: bool = True
    like: Any = None


class NetworkSteps(NetParameters, DecisionMixin, BaseEstimator):
    """What the steps of a fit ask of a network, and what they know of an earlier fit."""

    training_: Plan
    _inputs: Preprocessor
    # Attributes that inputs and pretraining set, of some of the networks.
    image_shape_: tuple[int, ...]
    input_center_: NDArray[np.float64] | None
    input_range_: NDArray[np.float64]
    input_scale_: NDArray[np.float64] | None
    is_categorical_: NDArray[np.bool_] | None
    pretrain_history_: dict[str, list[dict[str, float]]]
    _random_state: np.random.RandomState

    _allows_nan = False
    # Whether a second network may learn costs that differ within a class.
    _may_add_cost_network = True

    def _network_facts(self, inputs: Preprocessor) -> NetworkFacts:
        """What the plan of a training needs to know of the network."""
        return NetworkFacts()

    def _make_inputs(self, X: Any) -> Preprocessor:
        """What X becomes, by the type of X."""
        raise NotImplementedError

    def _make_networks(
        self, spec: NetworkSpec, seeds: Sequence[int]
    ) -> tuple[AuxNetwork, list[float]]:
        """Make a network for each seed, and the weight `alpha` of each layer; 0 is no head."""
        modules, weights = list[AuxNetwork](), list[float]()
        for seed in seeds:
            torch.default_generator.manual_seed(seed)
            module, of_layers = self._make_module(spec)
            modules.append(module)
            weights, spec = weights or of_layers, replace(spec, like=module)
        return SideBySide(modules), weights

    def _make_module(self, spec: NetworkSpec) -> tuple[AuxNetwork, list[float]]:
        """Make one network, which draws from torch's global generator, and the weights alpha."""
        raise NotImplementedError

    def _pretrain(self, training: Training, rng: np.random.RandomState) -> dict[str, Any]:
        """Pretrain the hidden layers before joint training, and return attributes; here none."""
        return {}
