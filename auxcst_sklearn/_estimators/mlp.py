"""CostSensitiveAuxMLP: the fully connected network."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from .._inputs import TableInputs
from ..losses import Loss
from ..modules import ACTIVATIONS, AuxMLP
from ..modules._feature_input import FeatureInput
from .base import BaseCostSensitiveNet
from .parameters import AUX_CONSTRAINTS, check_each, layers_with_head, per_layer

_WIDTH = Interval(Integral, 1, None, closed="left")


class CostSensitiveAuxMLP(BaseCostSensitiveNet):
    """Multilayer perceptron that estimates costs, with auxiliary cost heads (AuxCST).

    The network has one output per class, and as many auxiliary neurons on every hidden layer but
    the last. All are trained jointly on ``sum_i alpha_i L_i + L_output``; the prediction is the
    class with the smallest estimated cost. With the losses of the paper, outputs and heads learn
    the costs; with the default they learn the classes, and costs are used only in the decision.

    Several such networks are trained side by side. Each holds out a different part of the rows for
    early stopping, and all held-out rows together calibrate the class probabilities. String
    columns and missing values need no preprocessing.

    Parameters
    ----------
    depth : int, default=3
        Number of hidden layers H.
    width : int or array-like of shape (depth,), default=128
        Neurons of each hidden layer.
    alpha : float or array-like of shape (depth - 1,), default=0.2
        Weight of the loss of each auxiliary head, first hidden layer first. A layer with weight
        0 gets no head; ``alpha=0`` is the plain network.
    loss : {"bayes_risk", "cross_entropy", "one_sided", "smooth_one_sided", "softmin", \
            "squared"} or Loss, default="bayes_risk"
        Loss of the output; see :mod:`auxcst_sklearn.losses`. With "bayes_risk" and "cross_entropy"
        the output learns class probabilities, and costs are used only in the decision; with the
        others it learns the costs. For per-sample costs "bayes_risk" adds a cost network of the
        same shape, which doubles the fit time. "one_sided" is the loss of the paper.
    aux_loss : str or Loss, default=None
        Loss of the auxiliary heads; None for the same as `loss`.
    activation : {"elu", "gelu", "leaky_relu", "relu", "sigmoid", "silu", "tanh"}, default="silu"
        Activation of the hidden layers.
    dropout : float, default=0.15
        Probability of dropping a hidden neuron in training.
    standardize : bool or "auto", default="auto"
        Whether to centre and scale the inputs, as learnt from the training set. "auto" leaves
        features of order one, and sparse ones, unchanged; the others get a common scale if they
        seem to have a common unit, as pixels do, and otherwise one scale each, as with True.
        Columns with outliers are scaled by their quartiles, and clipped softly; those of several
        scales become the normal scores of their ranks.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, \
            default="from_dtype"
        Categorical columns, as a mask, positions or names. "from_dtype" selects the categorical and
        string columns of a DataFrame, and none of an array. Categories that are rare or not in the
        training set are treated as one level. A missing value in any column is NaN or None: the
        network gets the median and an indicator instead.
    n_bins : int, default=16
        Number of quantile bins of the piecewise linear encoding of numbers; 0 for none. Columns
        that are far from normal are encoded. Every second network uses the encoding in addition to
        the numbers. Sparse rows and pixels are not encoded, and a bin holds at least 100 rows.
    cost_matrix : array-like or DataFrame of shape (n_classes, n_classes), default=None
        Cost of each prediction (column) for each true class (row), in any currency; rows and
        columns follow `classes_`; those of a DataFrame are matched by label. Pass per-sample costs
        to `fit` instead. Without any costs every mistake costs 1.
    classes : array-like of shape (n_classes,), default=None
        All labels, sorted, for training sets that may lack one. None for the labels in `y`, or the
        labels of a DataFrame of costs.
    n_networks : int, default=5
        Number of networks, which are trained side by side as one stack; estimates and probabilities
        are their means. Each holds out a different fold of the rows for early stopping, and all
        folds together give the temperature. 1 for a single network.
    max_epochs : int, default=100
        Maximum number of passes over the training set; without early stopping, the exact number.
    batch_size : int or "auto", default="auto"
        Rows per step. "auto" is a 32nd of the training set, at least 16 and at most 128.
    learning_rate : float, default=2e-3
        Learning rate of the optimizer; with a schedule, its maximum.
    schedule : {"constant", "one_cycle"}, default="constant"
        How the learning rate changes over `max_epochs`: not at all, or up during the first tenth
        and then down to zero, along cosines. `partial_fit` keeps it constant.
    averaging : float, default=5.0
        Horizon, in epochs, of the exponential average of the weights, which replaces a schedule:
        training can stop after any epoch. 0 for the weights of the last step. `partial_fit` always
        uses the weights of the last step.
    weight_decay : float, default=1e-2
        Weight decay of the optimizer.
    optimizer : str or type, default="adamw"
        "adagrad", "adam", "adamax", "adamw", "nadam", "radam", "rmsprop", "sgd", or a subclass of
        ``torch.optim.Optimizer``.
    early_stopping : bool, default=True
        Whether to hold out rows, and keep the weights of the best epoch: the one with the least
        held-out loss at its best temperature, or, for losses without class probabilities, with the
        least held-out mean cost. With fewer than ten rows, none are held out.
    validation_fraction : float, default=0.2
        Fraction of the rows that each network holds out. Several networks hold out different folds:
        the rows are split into `n_networks` folds, or into 1 / `validation_fraction` if that is
        more.
    patience : int, default=10
        Number of epochs without improvement of any network after which training stops.
    temperature : "auto" or float, default="auto"
        Divisor of the logits of the class probabilities; "auto" learns it from the held-out rows.
        Without held-out rows it is 1; losses without class probabilities have none.
    warm_start : bool, default=False
        Whether another call to `fit` continues from the current weights, with the same network,
        loss and optimizer; changes of their parameters then have no effect. With one number of
        rows, it also holds out the same rows.
    device : str, default="auto"
        Where to train: "cpu", "cuda", "mps" ...; "auto" uses a CUDA GPU if there is one. A training
        set that fills more than half of the free GPU memory stays in host memory.
    precision : {"float32", "bf16"}, default="float32"
        Number format of the hidden layers' arithmetic; weights, heads and losses are float32.
        "bf16" is faster on processors with instructions for it, and slower on others.
    checkpoint_dir : str or path-like, default=None
        Folder for checkpoints of the training, from which another call to `fit` with the same data
        and parameters resumes after a crash; the result is the same. "{fit}" in its name is
        replaced by a name for each fit: use it if a search, or ``cv``, fits several models. None
        for no checkpoints.
    checkpoint_every : int, default=1
        Number of epochs between checkpoints.
    random_state : int, RandomState instance or None, default=None
        Determines weights, shuffling, dropout and the held-out rows. Pass an int for the same
        network on every call.
    verbose : int or bool, default=0
        Whether to print a line per epoch, with the time left without early stopping.
    callbacks : list of skorch callbacks, default=None
        Called during training, as in skorch: schedules, checkpoints, gradient clipping ... They
        receive rows in the form of the net, so that scores by name (`EpochScoring`) do not work.
    net_params : dict, default=None
        Further arguments of the skorch net, such as ``{"optimizer__betas": (0.9, 0.99)}``.
    distributed : {"auto"} or False, default="auto"
        Within an initialised ``torch.distributed`` group of several processes, "auto" distributes
        the training: each process calls `fit` with the same, complete data, and computes its part
        of every mini-batch. False for a separate model in each process.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted: the order of all cost columns.
    hidden_layers_ : list of str
        Names of the layers that have an auxiliary head.
    history_ : list of dict
        One record per epoch: "epoch", "train_loss" (the total), "train_loss_hidden1" ...
        "train_loss_output" (each head's mean loss), "dur" (seconds), and with early stopping the
        same losses on the held-out rows as "valid_loss...", their mean cost, "valid_cost", and
        "valid_refinement", the loss at the best temperature. Numbers are means over the networks.
        Losses are in units of the mean cost above the smallest, "valid_cost" in currency.
    temperature_ : float
        Divisor of the logits of the class probabilities.
    net_ : skorch.NeuralNet
        The trained net; its torch module is ``net_.module_``, whose weights have the networks as
        first dimension if there are several.
    input_center_, input_scale_ : ndarray of shape (n_features,) or None
        Centre and divisor of each input; None for unscaled inputs.
    is_categorical_ : ndarray of shape (n_features,) or None
        Mask of the categorical columns; None if there are none.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` had names that are all strings.

    See Also
    --------
    auxcst_sklearn.metrics.cost_scorer : Scorer for searches with per-sample costs.

    Notes
    -----
    A pickle holds the weights without the state of the optimizer; training after loading starts
    with a new optimizer.

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

    _parameter_constraints: dict[str, Any] = {
        **AUX_CONSTRAINTS,
        "depth": [Interval(Integral, 1, None, closed="left")],
        "width": [_WIDTH, "array-like"],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "standardize": ["boolean", StrOptions({"auto"})],
        "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
        "n_bins": [Interval(Integral, 0, None, closed="left")],
        "averaging": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        depth: int = 3,
        width: int | Sequence[int] = 128,
        alpha: float | Sequence[float] = 0.2,
        *,
        loss: str | Loss = "bayes_risk",
        aux_loss: str | Loss | None = None,
        activation: str = "silu",
        dropout: float = 0.15,
        standardize: bool | Literal["auto"] = "auto",
        categorical_features: ArrayLike | Literal["from_dtype"] | None = "from_dtype",
        n_bins: int = 16,
        cost_matrix: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        n_networks: int = 5,
        max_epochs: int = 100,
        batch_size: int | Literal["auto"] = "auto",
        learning_rate: float = 2e-3,
        schedule: Literal["constant", "one_cycle"] = "constant",
        averaging: float = 5.0,
        weight_decay: float = 1e-2,
        optimizer: str | type = "adamw",
        early_stopping: bool = True,
        validation_fraction: float = 0.2,
        patience: int = 10,
        temperature: float | Literal["auto"] = "auto",
        warm_start: bool = False,
        device: str = "auto",
        precision: Literal["float32", "bf16"] = "float32",
        checkpoint_dir: str | PathLike[str] | None = None,
        checkpoint_every: int = 1,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = 0,
        callbacks: list[Any] | None = None,
        net_params: dict[str, Any] | None = None,
        distributed: Literal["auto", False] = "auto",
    ) -> None:
        self.depth = depth
        self.width = width
        self.alpha = alpha
        self.loss = loss
        self.aux_loss = aux_loss
        self.activation = activation
        self.dropout = dropout
        self.standardize = standardize
        self.categorical_features = categorical_features
        self.n_bins = n_bins
        self.cost_matrix = cost_matrix
        self.classes = classes
        self.n_networks = n_networks
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.averaging = averaging
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.temperature = temperature
        self.warm_start = warm_start
        self.device = device
        self.precision = precision
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.net_params = net_params
        self.distributed = distributed

    _inputs: TableInputs

    def _make_inputs(self) -> TableInputs:
        n_bins = self.n_bins if self.n_networks > 1 else 0  # the first network uses none
        return TableInputs(self.categorical_features, self.standardize, n_bins)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _make_module(self, n_features: int, n_outputs: int) -> tuple[AuxMLP, list[float]]:
        width = per_layer(self.width, self.depth, name="width", layers="hidden layer")
        check_each(width, name="width", interval=_WIDTH)
        head_layers, weights = layers_with_head(
            self.alpha, self.depth - 1, layers="hidden layer but the last"
        )
        inputs = self._inputs.make_module()
        module = AuxMLP(
            inputs.n_outputs if isinstance(inputs, FeatureInput) else n_features,
            n_outputs,
            width=width,
            head_layers=head_layers,
            activation=self.activation,
            dropout=self.dropout,
            inputs=inputs,
        )
        return module, weights
