"""CSAEPretrainedMLP: a sigmoid network pretrained by cost-sensitive auto-encoders (CSDNN)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval
from torch.nn.utils import parameters_to_vector

from .._inputs.arrays import NumberPreprocessor
from .._training.batches import Rows, shuffled_batches
from .._training.loop import Training
from .._training.net import CostNet
from .._training.processes import report
from .._training.torch_modes import draw_seed, seeded
from ..losses import Loss
from ..modules._mlp import AuxMLP, CostSensitiveAutoencoder
from .base import BaseCostSensitiveNet
from .network_steps import NetworkSpec
from .parameters import COUNT, POSITIVE, SHARE, NetParameters, per_layer

_BETA = Interval(Real, 0, 1, closed="both")


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
    loss : str or Loss, default="one_sided"
        Loss of the output after pretraining: a name or an instance of
        :mod:`auxcst_sklearn.losses`. If costs differ within a class, "bayes_risk" uses their class
        means.
    cost_matrix : array-like or DataFrame of shape (n_classes, n_classes), or callable, default=None
        Cost of each prediction (column) for each true class (row), in any currency. Rows and
        columns follow `classes_`. Costs with labels (a DataFrame, or from
        :mod:`auxcst_sklearn.costs`) are matched by label. If costs differ between samples and are
        known when deciding, pass a function. It gets the X of `fit`, `predict` and other methods
        as it is, and returns a cost matrix for each sample. The costs of a sample must depend on
        this sample alone. Costs of past samples are passed to `fit` instead. Without any costs,
        every mistake costs 1.
    classes : array-like of shape (n_classes,), default=None
        All labels, sorted, if the training set may lack a class. If None, the labels of `y` or of
        the costs are used.
    decisions : array-like of shape (n_decisions,), default=None
        Labels of the cost columns, if the decisions are not the classes, such as "approve",
        "decline" and "review". `decide` then returns them. Costs with labels are matched by label.
        If None, the labels of the costs are used, or the classes for costs without labels.
    max_epochs : int, default=50
        Maximum number of epochs, or their number without early stopping.
    learning_rate : float, default=1e-3
        Learning rate of the optimizer, or its maximum with a schedule.
    schedule : {"one_cycle", "constant"}, default="constant"
        How the learning rate changes. "one_cycle" increases it during the first tenth of
        `max_epochs` and then decreases it to zero. With "constant", skorch's ``LRScheduler`` in
        `callbacks` may set it.
    batch_size : int or "auto", default="auto"
        Samples per step. If "auto", it grows with the training set, from 16 to 128.
    optimizer : str or type, default="adamw"
        "adagrad", "adam", "adamax", "adamw", "nadam", "radam", "rmsprop", "sgd", or a subclass of
        ``torch.optim.Optimizer``. `net_params` has its other arguments.
    weight_decay : float, default=1e-2
        Weight decay of the optimizer.
    early_stopping : bool, default=False
        Whether to keep the weights of the epoch with the lowest loss on validation samples (lowest
        mean cost for losses without class probabilities). With fewer than ten samples, there are no
        validation samples.
    patience : int, default=10
        Number of epochs without improvement of any network after which training stops.
    validation_fraction : float, default=0.1
        Fraction of the samples that are validation samples, with `early_stopping`.
    random_state : int, RandomState instance or None, default=None
        Determines weights, shuffling, dropout, augmentation and validation samples. Pass an int for
        the same networks on every call.
    verbose : int or bool, default=0
        Whether to print a line per epoch.
    warm_start : bool, default=False
        Whether another call to `fit` continues from the current weights. A changed
        parameter acts, or is an error if it made the net, as in `partial_fit`. If the number of
        samples is unchanged, so are the validation samples.
    device : str, default="auto"
        Where to train: "cpu", "cuda", "mps" ... If "auto", a CUDA GPU is used if there is one.
    callbacks : list of skorch callbacks, default=None
        Called during training, as in skorch.
    net_params : dict, default=None
        Further arguments of the skorch net, such as ``{"optimizer__betas": (0.9, 0.99)}``.
    distributed : {"auto"} or False, default="auto"
        If "auto", a training in an initialised ``torch.distributed`` group is distributed, and each
        process calls `fit` with the same, complete data. If False, each process has its own model.
    pretrain_learning_rate : float, default=1e-2
        Learning rate of the optimizer in pretraining. Pretraining also uses `optimizer`,
        `batch_size` and `weight_decay`.
    dropout : float, default=0.0
        Probability of dropping a hidden neuron in training. Pretraining has no dropout.

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
    training_ : Plan
        The settings of the last training, in which each "auto" is decided: `batch_size`,
        `learning_rate`, `n_networks` and others. `verbose` prints them.
    history_ : list of dict
        One record per epoch, with means over the networks: "epoch", "train_loss" (the total),
        "train_loss_output" and so on for each layer in `hidden_layers_`, "dur" (seconds). For
        validation samples: "valid_loss" and so on, "valid_cost" (mean cost in currency) and
        "valid_refinement" (loss at the best temperature).
    temperature_ : float
        Divisor of the logits of the class probabilities.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted: the order of all cost columns.
    decisions_ : ndarray of shape (n_decisions,)
        The decisions, in the order of the columns of `predict_cost`: `classes_`, unless the costs
        have other labels.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies that the probabilities imply; NaN if unknown.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` had names that are all strings.

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
    schedule: str = "constant"
    early_stopping: bool = False
    validation_fraction: float = 0.1

    _may_add_cost_network = False  # whose layers would not be pretrained

    def _make_inputs(self, X: Any) -> NumberPreprocessor:
        return NumberPreprocessor()

    def _make_networks(self, spec: NetworkSpec, seeds: Sequence[int]) -> tuple[AuxMLP, list[float]]:
        module = AuxMLP(
            spec.rows.shape[1],
            spec.n_outputs,
            width=per_layer(self.width, self.depth, name="width", interval=COUNT),
            head_layers=(),
            activation="sigmoid",
            dropout=self.dropout,
            inputs=spec.inputs.make_module(),
            generators=[torch.Generator().manual_seed(seed) for seed in seeds],
        )
        return module, []

    def _pretrain(self, training: Training, rng: np.random.RandomState) -> dict[str, Any]:
        net, rows = training.net, training.rows[0]
        beta = per_layer(self.beta, self.depth, name="beta", interval=_BETA)
        corruption = per_layer(self.corruption, self.depth, name="corruption", interval=SHARE)
        net.module_.eval()  # the layers below must not drop neurons
        histories = {}
        for i, (name, (layer, *_)) in enumerate(net.module_.hidden.items()):
            with seeded(draw_seed(rng)):
                autoencoder = CostSensitiveAutoencoder(
                    layer.of_network(0), rows.cost.shape[1], beta=beta[i], corruption=corruption[i]
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
        batches = shuffled_batches([rows], net.batch_size, [generator])
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
