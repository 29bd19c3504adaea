"""CostSensitiveAuxCNN: the convolutional network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from math import prod
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from .._checks.calls import inherit_docs
from .._inputs.arrays import ImagePreprocessor
from ..modules._images import AuxCNN
from ..modules._layers import ACTIVATIONS
from .base import BaseCostSensitiveNet
from .parameters import (
    COUNT,
    SHARE,
    ImageParameters,
    check_each,
    layers_with_head,
    per_layer,
)


@inherit_docs(ImageParameters, BaseCostSensitiveNet)
@dataclass(eq=False, repr=False)
class CostSensitiveAuxCNN(ImageParameters, BaseCostSensitiveNet):
    """Convolutional network on images that estimates costs, with auxiliary cost heads (AuxCST).

    Convolution blocks, each a convolution, batch normalisation, the activation and max pooling, are
    followed by dense layers and one output per class. Every block and dense layer, except the last
    layer, has as many auxiliary neurons. All are trained jointly on ``sum_i alpha_i L_i +
    L_output``; the prediction is the class with the smallest estimated cost. What outputs and heads
    learn, costs or classes, depends on `loss`.

    Parameters
    ----------
    channels : int or array-like of shape (n_blocks,), default=(32, 64, 128)
        Number of output channels of each convolution block; one block per value.
    width : int or array-like of shape (n_dense,), default=256
        Neurons of each dense layer; ``()`` for none, so that the output follows the last block.
    alpha : float or array-like of shape (n_blocks + n_dense - 1,), default=0.2
        Weight of the loss of each auxiliary head, first block first. A layer with weight 0 gets
        no head; ``alpha=0`` is the plain network.
    kernel_size : int or array-like of shape (n_blocks,), default=3
        Height and width of the kernels of each block. Convolutions keep the size of the feature
        maps.
    pool_size : int or array-like of shape (n_blocks,), default=2
        Height and width of the max pooling of each block; 1 for none. A direction in which the
        images have one pixel is left as it is.
    head_input : {"mean", "flatten"}, default="mean"
        Input of the head of a block: the mean of each feature map, or every value of every map.
    batch_norm : bool, default=True
        Whether the blocks have batch normalisation.
    image_shape : array-like of shape (3,), default=None
        (C, H, W), or with `channels_last` (H, W, C), if X holds flattened rows, for example from
        another transformer. None for the shape of X.
    activation : {"elu", "gelu", "leaky_relu", "relu", "sigmoid", "silu", "tanh"}, default="relu"
        Activation of the hidden layers.
    dropout : float, default=0.0
        Probability of dropping a neuron of a dense layer in training.
    n_networks : int, default=2
        Number of networks, which are trained side by side; estimates and probabilities are their
        means. Each holds out a different fold of the rows for early stopping, and all folds
        together give the temperature. 1 for a single network, in half of the time.
    learning_rate : float, default=3e-3
        Learning rate of the optimizer; with a schedule, its maximum.
    patience : int, default=50
        Number of epochs without improvement of any network after which training stops. With a
        schedule the last epochs are usually the best, so the default never stops early.
    random_state : int, RandomState instance or None, default=None
        Determines weights, shuffling, augmentation, dropout and the held-out rows. Pass an int
        for the same network on every call.

    Attributes
    ----------
    image_shape_ : tuple of int
        (C, H, W) of the network's input images.
    hidden_layers_ : list of str
        Names of the layers that have an auxiliary head: "conv1" ..., "dense1" ...
    net_ : skorch.NeuralNet
        The trained net; its torch module is ``net_.module_``, whose networks are
        ``net_.module_.networks``.
    n_features_in_ : int
        Number of features; for images ``X.shape[1]``, as everywhere in scikit-learn.

    See Also
    --------
    CostSensitiveAuxMLP : The fully connected network.

    Notes
    -----
    X of all methods has one of these shapes:

    - (n_samples, C, H, W), or with `channels_last` (n_samples, H, W, C);
    - (n_samples, H, W): images of one channel;
    - (n_samples, n_features), dense or sparse: flattened images of `image_shape`, in this order of
      dimensions; without `image_shape`, images of one channel and one row of pixels.

    Shapes that are probably misinterpreted raise a warning: (H, W, 1), (H, W, 3) or (H, W, 4)
    without `channels_last`, (1, H, W), (3, H, W) or (4, H, W) with it, and rows of 64 values or
    more that form a square. `image_shape` silences the warning.

    uint8 images stay uint8 in memory; the network scales them from 0 ... 255 to 0 ... 1, one
    mini-batch at a time. Floats are used unchanged, and all other numbers are converted to float32.
    A model fitted on uint8 predicts from uint8 only, and one fitted on floats from floats only,
    because the range of the other type would be a guess. Floats that are far beyond the floats of a
    training on -1 ... 1, as 0 ... 255 are, raise a warning.

    A pickle holds the weights without the state of the optimizer; training after loading starts
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
    >>> model = CostSensitiveAuxCNN(channels=(8, 16), width=32, cost_matrix=cost_matrix,
    ...                             max_epochs=5, random_state=0).fit(X[:1000], y[:1000])
    >>> model.hidden_layers_
    ['conv1', 'conv2']
    >>> model.predict(X[1000:1003]).shape, model.predict_cost(X[1000:1003]).shape
    ((3,), (3, 10))
    >>> model.score(X[1000:], y[1000:]) > -1  # minus the mean cost
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ImageParameters._parameter_constraints,
        "channels": [COUNT, "array-like"],
        "width": [COUNT, "array-like"],
        "kernel_size": [COUNT, "array-like"],
        "pool_size": [COUNT, "array-like"],
        "head_input": [StrOptions({"mean", "flatten"})],
        "batch_norm": ["boolean"],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "dropout": [SHARE],
    }

    channels: int | Sequence[int] = (32, 64, 128)
    width: int | Sequence[int] = 256
    alpha: float | Sequence[float] = 0.2
    _: KW_ONLY
    kernel_size: int | Sequence[int] = 3
    pool_size: int | Sequence[int] = 2
    head_input: Literal["mean", "flatten"] = "mean"
    batch_norm: bool = True
    activation: str = "relu"
    dropout: float = 0.0
    n_networks: int | Literal["auto"] = 2
    learning_rate: float | Literal["auto"] = 3e-3
    patience: int | Literal["auto"] = 50

    def _make_inputs(self, X: Any) -> ImagePreprocessor:
        parameters = self.image_shape, self.channels_last, self.augmentation
        return ImagePreprocessor(*parameters, convolved=True)

    def _make_module(self, inputs: Any, rows: Any, n_outputs: int) -> tuple[AuxCNN, list[float]]:
        images = inputs.make_module()
        layers = self._layers()
        *_, height, width = images.out_shape
        pooled = prod(layers["pool_size"])
        are_images = self.image_shape is not None or len(inputs.shape) > 1
        if are_images and (1 < height < pooled or 1 < width < pooled):
            raise ValueError(
                f"pool_size={self.pool_size!r} in {len(layers['pool_size'])} convolution blocks "
                f"divides height and width by {pooled}, which leaves nothing of images of {height} "
                f"x {width} pixels. Use fewer blocks (channels), or pool_size=1 in some of them."
            )
        head_layers, weights = layers_with_head(
            self.alpha,
            len(layers["channels"]) + len(layers["width"]) - 1,
            layers="convolution block and dense layer but the last",
        )
        module = AuxCNN(
            images,
            n_outputs,
            head_layers=head_layers,
            head_input=self.head_input,
            batch_norm=self.batch_norm,
            activation=self.activation,
            dropout=self.dropout,
            **layers,
        )
        return module, weights

    def _layers(self) -> dict[str, list[int]]:
        """Sizes of all layers, block by block and dense layer by dense layer."""
        layers = {
            name: np.atleast_1d(getattr(self, name)).tolist() for name in ("channels", "width")
        }
        n_blocks = len(layers["channels"])
        if n_blocks == 0:
            raise ValueError(
                f"channels={self.channels!r} is empty; expected the channels of at least one "
                "convolution block. For dense layers alone use CostSensitiveAuxMLP."
            )
        for name in ("kernel_size", "pool_size"):
            value = getattr(self, name)
            layers[name] = per_layer(value, n_blocks, name=name, layers="convolution block")
        for name, values in layers.items():
            check_each(values, name=name, interval=COUNT)
        return layers
