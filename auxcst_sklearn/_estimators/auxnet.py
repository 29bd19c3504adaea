"""CostSensitiveAuxNet: any torch module, with cost heads added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from functools import update_wrapper
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions
from torch import nn

from .._checks.calls import warn
from .._checks.data import are_named
from .._inputs.arrays import Preprocessor
from .._inputs.images import ImagePreprocessor
from .._inputs.named import NamedPreprocessor
from .._training.plan import NetworkFacts
from .._training.processes import report
from ..modules._images import ImageLayer
from ..modules._named_rows import NamedRows
from ..modules.wrapping import (
    PREFIX,
    Trace,
    WrappedNetwork,
    example_of,
    find_hidden_layers,
    is_trained,
    make_body,
)
from .base import BaseCostSensitiveNet
from .network_steps import NetworkSpec
from .parameters import COUNT, NOT_NEGATIVE, POSITIVE, ImageParameters, alpha_of_layers

OTHER_NAMES = (
    "In skorch and Keras, learning_rate is lr, max_epochs epochs, validation_fraction "
    "train_split. Arguments of the module have the prefix module__, those in net_params optimizer__"
)


@dataclass(eq=False, repr=False)
class ModuleParameters(ImageParameters):
    """The constructor's parameters, without arguments of the module."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ImageParameters._parameter_constraints,
        "module": [callable],
        "hidden_layers": [StrOptions({"auto"}), "array-like"],
        "pretrained": [StrOptions({"auto"}), "boolean"],
        "combine_heads": [StrOptions({"auto"}), "boolean"],
        "n_networks": [StrOptions({"auto"}), COUNT],
        "early_stopping": [StrOptions({"auto"}), "boolean"],
        "head_gradient": [StrOptions({"auto"}), NOT_NEGATIVE],
        "pretrained_lr_factor": [StrOptions({"auto"}), POSITIVE],
        "learning_rate": [StrOptions({"auto"}), POSITIVE],
    }

    module: nn.Module | Callable[..., nn.Module]
    _: KW_ONLY
    hidden_layers: Literal["auto"] | Sequence[str] = "auto"
    pretrained: bool | Literal["auto"] = "auto"
    head_gradient: float | Literal["auto"] = "auto"
    alpha: float | Sequence[float] | Callable[[int], Any] = 0.3
    combine_heads: bool | Literal["auto"] = "auto"
    pretrained_lr_factor: float | Literal["auto"] = "auto"
    n_networks: int | Literal["auto"] = "auto"  # type: ignore[assignment]
    learning_rate: float | Literal["auto"] = "auto"  # type: ignore[assignment]
    early_stopping: bool | Literal["auto"] = "auto"  # type: ignore[assignment]
    validation_fraction: float = 0.1


class CostSensitiveAuxNet(ModuleParameters, BaseCostSensitiveNet):
    """Any torch module for cost-sensitive classification, with auxiliary heads (AuxCST).

    Set `module`, set `cost_matrix` or pass `cost` to `fit`, and set `random_state`; then try
    `max_epochs` and `learning_rate`.

    One output per class replaces the last ``nn.Linear`` of the module, and every hidden layer but
    the last gets an auxiliary head. All are trained jointly on ``sum_i alpha_i L_i + L_output``. By
    default, they learn class probabilities, and the prediction is the class with the minimum
    expected cost. The user guide explains inputs, pretrained networks and hidden layers.

    Parameters
    ----------
    module : nn.Module, type or callable
        The network. A module is copied. A class or function returns a module for each network of a
        fit. Its arguments have the prefix ``module__``, as in ``module__width=64``. A required
        argument `input_shape` gets the shape of a sample. The module takes a batch of samples, or
        arrays by name. It returns the output of an ``nn.Linear``: a tensor, an object with
        `logits`, or a tuple that begins with it. A softmax after it is removed.
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
    max_epochs : int, default=50
        Maximum number of epochs, or their number without early stopping.
    learning_rate : float or "auto", default="auto"
        Learning rate of the optimizer, or its maximum with a schedule. If "auto", 1e-3, or 5e-3 for
        new layers of a pretrained module that takes an ``attention_mask``.
    schedule : {"one_cycle", "constant"}, default="one_cycle"
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
    early_stopping : "auto" or bool, default="auto"
        Whether to keep the weights of the epoch with the lowest validation loss (lowest mean cost
        for losses without class probabilities). If "auto", True for a pretrained module, and for
        costs so extreme that decisions depend on class probabilities below ``1 / (100
        n_classes)``: long training makes small probabilities too small.
    patience : int, default=10
        Number of epochs without improvement of any network after which training stops.
    validation_fraction : float, default=0.1
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
        Number of averaged networks, each with its own validation samples. If "auto", 2 for a new
        module, and 1 for a pretrained module or without a learnt temperature. Pass a class or
        function as `module`, so that they start with different weights.
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
    image_shape : array-like of int, default=None
        Shape of a sample, such as (C, H, W), if X contains flattened rows. If None, the shape of X.
    channels_last : bool, default=False
        Whether images are (H, W, C) rather than (C, H, W).
    augmentation : {"flip", "shift", "flip_shift"} or callable, default=None
        Random transforms of the training images, drawn again in every epoch: mirror left and right,
        shift by up to an eighth of the smaller side, both, or a callable that maps a float tensor
        (n_samples, C, H, W) on the device to a tensor of the same shape.
    head_input : {"auto", "mean", "flatten"} or callable, default="auto"
        Input of a head on feature maps (n_samples, n_channels, ...) or sequences (n_samples,
        n_steps, n_features): means over the positions that are not padding, or all values. If
        "auto", all values of the feature maps of images, as in the paper, because their means say
        little about the class in the first layers; and means of sequences, of all layers of a
        module that takes an ``attention_mask``, and wherever `head_gradient` is 0. Large maps are
        averaged over windows, so that all heads together have at most a fifth of the
        multiplications of the module and 2,097,152 weights (8 MB). A function of the layer's output
        and of the module's inputs, a tensor or a dict of tensors by name, returns features
        (n_samples, n_features), each row by its own sample; ``x[:, 0]`` are those of the first
        step. Each head trains a copy of a module.
    hidden_layers : "auto" or list of str, default="auto"
        The layers that get a head: paths of submodules, or names from
        :func:`~auxcst_sklearn.modules.find_hidden_layers`. If "auto", all that it finds but the
        last.
    pretrained : "auto" or bool, default="auto"
        Whether the module has trained weights. If "auto", an instance is pretrained if it has norms
        or biases that no new module has. Set it to True for a function that loads weights.
    head_gradient : "auto" or float, default="auto"
        Factor of the gradient that heads send into the module. If "auto", 0 for a pretrained module
        and where ``head_input="auto"`` chooses means, which would push the layers towards features
        whose mean separates the classes, and 1 for the other heads.
    alpha : float, array-like of shape (n_heads,) or callable, default=0.3
        Weight of each auxiliary loss, from the first hidden layer on. Layers with weight 0 have no
        head. ``alpha=0`` is the plain network. A function of the number of heads returns the
        weights. It is not an L2 penalty, which is `weight_decay`.
    combine_heads : "auto" or bool, default="auto"
        Whether the probabilities are a weighted geometric mean over output and heads. The weights
        minimise the log loss of validation samples. If the mean does not lower it on other
        validation samples, the output predicts alone. If "auto", True for a pretrained module, and
        for a new one whose heads send a gradient.
    pretrained_lr_factor : "auto" or float, default="auto"
        Learning rate of the module's own parameters, divided by `learning_rate`. If "auto", 1 for a
        new module, and 0.1 or 0.02 (with an ``attention_mask``) for a pretrained module.

    Attributes
    ----------
    head_weights_ : ndarray of shape (n_heads + 1,)
        Exponents of the probabilities of heads and output in the class probabilities. If the output
        predicts alone, its exponent is 1 / temperature.
    net_ : skorch.NeuralNet
        The trained net. Its copies of `module` are ``net_.module_.networks[i].body``.
    n_features_in_ : int
        Number of features; for images ``X.shape[1]``. A fit on a mapping sets none.
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
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` had names that are all strings.

    See Also
    --------
    CostSensitiveAuxCNN : A residual network for images.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from torch import nn
    >>> from auxcst_sklearn import CostSensitiveAuxNet
    >>> X, y = load_digits(return_X_y=True)
    >>> def make_network(width=32):
    ...     return nn.Sequential(
    ...         nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
    ...         nn.Linear(width, 10))
    >>> model = CostSensitiveAuxNet(make_network, module__width=64, max_epochs=5, random_state=0)
    >>> model.fit(X[:1000] / 16, y[:1000]).hidden_layers_
    ['1']
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        of_module = {name: kwargs.pop(name) for name in [*kwargs] if name.startswith(PREFIX)}
        if unknown := {*kwargs} - {*ModuleParameters.__dataclass_fields__}:
            raise TypeError(f"CostSensitiveAuxNet has no {sorted(unknown)}. {OTHER_NAMES}")
        super().__init__(*args, **kwargs)
        self.__dict__.update(of_module)

    update_wrapper(__init__, ModuleParameters.__init__)  # for its signature

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, and the arguments of the module with their prefix."""
        parameters: dict[str, Any] = super().get_params(deep)
        return parameters | {
            name: vars(self)[name] for name in vars(self) if name.startswith(PREFIX)
        }

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
            if (value := getattr(self, name)) is not None:
                raise ValueError(
                    f"{name}={value!r} is for X as one array, but X is a mapping of arrays; "
                    f"expected {name}=None."
                )
        return NamedPreprocessor()

    def _make_module(self, spec: NetworkSpec) -> tuple[WrappedNetwork, list[float]]:
        like = spec.like
        # The first module of the first network knows integers from floats, and cuts sequences.
        first = spec.inputs.make_module() if like is None else deepcopy(like.inputs)
        attributes = vars(self).items()
        params = {k.removeprefix(PREFIX): value for k, value in attributes if k.startswith(PREFIX)}
        shape = first.out_shape if isinstance(first, ImageLayer) else None
        body = make_body(self.module, shape, params)
        weights, layers = list[float](), list[str]()
        if like is None:
            names = self._layer_names(body, example_of(first, spec.rows))
            weights = alpha_of_layers(self.alpha, len(names), layers=f"layer of {names}")
            layers = [name for name, weight in zip(names, weights) if weight]
        elif spec.has_heads:
            layers = like.layers[:-1]
        module = WrappedNetwork(
            first,
            body,
            spec.n_outputs,
            hidden_layers=layers,
            head_input=self.head_input,
            head_gradient=spec.plan.head_gradient,
            rows=spec.rows,
            like=like,
        )
        may_be_cut = isinstance(first, NamedRows) and bool(first.layout.masks)
        if like is None and may_be_cut and not first.is_cut:
            line = "Batches are not cut to their longest sample: cut outputs would differ."
            report(line, self.verbose)
        return module, weights

    def _network_facts(self, inputs: Preprocessor) -> NetworkFacts:
        module = self.module
        return NetworkFacts(
            learns_temperature_alone=True,
            module=type(module).__name__,
            is_instance=isinstance(module, nn.Module),
            looks_trained=isinstance(module, nn.Module) and is_trained(module),
            reads_masks=isinstance(inputs, NamedPreprocessor) and bool(inputs.layout.masks),
        )

    def _layer_names(self, body: nn.Module, example: Any) -> list[str]:
        """Names of the layers that `alpha` weights."""
        if not isinstance(self.hidden_layers, str):
            names = [str(name) for name in self.hidden_layers]
            if len(set(names)) < len(names):
                raise ValueError(f"hidden_layers={names} names a layer twice; name each once.")
            return names
        layers = find_hidden_layers(body, example)[:-1]
        if not layers and (callable(self.alpha) or np.any(self.alpha)):
            warn(
                f"No hidden layer but the last was found in {type(body).__name__}, which is "
                "trained without auxiliary heads. Set alpha=0, or hidden_layers to some of "
                f"{Trace(body, example).usable()}."
            )
        return layers
