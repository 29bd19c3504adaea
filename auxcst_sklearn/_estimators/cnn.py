"""CostSensitiveAuxCNN: the convolutional network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from .._inputs.images import ImagePreprocessor
from .._training.plan import NetworkFacts
from ..modules import ResidualCNN
from ..modules.wrapping import MirroredNetwork
from .base import BaseCostSensitiveNet
from .network_steps import NetworkSpec
from .parameters import COUNT, ImageParameters, alpha_of_layers, check_each


@dataclass(eq=False, repr=False)
class CostSensitiveAuxCNN(ImageParameters, BaseCostSensitiveNet):
    """Residual network on images that estimates costs, with auxiliary cost heads (AuxCST).

    The network is a :class:`~auxcst_sklearn.modules.ResidualCNN`: stages of a convolution, max
    pooling and residual blocks. It has one output per class. Every residual block but the last has
    an auxiliary head, which reads its maps as `head_input` says. All are trained jointly on ``sum_i
    alpha_i L_i + L_output``. Whether they learn costs or class probabilities depends on `loss`. The
    prediction is the class with the smallest estimated cost.

    Parameters
    ----------
    channels : int or array-like of shape (n_stages,), default=(32, 64, 128)
        Number of maps in each stage. Max pooling in each stage halves sides of 6 pixels or more.
    depth : int, default=1
        Number of residual blocks in each stage.
    alpha : float, array-like of shape (n_stages * depth - 1,) or callable, default=0.3
        Weight of each auxiliary loss, from the first block on. Blocks with weight 0 have no head.
        ``alpha=0`` is the plain network. A function of the number of heads returns the weights.
        It is not an L2 penalty, which is `weight_decay`.
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
    max_epochs : int, default=40
        Maximum number of epochs, or their number without early stopping.
    learning_rate : float, default=0.01
        Learning rate of the optimizer, or its maximum with a schedule.
    schedule : {"one_cycle", "constant"}, default="one_cycle"
        How the learning rate changes. "one_cycle" increases it during the first tenth of
        `max_epochs` and then decreases it to zero. With "constant", skorch's ``LRScheduler`` in
        `callbacks` may set it.
    batch_size : int or "auto", default="auto"
        Samples per step. If "auto", it grows with the training set, from 16 to 128.
    optimizer : str or type, default="adamw"
        "adagrad", "adam", "adamax", "adamw", "nadam", "radam", "rmsprop", "sgd", or a subclass of
        ``torch.optim.Optimizer``. `net_params` has its other arguments.
    weight_decay : float, default=0.5
        Weight decay of the optimizer.
    early_stopping : bool, default=False
        Whether to keep the weights of the epoch with the lowest loss on validation samples (lowest
        mean cost for losses without class probabilities). With fewer than ten samples, there are no
        validation samples.
    patience : int, default=10
        Number of epochs without improvement of any network after which training stops.
    validation_fraction : float, default=0.1
        Fraction of the samples that are validation samples of a network. They determine the
        temperature, and with `early_stopping` the best epoch.
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
    n_networks : int, default=1
        Number of averaged networks, each with its own validation samples. Two networks take twice
        the time.
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
    image_shape : array-like of shape (3,), default=None
        Shape of an image, (C, H, W), or (H, W, C) with `channels_last`, if X contains flattened
        images, such as from another transformer. If None, the shape of X.
    channels_last : bool, default=False
        Whether images are (H, W, C) rather than (C, H, W).
    augmentation : {"flip", "shift", "flip_shift"} or callable, default=None
        Random transforms of the training images, drawn again in every epoch: mirror left and right,
        shift by up to an eighth of the smaller side, both, or a callable that maps a float tensor
        (n_samples, C, H, W) on the device to a tensor of the same shape.
    head_input : {"auto", "mean", "flatten"} or callable, default="auto"
        Input of a head on feature maps: their means, or all values. If "auto", all values, or means
        of small windows where the heads would otherwise have more than a fifth of the
        multiplications. A function of the maps and of the images returns features (n_samples,
        n_features). Each head trains a copy of a module.
    combine_heads : bool, default=True
        Whether the probabilities are a weighted geometric mean over output and heads. The weights
        minimise the log loss of validation samples. If the mean does not lower it on other
        validation samples, the output predicts alone.

    Attributes
    ----------
    image_shape_ : tuple of int
        (C, H, W) of the network's input images.
    hidden_layers_ : list of str
        Names of the residual blocks that have an auxiliary head: "stage1.block1" ...
    head_weights_ : ndarray of shape (n_heads + 1,)
        Exponents of the probabilities of heads and output in the class probabilities. If the output
        predicts alone, its exponent is 1 / temperature.
    net_ : skorch.NeuralNet
        The trained net. Its torch module is ``net_.module_``. The networks of the module are
        ``net_.module_.networks``.
    n_features_in_ : int
        Number of features. For images it is ``X.shape[1]``, as in scikit-learn.
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
    CostSensitiveAuxNet : Any torch module with heads.

    Notes
    -----
    In all methods, X has one of these shapes:

    - (n_samples, C, H, W), or (n_samples, H, W, C) with `channels_last`.
    - (n_samples, H, W): images of one channel.
    - (n_samples, n_features), dense or sparse: flattened images of `image_shape`, in this order of
      dimensions. Without `image_shape`, they are images of one channel and one row of pixels.

    A warning is raised for shapes that are probably misinterpreted: (H, W, 1), (H, W, 3) or
    (H, W, 4) without `channels_last`, (1, H, W), (3, H, W) or (4, H, W) with it, and rows of 64
    values or more that form a square. `image_shape` silences the warning.

    Images in uint8 stay uint8 in memory. The network scales them from 0 ... 255 to 0 ... 1, one
    mini-batch at a time. Floats are used unchanged. All other numbers are converted to float32. A
    model fitted on uint8 predicts from uint8 only, and a model fitted on floats from floats only,
    because the range of the other type is unknown. If the training images are in -1 ... 1, far
    larger floats at prediction time, such as 0 ... 255, raise a warning.

    If `augmentation` is the name of a transform that mirrors images, or a `RandomFlipShift` that
    does, outputs are means over an image and its mirror image. This doubles the time of
    predictions.

    A pickle contains the weights without the state of the optimizer. Training after loading starts
    with a new optimizer.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from auxcst_sklearn import CostSensitiveAuxCNN
    >>> from auxcst_sklearn.costs import randomized_proportional_cost_matrix
    >>> digits = load_digits()
    >>> X, y = digits.images / 16, digits.target
    >>> X.shape
    (1797, 8, 8)
    >>> cost_matrix = randomized_proportional_cost_matrix(y[:1000], random_state=0)
    >>> model = CostSensitiveAuxCNN(channels=(8, 16), cost_matrix=cost_matrix, max_epochs=5,
    ...                             random_state=0).fit(X[:1000], y[:1000])
    >>> model.hidden_layers_
    ['stage1.block1']
    >>> model.predict(X[1000:1003]).shape, model.predict_cost(X[1000:1003]).shape
    ((3,), (3, 10))
    >>> model.score(X[1000:], y[1000:]) > -1  # minus the mean cost
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ImageParameters._parameter_constraints,
        "channels": [COUNT, "array-like"],
        "depth": [COUNT],
        "combine_heads": ["boolean"],
    }

    channels: int | Sequence[int] = (32, 64, 128)
    depth: int = 1
    alpha: float | Sequence[float] | Callable[[int], Any] = 0.3
    _: KW_ONLY
    combine_heads: bool = True
    max_epochs: int = 40
    learning_rate: float = 1e-2
    weight_decay: float = 0.5
    early_stopping: bool = False
    validation_fraction: float = 0.1

    def _network_facts(self, inputs: Any) -> NetworkFacts:
        return NetworkFacts(learns_temperature_alone=True)

    def _make_inputs(self, X: Any) -> ImagePreprocessor:
        parameters = self.image_shape, self.channels_last, self.augmentation
        return ImagePreprocessor(*parameters, convolved=True)

    def _make_module(self, spec: NetworkSpec) -> tuple[MirroredNetwork, list[float]]:
        channels = np.atleast_1d(np.asarray(self.channels)).tolist()
        if not channels:
            raise ValueError("channels is empty; expected the channels of at least one stage.")
        check_each(channels, name="channels", interval=COUNT)
        images = spec.inputs.make_module()
        body = ResidualCNN(images.out_shape, channels=channels, depth=self.depth)
        *names, _ = body.hidden_layers
        alpha = self.alpha if spec.has_heads else 0.0
        weights = alpha_of_layers(alpha, len(names), layers="residual block but the last")
        layers = [name for name, weight in zip(names, weights) if weight]
        module = MirroredNetwork(
            images,
            body,
            spec.n_outputs,
            hidden_layers=layers,
            head_input=self.head_input,
            rows=spec.rows,
            like=spec.like,
        )
        return module, weights
