"""CostSensitiveAuxNet: any torch module, with cost heads added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial, update_wrapper
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import nn

from .._checks.calls import inherit_docs, warn
from .._checks.named import are_named
from .._inputs.arrays import ImagePreprocessor, Preprocessor, densify
from .._inputs.named import NamedPreprocessor
from .._training.schedule import RATE_FACTOR
from ..modules._images import ImageLayer
from ..modules._layers import HEAD_INPUTS, HeadInput
from ..modules._named_rows import NamedRows
from ..modules._network import AuxNetwork
from ..modules.wrapping import (
    PREFIX,
    WrappedNetwork,
    example_of,
    find_hidden_layers,
    is_trained,
    make_body,
)
from .base import BaseCostSensitiveNet
from .parameters import (
    NOT_NEGATIVE,
    POSITIVE,
    ImageParameters,
    TrainingOptions,
    layers_with_head,
)

# Rates of new layers, and of trained weights as a fraction of it; of encoders of sequences, whose
# features need a larger rate for new layers.
RATE, PRETRAINED_LR_FACTOR = 1e-3, 0.1
RATE_OF_ENCODERS, ENCODER_LR_FACTOR = 5e-3, 0.02


@dataclass(eq=False, repr=False)
class ModuleParameters(ImageParameters):
    """The constructor's parameters, without arguments of the module."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ImageParameters._parameter_constraints,
        "module": [callable],
        "hidden_layers": [StrOptions({"auto"}), "array-like"],
        "head_input": [StrOptions({*HEAD_INPUTS}), callable],
        "pretrained": [StrOptions({"auto"}), "boolean"],
        "combine_heads": [StrOptions({"auto"}), "boolean"],
        "early_stopping": [StrOptions({"auto"}), "boolean"],
        "head_gradient": [StrOptions({"auto"}), NOT_NEGATIVE],
        "freeze": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "pretrained_lr_factor": [StrOptions({"auto"}), POSITIVE],
        "learning_rate": [StrOptions({"auto"}), POSITIVE],
    }

    module: nn.Module | Callable[..., nn.Module]
    _: KW_ONLY
    hidden_layers: Literal["auto"] | Sequence[str] = "auto"
    pretrained: bool | Literal["auto"] = "auto"
    head_input: HeadInput = "mean"
    head_gradient: float | Literal["auto"] = "auto"
    alpha: float | Sequence[float] = 0.2
    combine_heads: bool | Literal["auto"] = "auto"
    freeze: int | Sequence[str] | None = None
    pretrained_lr_factor: float | Literal["auto"] = "auto"
    learning_rate: float | Literal["auto"] = "auto"
    early_stopping: bool | Literal["auto"] = "auto"
    validation_fraction: float = 0.1


@inherit_docs(ImageParameters, BaseCostSensitiveNet)
class CostSensitiveAuxNet(ModuleParameters, BaseCostSensitiveNet):
    """Any torch module as a network that estimates costs, with auxiliary cost heads (AuxCST).

    One output per class replaces the output layer of the module, its last ``nn.Linear``, and every
    hidden layer but the last gets as many auxiliary neurons. All are trained jointly on ``sum_i
    alpha_i L_i + L_output``; the prediction is the class with the smallest estimated cost. What
    outputs and heads learn, costs or classes, depends on `loss`. Training starts from the weights
    of the module, which may be pretrained.

    Parameters
    ----------
    module : nn.Module, type or callable
        The network. A module is copied, and never changed. A class or another callable is called
        for each network of a fit, with torch seeded by `random_state`, and must return a module,
        which is copied too; if `input_shape` is among its required parameters, it gets the shape of
        one example, (C, H, W) or (n_features,). Its other arguments are further keywords with the
        prefix ``module__``, as in skorch: ``module__width=64``. Searches set them by this name.

        The module takes a batch of examples as floats, or the arrays of a mapping by their names.
        It returns the output of an ``nn.Linear``, or rows that it selects from it, as of the last
        token: a tensor, an object with `logits`, or a tuple whose first tensor is meant. An
        ``nn.Softmax`` or ``nn.LogSoftmax`` layer after it is removed.
    hidden_layers : "auto" or list of str, default="auto"
        "auto" finds all hidden layers, see :func:`~auxcst_sklearn.modules.find_hidden_layers`: an
        activation after a layer of weights ends a hidden layer, a residual block counts as one, and
        the hidden layers of a transformer are its blocks. All but the last get a head.
        Alternatively, a list of the layers that get a head, each given by the path of a submodule,
        as in ``module.named_modules()``, or by the name that "auto" would use.
    pretrained : "auto" or bool, default="auto"
        Whether the weights of the module come from a training: set it to True for a callable that
        loads weights. It decides `head_gradient`, `combine_heads`, `pretrained_lr_factor` and
        `early_stopping` where they are "auto". "auto" is True for an instance with norms or
        biases that no new module has, and False otherwise, with a warning for an instance.
    head_input : {"mean", "flatten", "first", "last"} or callable, default="mean"
        Input of a head on feature maps (n_samples, n_channels, ...) or on sequences (n_samples,
        n_steps, n_features): the mean of each channel or feature; every value; or the features at
        the first or the last step. The ``attention_mask`` of a mapping excludes padding. A function
        gets the output of the layer and the inputs of the module, and returns features (n_samples,
        n_features).
    head_gradient : "auto" or float, default="auto"
        Factor of the gradient that the heads send into the module; 0 for heads that learn, but
        do not change the module. "auto" is 0 for a pretrained module, and 1 otherwise.
    alpha : float or array-like of shape (n_heads,), default=0.2
        Weight of the loss of each auxiliary head, first hidden layer first. A layer with weight
        0 gets no head; ``alpha=0`` is the plain network.
    combine_heads : "auto" or bool, default="auto"
        Whether the probabilities are a weighted geometric mean of the probabilities of the output
        and of all heads, as in :class:`CostSensitiveEnsembleClassifier`. If False, the output with
        a temperature predicts alone. The weights minimise the log loss of the held-out rows. The
        mean is used only if it is better there than the output, by more than a standard error.
        "auto" is True for a pretrained module. Without held-out rows, for losses
        without class probabilities, and with a given `temperature` the output predicts alone.
    freeze : int or list of str, default=None
        The number of epochs in which only the new layers are trained, before the whole module is;
        or the submodules that stay frozen throughout, given by their paths or by patterns such as
        ``"layer[12]"``; ``["*"]`` for all. Frozen submodules run in evaluation mode: normalisation
        keeps its statistics, and dropout is off.
    pretrained_lr_factor : "auto" or float, default="auto"
        Learning rate of the module's own parameters, as a multiple of `learning_rate`, the learning
        rate of the new layers. "auto" is 1 for a new module and 0.1 for a pretrained module; 0.02
        if `learning_rate` is "auto" and becomes 5e-3.
    image_shape : array-like of int, default=None
        Shape of an example, such as (C, H, W), or with `channels_last` (H, W, C), if X holds
        flattened rows. None for the shape of X.
    n_networks : int, default=1
        Number of networks, which are trained side by side; estimates and probabilities are their
        means. With early stopping, each holds out a different fold of the rows, and all folds
        together give the temperature. Pass a class or another callable as `module`, so that they
        start with different weights; copies of one module differ only in their heads and in the
        order of the rows.
    learning_rate : float or "auto", default="auto"
        Learning rate of the optimizer; with a schedule, its maximum. "auto" is 1e-3, and 5e-3 for
        the new layers of a pretrained module that takes an ``attention_mask``.
    early_stopping : "auto" or bool, default="auto"
        Whether to hold out rows, and keep the weights of the best epoch: the one with the least
        held-out loss at its best temperature, or, for losses without class probabilities, with the
        least held-out mean cost. "auto" is True for a pretrained module. With fewer than
        ten rows, none are held out.
    validation_fraction : float, default=0.1
        Fraction of the rows that each network holds out. Several networks hold out different folds:
        the rows are split into `n_networks` folds, or into 1 / `validation_fraction` if that is
        more.
    random_state : int, RandomState instance or None, default=None
        Determines new weights, shuffling, augmentation, dropout and the held-out rows. Pass an
        int for the same network on every call.

    Attributes
    ----------
    head_weights_ : ndarray of shape (n_heads + 1,)
        Weights of the heads, first hidden layer first, and of the output in the class
        probabilities, which are in proportion to the product of their powers. Where the output
        predicts alone, its weight is the inverse of the temperature.
    net_ : skorch.NeuralNet
        The trained net, whose torch module is ``net_.module_``. Its networks lie side by side: the
        copy of `module`, without its output layer, is ``net_.module_.networks[0].body``. With costs
        per sample and the loss "bayes_risk" there are two kinds, in ``net_.module_.classes`` and
        ``net_.module_.costs``.
    n_features_in_ : int
        Number of features; for images ``X.shape[1]``, as everywhere in scikit-learn. A fit on a
        mapping sets none.

    See Also
    --------
    CostSensitiveAuxCNN : A convolutional network with sizes to search over.
    auxcst_sklearn.modules.find_hidden_layers : The search for hidden layers behind "auto".

    Notes
    -----
    X may be a mapping of arrays or tensors with a row per example, such as what a tokenizer returns
    with ``padding=True``: the module gets them by their names, integers as int64, floats as
    float32, booleans as they are, and nothing is scaled. Put a tokenizer in front as a step of a
    pipeline, and ``fit``, searches and ``cross_val_score`` take a list of texts; without a pipeline
    scikit-learn's splitters need skorch's ``SliceDict``. With an ``attention_mask`` batches have
    rows of similar length and are cut to the longest, unless an output depends on the padding,
    which is tried on some rows before training.

    The gradient of heads does harm to trained weights, and deep new networks may need it. A head
    whose layer is skipped in a step, as with LayerDrop, learns nothing from the step.

    uint8 images stay uint8 in memory; the network scales them from 0 ... 255 to 0 ... 1, one
    mini-batch at a time. Images are examples of two or three dimensions, or rows with
    `image_shape`; other uint8 rows are treated as numbers, and not scaled. Floats are used
    unchanged, and all other numbers are converted to float32, the type that the module receives;
    float32 represents integers exactly up to 16777216.

    A module that accepts integers but not floats, such as one that starts with an ``nn.Embedding``,
    receives int64, and nothing is scaled. X may then be of any dtype, but must hold integers.

    Dropout layers and functions, and calls of ``bernoulli``, ``normal_`` or ``uniform_`` in the
    module's forward method, depend on `random_state`. Other random numbers come from torch's global
    generator: ``rand_like``, ``randn_like``, transformers' LayerDrop, and dropout inside torch's
    attention and recurrent layers. SpecAugment uses numpy's generator. Gradient checkpointing
    would draw twice, so modules that use it must not have dropout.

    A pickle holds the parameter `module` in addition to the trained network: a class or function
    needs no space, a module as much as its weights. Its class must be importable where the pickle
    is loaded. The state of the optimizer is not saved; training after loading starts with a new
    optimizer.

    References
    ----------
    Y.-A. Chung, S.-W. Yang, H.-T. Lin, "Cost-Sensitive Deep Learning with Layer-Wise Cost
    Estimation", TAAI 2020, arXiv:1611.05134.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from torch import nn
    >>> from auxcst_sklearn import CostSensitiveAuxNet
    >>> from auxcst_sklearn.costs import randomized_proportional_cost_matrix
    >>> digits = load_digits()
    >>> X, y = digits.images[:, None] / 16, digits.target
    >>> X.shape
    (1797, 1, 8, 8)
    >>> def make_network():
    ...     return nn.Sequential(
    ...         nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    ...         nn.Linear(72, 64), nn.ReLU(), nn.Linear(64, 10))
    >>> cost_matrix = randomized_proportional_cost_matrix(y[:1000], random_state=0)
    >>> model = CostSensitiveAuxNet(
    ...     make_network, cost_matrix=cost_matrix, learning_rate=1e-2, max_epochs=5,
    ...     random_state=0).fit(X[:1000], y[:1000])
    >>> model.hidden_layers_
    ['1']
    >>> model.score(X[1000:], y[1000:]) > -1  # minus the mean cost
    True
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        of_module = {name: kwargs.pop(name) for name in [*kwargs] if name.startswith(PREFIX)}
        super().__init__(*args, **kwargs)
        self.__dict__.update(of_module)

    update_wrapper(__init__, ModuleParameters.__init__)  # for its signature

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, and the arguments of the module with their prefix."""
        found: dict[str, Any] = super().get_params(deep)
        return found | {name: vars(self)[name] for name in vars(self) if name.startswith(PREFIX)}

    def set_params(self, **params: Any) -> CostSensitiveAuxNet:
        """Set parameters, and arguments of the module with the prefix ``module__``."""
        of_module = {name: params.pop(name) for name in [*params] if name.startswith(PREFIX)}
        super().set_params(**params)
        self.__dict__.update(of_module)
        return self

    def _make_inputs(self, X: Any) -> Preprocessor:
        if not are_named(X):
            return ImagePreprocessor(self.image_shape, self.channels_last, self.augmentation)
        for name in ("image_shape", "augmentation"):
            if (given := getattr(self, name)) is not None:
                raise ValueError(
                    f"{name}={given!r} is for X as one array, but X is a mapping of arrays; "
                    f"expected {name}=None."
                )
        return NamedPreprocessor()

    def _make_module(
        self, inputs: Any, rows: Any, n_outputs: int
    ) -> tuple[WrappedNetwork, list[float]]:
        first, tried = inputs.make_module(), densify(rows)
        if isinstance(first, NamedRows):
            self._check_flatten(first)
        example = example_of(first, tried)
        given = vars(self).items()
        params = {k.removeprefix(PREFIX): value for k, value in given if k.startswith(PREFIX)}
        shape = first.out_shape if isinstance(first, ImageLayer) else None
        body = make_body(self.module, shape, params)
        names = self._layer_names(body, example)
        head_layers, weights = layers_with_head(self.alpha, len(names), layers=f"layer of {names}")
        module = WrappedNetwork(
            first,
            body,
            n_outputs,
            hidden_layers=[names[i] for i in head_layers],
            head_input=self.head_input,
            head_gradient=self._head_gradient(),
            rows=tried,
        )
        freeze: Any = self.freeze
        if isinstance(freeze, bool):
            raise ValueError(
                f"freeze={freeze}; expected a number of epochs, or names of submodules: "
                "['*'] for all of them, to the end."
            )
        if freeze is not None and not isinstance(freeze, Integral):
            names = list(freeze)
            if not all(isinstance(name, str) for name in names):
                raise ValueError(
                    f"freeze={freeze!r}; expected a number of epochs, or names of submodules in "
                    "one list."
                )
            module.freeze(names)
        return module, weights

    @property
    def head_weights_(self) -> NDArray[np.float64]:
        """Weights of the heads and of the output in the class probabilities."""
        check_is_fitted(self)
        alone = [0.0] * len(self.hidden_layers_) + [1 / self.temperature_]
        found = self.net_.head_weights
        return np.array(alone) if found is None else found

    def _options(self) -> TrainingOptions:
        # Asked once, because networks and parameters of a fit read it.
        self._looks_trained = isinstance(self.module, nn.Module) and is_trained(self.module)
        options, by_default = super()._options(), self._is_pretrained()
        stops = by_default if self.early_stopping == "auto" else bool(self.early_stopping)
        combines = by_default if self.combine_heads == "auto" else bool(self.combine_heads)
        return replace(options, early_stopping=stops, combine_heads=combines)

    def _is_pretrained(self) -> bool:
        if self.pretrained != "auto":
            return bool(self.pretrained)
        return self._looks_trained

    def _head_gradient(self) -> float:
        if self.head_gradient != "auto":
            return float(self.head_gradient)
        is_pretrained = self._is_pretrained()
        if self.pretrained == "auto" and not is_pretrained and isinstance(self.module, nn.Module):
            warn(
                f"The weights of module, a {type(self.module).__name__}, are taken for new ones: "
                "no norm or bias tells that they were trained. Set pretrained=True "
                "if they were, or pretrained=False if not."
            )
        return 0.0 if is_pretrained else 1.0

    def _check_flatten(self, first: NamedRows) -> None:
        if self.head_input == "flatten" and first.is_cut:
            raise ValueError(
                "head_input='flatten' needs sequences of one length, but X has an attention_mask, "
                "which excludes padding; expected 'mean', 'first', 'last' or a callable."
            )

    def _layer_names(self, body: nn.Module, example: Any) -> list[str]:
        """Names of the layers that `alpha` weights."""
        if not isinstance(self.hidden_layers, str):
            names = [str(name) for name in self.hidden_layers]
            if len(set(names)) < len(names):
                raise ValueError(f"hidden_layers={names} names a layer twice; name each once.")
            return names
        found = find_hidden_layers(body, example)[:-1]
        if not found and np.any(self.alpha):
            warn(
                f"No hidden layer but the last was found in {type(body).__name__}, which is "
                "trained without auxiliary heads. If it has some, name them in hidden_layers; if "
                "not, set alpha=0.",
            )
        return found

    def _net_arguments(self, module: AuxNetwork) -> dict[str, Any]:
        arguments = super()._net_arguments(module)
        rate, factor = RATE, PRETRAINED_LR_FACTOR if self._is_pretrained() else 1.0
        is_encoder = any(isinstance(p, NamedRows) and p.layout.masks for p in module.modules())
        if self.learning_rate != "auto":
            rate = float(self.learning_rate)
        elif factor != 1 and is_encoder:
            rate, factor = RATE_OF_ENCODERS, ENCODER_LR_FACTOR
        if self.pretrained_lr_factor != "auto":
            factor = float(self.pretrained_lr_factor)
        arguments["lr"] = rate
        if factor != 1:
            arguments["optimizer__param_groups"] = [("*body.*", {RATE_FACTOR: factor})]
        if isinstance(self.freeze, Integral):
            from skorch.callbacks import ParamMapper  # skorch is slow to import: on first use

            named = dict(module.named_parameters())
            frozen = [n for n, p in named.items() if "body" in n.split(".") and p.requires_grad]
            for name in frozen:
                named[name].requires_grad_(False)
            schedule = partial(_unfreeze, after=int(self.freeze))
            arguments["callbacks"] = [ParamMapper(frozen, schedule=schedule)]
        return arguments


def _unfreeze(net: Any, after: int) -> Any:
    """The function for frozen parameters in this epoch, which may be the first after a resume."""
    from skorch.utils import noop, unfreeze_parameter

    return unfreeze_parameter if len(net.history) > after else noop
