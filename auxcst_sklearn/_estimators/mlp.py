"""CostSensitiveAuxMLP: the fully connected network."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from ..losses import Loss
from ..modules import ACTIVATIONS, AuxMLP
from ..modules._feature_input import FeatureInput
from .features import FeatureNet
from .parameters import AUX_CONSTRAINTS, check_each, layers_with_head, per_layer

_WIDTH = Interval(Integral, 1, None, closed="left")


class CostSensitiveAuxMLP(FeatureNet):
    """Multilayer perceptron that estimates costs, with auxiliary cost heads (AuxCST).

    The network has one output per class, and as many auxiliary neurons on every hidden layer but
    the last. All are trained at once on ``sum_i alpha_i L_i + L_output``; the prediction is the
    class with the smallest estimated cost. With the losses of the paper outputs and heads learn
    the costs; with the default they learn the classes, and costs enter at the decision.

    Parameters
    ----------
    depth : int, default=3
        Number of hidden layers H.
    width : int or array-like of shape (depth,), default=256
        Neurons of each hidden layer.
    alpha : float or array-like of shape (depth - 1,), default=0.2
        Weight of the loss of each auxiliary head, first hidden layer first. A layer with weight
        0 gets no head; ``alpha=0`` is the plain network.
    loss : {"bayes_risk", "cross_entropy", "one_sided", "smooth_one_sided", "softmin", \
            "squared"} or Loss, default="bayes_risk"
        Loss of the output; see :mod:`auxcst_sklearn.losses`. With "bayes_risk" and
        "cross_entropy" the output learns class probabilities, and costs enter at the decision;
        with the others it learns the costs. For costs per sample "bayes_risk" adds a cost network
        of the same shape, which takes as long again. "one_sided" is the loss of the paper.
    aux_loss : str or Loss, default=None
        Loss of the auxiliary heads; None for the same as `loss`.
    activation : {"elu", "gelu", "leaky_relu", "relu", "sigmoid", "silu", "tanh"}, default="relu"
        Activation of the hidden layers.
    dropout : float, default=0.3
        Probability of dropping a hidden neuron in training.
    standardize : bool or "auto", default="auto"
        Whether the network centres and scales its inputs, as learnt from the training set. "auto"
        leaves features of order one, and sparse ones, as they are; others get a common scale if
        they seem to have a common unit, as pixels do, and else each its own, as with True.
        Columns with outliers are scaled by their quartiles, and end softly.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, \
            default="from_dtype"
        Columns that hold categories, with a mask, positions or names. "from_dtype" takes the
        columns of a DataFrame that are categories or strings, and none of an array. Categories
        unknown to the training set, and rare ones, are one level. A missing value in any column
        is NaN or None: the network reads a median and an indicator in its place.
    cost_matrix : array-like or DataFrame of shape (n_classes, n_classes), default=None
        Cost of each prediction (column) for each true class (row), in any currency; rows and
        columns follow `classes_`, those of a DataFrame are matched by label. Per-sample costs go
        to `fit` instead. Without any costs every mistake costs 1.
    classes : array-like of shape (n_classes,), default=None
        All labels, sorted, for training sets that may lack one. None for those in `y`, or those
        that a DataFrame of costs names.
    max_epochs : int, default=50
        Number of passes over the training set.
    batch_size : int or "auto", default="auto"
        Rows per step. "auto" is a 32nd of the training set, at least 8 and at most 128.
    learning_rate : float, default=3e-3
        Step size of the optimizer; with a schedule the largest.
    schedule : {"one_cycle", "constant"}, default="one_cycle"
        How the step size changes over `max_epochs`: up for a tenth of them and down to zero
        along cosines, or not at all. `partial_fit` keeps it constant.
    weight_decay : float, default=1e-2
        Weight decay of the optimizer.
    optimizer : str or type, default="adamw"
        "adagrad", "adam", "adamax", "adamw", "nadam", "radam", "rmsprop", "sgd", or a subclass of
        ``torch.optim.Optimizer``.
    early_stopping : bool, default=False
        Hold out a part of the training set, stop when its mean cost has not fallen for
        `patience` epochs, and keep the weights of the best epoch.
    validation_fraction : float, default=0.1
        Share of the training set that is held out by early stopping.
    patience : int, default=10
        Number of epochs without a smaller held-out cost before training stops.
    calibration_fraction : float, default=0.2
        Share of the rows that a calibration network, one of the same kind, does not see; they
        serve the temperature of the class probabilities (`temperature_`). The network itself sees
        all rows; the fit takes nearly twice as long. 0 for no temperature. With early stopping
        the rows held out for it serve instead, at no cost. Losses without class probabilities,
        and fewer than ten rows, have no temperature. With `warm_start` that of the first fit
        stays; `partial_fit` alone learns none.
    warm_start : bool, default=False
        Whether another call to `fit` goes on from the present weights, with the network, loss and
        optimizer as they are; changes of their parameters have no effect then.
    device : str, default="auto"
        Where to train: "cpu", "cuda", "mps" ...; "auto" takes a CUDA GPU if there is one. A
        training set that fills more than half of its free memory stays in the computer's.
    precision : {"float32", "bf16"}, default="float32"
        Number format of the hidden layers' arithmetic; weights, heads and losses are float32.
        "bf16" is faster on processors with instructions for it, and slower on others.
    compile : bool, default=False
        Whether ``torch.compile`` translates the training step. It takes a C++ compiler and up to
        a minute at the start of each fit, which long trainings win back.
    random_state : int, RandomState instance or None, default=None
        Determines weights, shuffling, dropout and the held-out rows. Pass an int for the same
        network on every call.
    verbose : int or bool, default=0
        Whether to print a line per epoch, and on a terminal a bar with the time left.
    callbacks : list of skorch callbacks, default=None
        Called during training, as in skorch: schedules, checkpoints, gradient clipping ...
        Copies are called in the training of the calibration network.
    net_params : dict, default=None
        Further arguments of the skorch net, such as ``{"optimizer__betas": (0.9, 0.99)}``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted: the order of all cost columns.
    hidden_layers_ : list of str
        Names of the layers that have an auxiliary head.
    history_ : list of dict
        One record per epoch: "epoch", "train_loss" (the total), "train_loss_hidden1" ...
        "train_loss_output" (each head's mean loss), "dur" (seconds), and with early stopping
        the same of the held-out rows as "valid_loss..." and their mean cost, "valid_cost".
        Losses are in units of the mean cost above the smallest, "valid_cost" in currency.
    temperature_ : float
        Divisor of the logits of the class probabilities, at least 1.
    net_ : skorch.NeuralNet
        The trained net; its torch module is ``net_.module_``.
    input_center_, input_scale_ : ndarray of shape (n_features,) or None
        Centre and divisor of each input; None for inputs as they are.
    is_categorical_ : ndarray of shape (n_features,) or None
        Mask of the columns that hold categories; None if there are none.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` had names that are all strings.

    See Also
    --------
    auxcst_sklearn.metrics.cost_scorer : Scorer for searches with per-sample costs.

    Notes
    -----
    A pickle holds the weights without the state of the optimizer, which starts anew if training
    goes on after loading.

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

    _parameter_constraints: dict = {
        **AUX_CONSTRAINTS,
        "depth": [Interval(Integral, 1, None, closed="left")],
        "width": [_WIDTH, "array-like"],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "standardize": ["boolean", StrOptions({"auto"})],
        "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    }

    def __init__(
        self,
        depth: int = 3,
        width: int | Sequence[int] = 256,
        alpha: float | Sequence[float] = 0.2,
        *,
        loss: str | Loss = "bayes_risk",
        aux_loss: str | Loss | None = None,
        activation: str = "relu",
        dropout: float = 0.3,
        standardize: bool | Literal["auto"] = "auto",
        categorical_features: ArrayLike | Literal["from_dtype"] | None = "from_dtype",
        cost_matrix: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        max_epochs: int = 50,
        batch_size: int | Literal["auto"] = "auto",
        learning_rate: float = 3e-3,
        schedule: Literal["one_cycle", "constant"] = "one_cycle",
        weight_decay: float = 1e-2,
        optimizer: str | type = "adamw",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 10,
        calibration_fraction: float = 0.2,
        warm_start: bool = False,
        device: str = "auto",
        precision: Literal["float32", "bf16"] = "float32",
        compile: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = 0,
        callbacks: list | None = None,
        net_params: dict[str, Any] | None = None,
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
        self.cost_matrix = cost_matrix
        self.classes = classes
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.calibration_fraction = calibration_fraction
        self.warm_start = warm_start
        self.device = device
        self.precision = precision
        self.compile = compile
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.net_params = net_params

    def _make_module(self, n_features: int, n_outputs: int) -> tuple[AuxMLP, list[float]]:
        width = per_layer(self.width, self.depth, name="width", layers="hidden layer")
        check_each(width, name="width", interval=_WIDTH)
        head_layers, weights = layers_with_head(
            self.alpha, self.depth - 1, layers="hidden layer but the last"
        )
        inputs = self._make_inputs()
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
