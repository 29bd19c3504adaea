"""CostSensitiveAuxMLP: the fully connected network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from .._inputs.tables import TablePreprocessor
from ..modules._layers import ACTIVATIONS
from ..modules._mlp import AuxMLP
from ..modules._tables import FeatureInput
from .base import BaseCostSensitiveNet
from .network_steps import NetworkSpec
from .parameters import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    AuxParameters,
    alpha_of_layers,
    per_layer,
)


@dataclass(eq=False, repr=False)
class CostSensitiveAuxMLP(AuxParameters, BaseCostSensitiveNet):
    """Multilayer perceptrons for cost-sensitive classification, with auxiliary heads (AuxCST).

    Set `cost_matrix` or pass `cost` to `fit`, and set `random_state`; then try `max_epochs`,
    `alpha` and `depth`. String columns and missing values need no preprocessing.

    By default, several networks learn class probabilities. Validation samples calibrate them, and
    the prediction is the class with the minimum expected cost. With a loss of the paper, such as
    "one_sided", output and heads estimate the costs themselves. Every hidden layer but the last has
    an auxiliary head, and all are trained jointly on ``sum_i alpha_i L_i + L_output``. `PAPER`
    contains the parameters of the paper.

    Parameters
    ----------
    depth : int, default=3
        Number of hidden layers H.
    width : int or array-like of shape (depth,), default=128
        Neurons of each hidden layer.
    alpha : float, array-like of shape (depth - 1,) or callable, default=0.2
        Weight of each auxiliary loss, from the first hidden layer on. Layers with weight 0 have no
        head. ``alpha=0`` is the plain network. A function of the number of heads returns the
        weights. It is not an L2 penalty, which is `weight_decay`.
    loss : str or Loss, default="bayes_risk"
        Loss of the output: a name or an instance of :mod:`auxcst_sklearn.losses`, whose page says
        what each learns: class probabilities, or costs. If costs differ within a class, the default
        adds a second network, which doubles the time of a fit.
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
    max_epochs : int, default=100
        Maximum number of epochs, or their number without early stopping.
    learning_rate : float or "auto", default="auto"
        Learning rate of the optimizer, or its maximum with a schedule. If "auto", it depends on the
        schedule and on the number of columns.
    schedule : {"plateau", "constant", "one_cycle"}, default="plateau"
        How the learning rate changes. "plateau" reduces it when the validation loss no longer
        decreases, and then stops. "one_cycle" increases it during the first tenth of `max_epochs`
        and then decreases it to zero. With "constant", skorch's ``LRScheduler`` in `callbacks` may
        set it.
    batch_size : int or "auto", default="auto"
        Samples per step. If "auto", it grows with the training set.
    optimizer : str or type, default="adamw"
        "adagrad", "adam", "adamax", "adamw", "nadam", "radam", "rmsprop", "sgd", or a subclass of
        ``torch.optim.Optimizer``. `net_params` has its other arguments.
    weight_decay : float, default=1e-2
        Weight decay of the optimizer.
    early_stopping : bool, default=True
        Whether to keep the weights of the epoch with the lowest loss on validation samples (lowest
        mean cost for losses without class probabilities). With fewer than ten samples, there are no
        validation samples.
    patience : int or "auto", default="auto"
        Epochs without improvement before the rate is reduced or training stops. If "auto", it is
        smaller for many samples.
    validation_fraction : float, default=0.2
        Fraction of the samples that are validation samples of a network. Each network has another
        fold, of `n_networks` folds, or of 1 / `validation_fraction` if that is more.
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
    aux_loss : str or Loss, default=None
        Loss of the auxiliary heads. If None, it is `loss`.
    n_networks : int or "auto", default="auto"
        Number of averaged networks. Each has another fold of the samples as validation samples. If
        "auto", 5 networks are used, or 3 for more than 50,000 samples.
    temperature : "auto" or float, default="auto"
        Divisor of the logits of the class probabilities. If "auto", it is learnt from validation
        samples, or 1 without any.
    precision : {"float32", "bf16"}, default="float32"
        Arithmetic of the hidden layers. "bf16" is faster on processors that support it, and slower
        on others.
    checkpoint_dir : str or path-like, default=None
        Folder for checkpoints. After a crash, `fit` with the same data and parameters resumes from
        it. "{fit}" in its name is replaced by a name for each fit, for searches. If None, there are
        no checkpoints.
    checkpoint_every : int, default=1
        Number of epochs between checkpoints.
    activation : {"elu", "gelu", "leaky_relu", "relu", "sigmoid", "silu", "tanh"}, default="silu"
        Activation of the hidden layers. With "sigmoid", weights start uniform within 4 sqrt(6 /
        (inputs + outputs)), after Glorot and Bengio (AISTATS 2010), and biases at zero.
    dropout : float, default=0.15
        Probability of dropping a hidden neuron in training.
    learn_scales : bool, default=True
        Whether networks learn a factor for each indicator of a category.
    standardize : bool or "auto", default="auto"
        Whether to centre and scale the inputs. If "auto", the values of the columns decide.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, \
            default="from_dtype"
        Categorical columns, as a mask, positions or names. "from_dtype" selects the categorical and
        string columns of a DataFrame, and none of an array.
    n_bins : int, default=16
        Number of quantile bins (piecewise linear encoding) in every third network. With
        ``schedule="plateau"``, these networks continue without bins if validation samples show that
        bins harm. If 0, none.
    ema_epochs : float, default=5.0
        Horizon, in epochs, of the exponential average of the weights. If 0, no average.

    Attributes
    ----------
    net_ : skorch.NeuralNet
        The trained net. Its torch module is ``net_.module_``. The first dimension of the weights is
        the network.
    input_center_, input_scale_ : ndarray of shape (n_features,) or None
        Centre and divisor of each input. None for unscaled inputs.
    is_categorical_ : ndarray of shape (n_features,) or None
        Mask of the categorical columns. None if there are none.
    hidden_layers_ : list of str
        Names of the layers that have an auxiliary head.
    history_ : list of dict
        One record per epoch, with means over the networks: "epoch", "train_loss" (the total),
        "train_loss_output" and so on for each layer in `hidden_layers_`, "dur" (seconds). For
        validation samples: "valid_loss" and so on, "valid_cost" (mean cost in currency) and
        "valid_refinement" (loss at the best temperature).
    temperature_ : float
        Divisor of the logits of the class probabilities.
    training_ : Plan
        The settings of the last training, in which each "auto" is decided: `batch_size`,
        `learning_rate`, `n_networks` and others. `verbose` prints them.
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
    auxcst_sklearn.metrics.cost_scorer : Scorer for searches with per-sample costs.

    Notes
    -----
    The user guide explains how "auto" is computed, and how columns are encoded. A pickle contains
    the weights without the state of the optimizer.

    References
    ----------
    Y.-A. Chung, S.-W. Yang, H.-T. Lin, "Cost-Sensitive Deep Learning with Layer-Wise Cost
    Estimation", TAAI 2020, arXiv:1611.05134.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from auxcst_sklearn import CostSensitiveAuxMLP
    >>> X, y = load_wine(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    >>> cost_matrix = [[0, 1, 10], [1, 0, 10], [1, 1, 0]]
    >>> classifier = CostSensitiveAuxMLP(
    ...     depth=2, width=32, cost_matrix=cost_matrix, max_epochs=20, random_state=0)
    >>> model = make_pipeline(StandardScaler(), classifier).fit(X_train, y_train)
    >>> model.predict(X_test[:3])
    array([2, 0, 1])
    >>> model[-1].predict_cost(model[:-1].transform(X_test[:3])).shape
    (3, 3)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **AuxParameters._parameter_constraints,
        "depth": [COUNT],
        "width": [COUNT, "array-like"],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "dropout": [SHARE],
        "learn_scales": ["boolean"],
        "standardize": ["boolean", StrOptions({"auto"})],
        "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
        "n_bins": [Interval(Integral, 0, None, closed="left")],
        "ema_epochs": [NOT_NEGATIVE],
        "n_networks": [StrOptions({"auto"}), COUNT],
        "learning_rate": [StrOptions({"auto"}), POSITIVE],
        "patience": [StrOptions({"auto"}), COUNT],
        "schedule": [StrOptions({"constant", "one_cycle", "plateau"})],
    }

    depth: int = 3
    width: int | Sequence[int] = 128
    alpha: float | Sequence[float] | Callable[[int], Any] = 0.2
    _: KW_ONLY
    activation: str = "silu"
    dropout: float = 0.15
    learn_scales: bool = True
    standardize: bool | Literal["auto"] = "auto"
    categorical_features: ArrayLike | Literal["from_dtype"] | None = "from_dtype"
    n_bins: int = 16
    n_networks: int | Literal["auto"] = "auto"  # type: ignore[assignment]
    max_epochs: int = 100
    learning_rate: float | Literal["auto"] = "auto"  # type: ignore[assignment]
    schedule: str = "plateau"
    ema_epochs: float = 5.0
    patience: int | Literal["auto"] = "auto"  # type: ignore[assignment]

    def _make_inputs(self, X: Any) -> TablePreprocessor:
        return TablePreprocessor(self.categorical_features)

    _allows_nan = True

    def _make_networks(self, spec: NetworkSpec, seeds: Sequence[int]) -> tuple[AuxMLP, list[float]]:
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        width = per_layer(self.width, self.depth, name="width", interval=COUNT)
        alpha = self.alpha if spec.has_heads else 0.0
        weights = alpha_of_layers(alpha, self.depth - 1, layers="hidden layer but the last")
        first, scaled, n_features = spec.inputs.make_module(generators), None, spec.rows.shape[1]
        if isinstance(first, FeatureInput):
            n_features = first.n_outputs
            if self.learn_scales and len(first.few_columns):
                scaled = first.indicators
        module = AuxMLP(
            n_features,
            spec.n_outputs,
            width=width,
            head_layers=np.flatnonzero(weights).tolist(),
            activation=self.activation,
            dropout=self.dropout,
            scaled=scaled,
            inputs=first,
            generators=generators,
        )
        if self.activation == "sigmoid":
            for linear, *_ in module.hidden.values():
                linear.start_for_sigmoid()
        return module, weights


PAPER: dict[str, Any] = {
    "alpha": 0.2,
    "loss": "one_sided",
    "activation": "relu",
    "dropout": 0.0,
    "learn_scales": False,
    "standardize": False,
    "n_bins": 0,
    "n_networks": 1,
    "learning_rate": 0.1,
    "schedule": "constant",
    "ema_epochs": 0.0,
    "weight_decay": 0.0,
    "optimizer": "sgd",
    "early_stopping": False,
    "temperature": 1.0,
}
"""Parameters that make `CostSensitiveAuxMLP(**PAPER)` the network of Chung, Yang and Lin.

One network of ReLU layers learns costs with the one-sided loss and auxiliary heads of weight 0.2,
by plain stochastic gradient descent at a constant rate, from unscaled inputs, for all of
`max_epochs`. The paper states neither optimizer nor learning rate: SGD is used in the code its
authors published for CSDNN, and the rate suits pixels in [0, 1].
"""
