"""CostSensitiveAuxMLP: the fully connected network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from .._checks.calls import inherit_docs
from .._inputs.arrays import Preprocessor
from .._inputs.tables import TablePreprocessor
from .._training.plan import Plan
from ..modules._layers import ACTIVATIONS
from ..modules._mlp import AuxMLP
from ..modules._tables import FeatureInput
from .base import BaseCostSensitiveNet
from .parameters import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    AuxParameters,
    check_each,
    layers_with_head,
    per_layer,
)


@inherit_docs(AuxParameters, BaseCostSensitiveNet)
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
    alpha : float or array-like of shape (depth - 1,), default=0.2
        Weight of each auxiliary loss, from the first hidden layer on. Layers with weight 0 have no
        head. ``alpha=0`` is the plain network.
    activation : {"elu", "gelu", "leaky_relu", "relu", "sigmoid", "silu", "tanh"}, default="silu"
        Activation of the hidden layers.
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
        Number of quantile bins (piecewise linear encoding) in every third network. If 0, none.
    n_networks : int or "auto", default="auto"
        Number of averaged networks. Each has another fold of the samples as validation samples. If
        "auto", 5 networks are used, or 3 for more than 50,000 samples.
    batch_size : int or "auto", default="auto"
        Samples per step. If "auto", it grows with the training set.
    learning_rate : float or "auto", default="auto"
        Learning rate of the optimizer, or its maximum with a schedule. If "auto", it depends on the
        schedule and on the number of columns.
    schedule : {"plateau", "constant", "one_cycle"} or callable, default="plateau"
        How the learning rate changes. "plateau" reduces it when the validation loss no longer
        decreases, and then stops. "one_cycle" increases it during the first tenth of `max_epochs`
        and then decreases it to zero. A function of the optimizer returns a torch scheduler, which
        steps after every epoch.
    ema_epochs : float, default=5.0
        Horizon, in epochs, of the exponential average of the weights. If 0, no average.
    patience : int or "auto", default="auto"
        Epochs without improvement before the rate is reduced or training stops. If "auto", it is
        smaller for many samples.

    Attributes
    ----------
    net_ : skorch.NeuralNet
        The trained net. Its torch module is ``net_.module_``. The first dimension of the weights is
        the network.
    input_center_, input_scale_ : ndarray of shape (n_features,) or None
        Centre and divisor of each input. None for unscaled inputs.
    is_categorical_ : ndarray of shape (n_features,) or None
        Mask of the categorical columns. None if there are none.

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
        "schedule": [StrOptions({"constant", "one_cycle", "plateau"}), callable],
    }

    depth: int = 3
    width: int | Sequence[int] = 128
    alpha: float | Sequence[float] = 0.2
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
    schedule: str | Callable[..., Any] = "plateau"
    ema_epochs: float = 5.0
    patience: int | Literal["auto"] = "auto"  # type: ignore[assignment]

    def _make_inputs(self, X: Any) -> TablePreprocessor:
        return TablePreprocessor(self.categorical_features)

    _allows_nan = True

    def _make_module(
        self, plan: Plan, inputs: Preprocessor, rows: Any, n_outputs: int
    ) -> tuple[AuxMLP, list[float]]:
        width = per_layer(self.width, self.depth, name="width", layers="hidden layer")
        check_each(width, name="width", interval=COUNT)
        head_layers, weights = layers_with_head(
            self.alpha, self.depth - 1, layers="hidden layer but the last"
        )
        first, scaled, n_features = inputs.make_module(), None, rows.shape[1]
        if isinstance(first, FeatureInput):
            n_features = first.n_outputs
            if self.learn_scales and len(first.few_columns):
                scaled = first.indicators
        module = AuxMLP(
            n_features,
            n_outputs,
            width=width,
            head_layers=head_layers,
            activation=self.activation,
            dropout=self.dropout,
            scaled=scaled,
            inputs=first,
        )
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
