"""CostSensitiveAuxCNN: the convolutional network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from .._checks.calls import inherit_docs
from .._inputs.arrays import ImagePreprocessor
from .._training.plan import NetworkFacts, Plan
from ..modules import ResidualCNN
from ..modules.wrapping import MirroredNetwork
from .base import BaseCostSensitiveNet
from .parameters import COUNT, ImageParameters, check_each, layers_with_head


@inherit_docs(ImageParameters, BaseCostSensitiveNet)
@dataclass(eq=False, repr=False)
class CostSensitiveAuxCNN(ImageParameters, BaseCostSensitiveNet):
    """Residual network on images that estimates costs, with auxiliary cost heads (AuxCST).

    The network is a :class:`~auxcst_sklearn.modules.ResidualCNN`: stages of a convolution, max
    pooling and residual blocks. It has one output per class. Every residual block but the last has
    an auxiliary head, which reads the means of its maps. All are trained jointly on ``sum_i alpha_i
    L_i + L_output``. Whether they learn costs or class probabilities depends on `loss`. The
    prediction is the class with the smallest estimated cost.

    Parameters
    ----------
    channels : int or array-like of shape (n_stages,), default=(32, 64, 128)
        Number of maps in each stage. Max pooling in each stage halves sides of 6 pixels or more.
    depth : int, default=1
        Number of residual blocks in each stage.
    alpha : float or array-like of shape (n_stages * depth - 1,), default=0.03
        Weight of each auxiliary loss, from the first block on. Blocks with weight 0 have no head.
        ``alpha=0`` is the plain network.
    combine_heads : bool, default=True
        Whether the probabilities are a weighted geometric mean over output and heads. The weights
        minimise the log loss of validation samples. If this log loss is not lower than with the
        output alone by more than a standard error, the output predicts alone.
    image_shape : array-like of shape (3,), default=None
        Shape of an image, (C, H, W), or (H, W, C) with `channels_last`, if X contains flattened
        images, such as from another transformer. If None, the shape of X.
    n_networks : int, default=1
        Number of averaged networks, each with its own validation samples. Two networks take twice
        the time.
    validation_fraction : float, default=0.1
        Fraction of the samples that are validation samples of a network. They determine the
        temperature, and with `early_stopping` the best epoch.

    Attributes
    ----------
    image_shape_ : tuple of int
        (C, H, W) of the network's input images.
    hidden_layers_ : list of str
        Names of the residual blocks that have an auxiliary head: "stage1.block1" ...
    net_ : skorch.NeuralNet
        The trained net. Its torch module is ``net_.module_``. The networks of the module are
        ``net_.module_.networks``.
    n_features_in_ : int
        Number of features. For images it is ``X.shape[1]``, as in scikit-learn.

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
    alpha: float | Sequence[float] = 0.03
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

    def _make_module(
        self, plan: Plan, inputs: Any, rows: Any, n_outputs: int
    ) -> tuple[MirroredNetwork, list[float]]:
        channels = np.atleast_1d(np.asarray(self.channels)).tolist()
        if not channels:
            raise ValueError("channels is empty; expected the channels of at least one stage.")
        check_each(channels, name="channels", interval=COUNT)
        images = inputs.make_module()
        body = ResidualCNN(images.out_shape, channels=channels, depth=self.depth)
        *names, _ = body.hidden_layers
        with_head, weights = layers_with_head(
            self.alpha, len(names), layers="residual block but the last"
        )
        layers = [names[i] for i in with_head]
        return MirroredNetwork(images, body, n_outputs, hidden_layers=layers), weights
