"""AlexNet, for images of ImageNet's size and for small ones."""

from __future__ import annotations

from torch import Tensor, nn

# Channel means and deviations of ImageNet's training images in [0, 1].
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class AlexNet(nn.Module):
    """Five convolution and two dense hidden layers, with the shapes of torchvision's AlexNet.

    In a :class:`~auxcst_sklearn.CostSensitiveAuxNet` it has H = 7 hidden layers, and 6 auxiliary
    heads.

    Parameters
    ----------
    n_classes : int, default=1000
        Number of outputs.
    small : bool, default=False
        For images of 32 to 64 pixels: the first convolution has 5 x 5 kernels with stride 1, rather
        than 11 x 11 kernels with stride 4, which need about 224 pixels; and the input of the dense
        layers has 3 x 3 values of each map rather than 6 x 6.
    width : int, default=4096
        Neurons of each dense hidden layer.
    dropout : float, default=0.5
        Probability of dropping an input of a dense hidden layer.
    normalize : bool, default=False
        Whether to shift and scale images in [0, 1] by the channel means and standard deviations of
        ImageNet.

    References
    ----------
    A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014,
    arXiv:1404.5997.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules import find_hidden_layers
    >>> from benchmarks.paper.alexnet_network import AlexNet
    >>> network = AlexNet(10, small=True, width=64)
    >>> network(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    >>> len(find_hidden_layers(network, (3, 32, 32)))
    7
    """

    def __init__(
        self,
        n_classes: int = 1000,
        *,
        small: bool = False,
        width: int = 4096,
        dropout: float = 0.5,
        normalize: bool = False,
    ) -> None:
        super().__init__()
        self.normalize = normalize
        size = 3 if small else 6
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 5, padding=2) if small else nn.Conv2d(3, 64, 11, 4, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, 5, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(size)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(256 * size**2, width),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(width, width),
            nn.ReLU(inplace=True),
            nn.Linear(width, n_classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (n_samples, n_classes) for images (n_samples, 3, height, width)."""
        if self.normalize:
            mean, std = (x.new_tensor(c).view(3, 1, 1) for c in (IMAGENET_MEAN, IMAGENET_STD))
            x = (x - mean) / std
        output: Tensor = self.classifier(self.avgpool(self.features(x)).flatten(1))
        return output
