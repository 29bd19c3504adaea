"""CSAEPretrainedMLP: a sigmoid network pretrained by cost-sensitive auto-encoders (CSDNN)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval
from torch.nn.utils import parameters_to_vector

from .._checks.calls import inherit_docs
from .._inputs.arrays import NumberPreprocessor, Preprocessor
from .._training.batches import Rows, shuffled
from .._training.loop import Training
from .._training.net import CostNet
from .._training.plan import Plan
from .._training.runtime import draw_seed, report, seeded
from ..losses import Loss
from ..modules._mlp import AuxMLP, CostSensitiveAutoencoder
from .base import BaseCostSensitiveNet
from .parameters import (
    COUNT,
    POSITIVE,
    SHARE,
    AuxParameters,
    NetParameters,
    check_each,
    per_layer,
)

_BETA = Interval(Real, 0, 1, closed="both")


@inherit_docs(NetParameters, AuxParameters, BaseCostSensitiveNet)
@dataclass(eq=False, repr=False)
class CSAEPretrainedMLP(BaseCostSensitiveNet):
    """Sigmoid network that estimates costs, pretrained by cost-sensitive auto-encoders (CSDNN).

    The hidden layers are pretrained one after the other, each as an auto-encoder. It reconstructs
    its input from a corrupted copy, with the same weights in both directions. It also estimates the
    costs from its code. It minimises ::

        (1 - beta) * cross-entropy of the reconstruction + beta * smooth one-sided loss

    The cross-entropy is summed over the inputs of the layer, and the one-sided loss over the
    classes. Both are averaged over the batch. The input of a deeper layer is the uncorrupted code
    of the layers below. Then the whole network, with one output per class, is trained on `loss`.
    The prediction is the class with the smallest estimated cost.

    Parameters
    ----------
    depth : int, default=3
        Number of hidden layers.
    width : int or array-like of shape (depth,), default=256
        Neurons of each hidden layer.
    beta : float or array-like of shape (depth,), default=0.9
        Weight of the costs in the pretraining of each layer, in [0, 1]. If 0, the auto-encoder is
        an ordinary denoising auto-encoder. With many inputs, the sum of their cross-entropies is
        large. Costs then matter only if beta is near 1. The unit of costs is the mean cost above
        each sample's minimum.
    corruption : float or array-like of shape (depth,), default=0.25
        Masking noise in the pretraining of each layer: the probability of setting an input to 0, in
        [0, 1).
    pretrain_epochs : int, default=10
        Number of passes over the training set for each layer. If 0, there is no pretraining.
    pretrain_learning_rate : float, default=1e-2
        Learning rate of the optimizer in pretraining. Pretraining also uses `optimizer`,
        `batch_size` and `weight_decay`.
    loss : str or Loss, default="one_sided"
        Loss of the output after pretraining: a name or an instance of
        :mod:`auxcst_sklearn.losses`. If costs differ within a class, "bayes_risk" uses their class
        means.
    dropout : float, default=0.0
        Probability of dropping a hidden neuron in training. Pretraining has no dropout.
    validation_fraction : float, default=0.1
        Fraction of the samples that are validation samples, with `early_stopping`.

    Attributes
    ----------
    pretrain_history_ : dict of str to list of dict
        For each hidden layer, from "hidden1" on, one record per epoch of its pretraining: "epoch",
        "loss" (the weighted sum), "reconstruction" and "cost" (its two terms).
    input_range_ : ndarray of shape (2, n_features)
        The values of each feature that are mapped to 0 and to 1.
    hidden_layers_ : list of str
        Empty, because there are no auxiliary heads.
    net_ : skorch.NeuralNet
        The trained net. Its torch module is ``net_.module_``. The first dimension of the weights is
        the network, and its length is 1.

    See Also
    --------
    CostSensitiveAuxMLP : Trains all layers jointly, with auxiliary heads.
    auxcst_sklearn.modules.CostSensitiveAutoencoder : The auto-encoder of one layer.

    Notes
    -----
    The reconstruction needs inputs in [0, 1]. Features within this range in the training set are
    not changed. All other features are mapped to it by their smallest and largest training values.
    Later values outside the range are clipped. The network does this one mini-batch at a time.
    Sparse rows therefore stay sparse, and `X` is not copied.

    The first call to `partial_fit` pretrains on its samples and sets the range of the features.
    Later calls do neither, and neither does `fit` with `warm_start`. `learning_rate`, `schedule`
    and `callbacks` are for the training after pretraining.

    References
    ----------
    Y.-A. Chung, H.-T. Lin, S.-W. Yang, "Cost-aware pre-training for multiclass cost-sensitive
    deep learning", IJCAI 2016, arXiv:1511.09337.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> from auxcst_sklearn import CSAEPretrainedMLP
    >>> X, y = load_wine(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    >>> cost_matrix = [[0, 1, 10], [1, 0, 10], [1, 1, 0]]
    >>> model = CSAEPretrainedMLP(
    ...     depth=2, width=32, cost_matrix=cost_matrix, learning_rate=1e-2, random_state=0)
    >>> model.fit(X_train, y_train).predict(X_test[:3])
    array([2, 0, 1])
    >>> first, *_, last = model.pretrain_history_["hidden1"]
    >>> last["reconstruction"] < first["reconstruction"]
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NetParameters._parameter_constraints,
        "depth": [COUNT],
        "width": [COUNT, "array-like"],
        "beta": [_BETA, "array-like"],
        "corruption": [SHARE, "array-like"],
        "pretrain_epochs": [Interval(Integral, 0, None, closed="left")],
        "pretrain_learning_rate": [POSITIVE],
        "dropout": [SHARE],
    }

    depth: int = 3
    width: int | Sequence[int] = 256
    beta: float | Sequence[float] = 0.9
    corruption: float | Sequence[float] = 0.25
    pretrain_epochs: int = 10
    _: KW_ONLY
    pretrain_learning_rate: float = 1e-2
    dropout: float = 0.0
    loss: str | Loss = "one_sided"
    schedule: str | Callable[..., Any] = "constant"
    early_stopping: bool = False
    validation_fraction: float = 0.1

    _may_add_cost_network = False  # whose layers would not be pretrained

    def _make_inputs(self, X: Any) -> NumberPreprocessor:
        return NumberPreprocessor()

    def _make_module(
        self, plan: Plan, inputs: Preprocessor, rows: Any, n_outputs: int
    ) -> tuple[AuxMLP, list[float]]:
        module = AuxMLP(
            rows.shape[1],
            n_outputs,
            width=self._per_layer("width", COUNT),
            head_layers=(),
            activation="sigmoid",
            dropout=self.dropout,
            inputs=inputs.make_module(),
        )
        return module, []

    def _per_layer(self, name: str, interval: Interval) -> list[Any]:
        values = per_layer(getattr(self, name), self.depth, name=name, layers="hidden layer")
        check_each(values, name=name, interval=interval)
        return values

    def _pretrain(self, training: Training, rng: np.random.RandomState) -> dict[str, Any]:
        net, rows = training.net, training.rows[0]
        beta = self._per_layer("beta", _BETA)
        corruption = self._per_layer("corruption", SHARE)
        net.module_.eval()  # the layers below must not drop neurons
        histories = {}
        for i, (name, (layer, *_)) in enumerate(net.module_.hidden.items()):
            with seeded(draw_seed(rng)):
                autoencoder = CostSensitiveAutoencoder(
                    layer.of_network(0),
                    rows.cost.shape[1],
                    beta=beta[i],
                    corruption=corruption[i],
                )
            with net.thread_limit():
                histories[name] = self._pretrain_layer(
                    net, autoencoder.to(net.device), i, name, rows, rng
                )
        return {"pretrain_history_": histories}

    def _pretrain_layer(
        self,
        net: CostNet,
        autoencoder: CostSensitiveAutoencoder,
        below: int,
        name: str,
        rows: Rows,
        rng: np.random.RandomState,
    ) -> list[dict[str, float]]:
        """Train one auto-encoder on the code of the layers below it, and record its losses."""
        args, kwargs = net.get_params_for_optimizer("optimizer", autoencoder.named_parameters())
        optimizer = net.optimizer(*args, **{**kwargs, "lr": float(self.pretrain_learning_rate)})
        noise = torch.Generator(net.device).manual_seed(draw_seed(rng))
        generator = torch.Generator().manual_seed(draw_seed(rng))
        batches = shuffled([rows], net.batch_size, [generator])
        history = []
        for epoch in range(1, self.pretrain_epochs + 1):
            sums = torch.zeros(2, device=net.device)
            for x, target in batches:
                with torch.no_grad():
                    x = net.module_.code(x, below)[0]
                losses = autoencoder.losses(x, target, noise)
                optimizer.zero_grad()
                autoencoder.total(losses).backward()
                optimizer.step()
                sums = sums + losses.detach() * len(x)
            # The losses precede the last step, so the weights count too.
            values = torch.cat([sums, parameters_to_vector(autoencoder.parameters()).detach()])
            if not values.isfinite().all():
                raise ValueError(
                    f"The loss or the weights of {name} became infinite or NaN in pretraining, so "
                    "the fit was stopped. Lower pretrain_learning_rate, such as by a factor of 10."
                )
            means = sums / len(rows)
            reconstruction, cost = means.tolist()
            loss = autoencoder.total(means).item()
            history.append(
                {"epoch": epoch, "loss": loss, "reconstruction": reconstruction, "cost": cost}
            )
            report(
                f"Pretraining {name}, epoch {epoch}/{self.pretrain_epochs}: loss {loss:.4f} "
                f"(reconstruction {reconstruction:.4f}, cost {cost:.4f})",
                net.verbose,
            )
        return history
