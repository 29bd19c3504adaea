"""The reference of the speed benchmark: what a user would write by hand in PyTorch.

Nothing of auxcst_sklearn is in use. The networks are those of `CostSensitiveAuxMLP` and
`CostSensitiveAuxCNN` with their default layers; `train` does what their `fit` does, and no more:
one loss per epoch is all that it keeps. Dropout and the schedule are torch's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.optim.lr_scheduler import OneCycleLR

Loss = Callable[[list[Tensor], Tensor], list[Tensor]]


class MLP(nn.Module):
    """Hidden layers, K outputs, and with `heads` K more on every hidden layer but the last."""

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        *,
        width: int,
        depth: int,
        heads: bool,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        sizes = [n_features, *[width] * depth]
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.output = nn.Linear(width, n_classes)
        n_heads = depth - 1 if heads else 0
        self.heads = nn.ModuleList(nn.Linear(width, n_classes) for _ in range(n_heads))
        self.dropout = dropout

    def activate(self, x: Tensor) -> Tensor:
        x = F.relu(x)
        return F.dropout(x, self.dropout, self.training) if self.dropout > 0 else x

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.hidden:
            x = self.activate(layer(x))
        return self.output(x)

    def forward_heads(self, x: Tensor) -> list[Tensor]:
        outputs = []
        for i, layer in enumerate(self.hidden):
            x = self.activate(layer(x))
            if i < len(self.heads):
                outputs.append(self.heads[i](x))
        return [*outputs, self.output(x)]


class Residual(nn.Module):
    """Two convolutions, whose output is added to the input."""

    def __init__(self, n_maps: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*convolution(n_maps, n_maps), *convolution(n_maps, n_maps))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x)


class CNN(nn.Module):
    """Three stages with a residual block each, on images of bytes; heads see all values."""

    def __init__(self, shape: tuple[int, int, int], n_classes: int, *, heads: bool) -> None:
        super().__init__()
        n_channels, *size = shape
        channels = [16, 32, 64, 128]
        self.normalize = nn.BatchNorm2d(n_channels, affine=False)
        self.first = nn.Sequential(*convolution(n_channels, channels[0]))
        self.stages = nn.ModuleList()
        sizes: list[int] = []
        for a, b in pairwise(channels):
            pools = min(size) >= 6
            pooling = nn.MaxPool2d(2) if pools else nn.Identity()
            layer, *rest = convolution(a, b)
            self.stages.append(nn.Sequential(layer, pooling, *rest, Residual(b)))
            size = [side // 2 for side in size] if pools else size
            sizes.append(b * size[0] * size[1])
        nn.Linear(channels[-1], 1)  # draws what the estimator draws for the layer that it replaces
        self.output = nn.Linear(channels[-1], n_classes)
        seen = sizes[:-1] if heads else []
        self.heads = nn.ModuleList(nn.Linear(n_values, n_classes) for n_values in seen)
        self.to(memory_format=torch.channels_last)

    def forward(self, x: Tensor) -> Tensor:
        return self._run(x, heads=[])[-1]

    def forward_heads(self, x: Tensor) -> list[Tensor]:
        return self._run(x, self.heads)

    def _run(self, x: Tensor, heads: Sequence[nn.Module] | nn.ModuleList) -> list[Tensor]:
        outputs, x = [], x.float() / 255
        x = self.first(self.normalize(x.contiguous(memory_format=torch.channels_last)))
        for i, stage in enumerate(self.stages):
            x = stage(x)
            if i < len(heads):
                outputs.append(heads[i](x.flatten(1)))
        return [*outputs, self.output(x.amax((2, 3)) / 4)]


def convolution(n_inputs: int, n_maps: int) -> list[nn.Module]:
    layer = nn.Conv2d(n_inputs, n_maps, 3, padding=1, bias=False)
    return [layer, nn.BatchNorm2d(n_maps), nn.ReLU()]


def make_loss(name: str, cost_matrix: Tensor, smoothing: float = 0.0) -> Loss:
    """Give a function of all heads' outputs and the labels: the mean loss of each head."""
    if name == "cross_entropy":
        return lambda outputs, y: [
            F.cross_entropy(r, y, label_smoothing=smoothing) for r in outputs
        ]
    cheapest = cost_matrix == cost_matrix.amin(dim=1, keepdim=True)
    sign = torch.where(cheapest, 1.0, -1.0)

    def one_sided(outputs: list[Tensor], y: Tensor) -> list[Tensor]:
        cost, z = cost_matrix[y], sign[y]
        return [F.relu(z * (r - cost)).sum(dim=1).mean() for r in outputs]

    return one_sided


def train(
    network: nn.Module,
    X: Tensor,
    label: Tensor,
    loss: Loss,
    *,
    epochs: int,
    batch_size: int,
    alpha: float = 0.2,
    rate: float = 3e-3,
    one_cycle: bool = False,
) -> list[float]:
    """Train on shuffled batches, and give the mean loss of each epoch."""
    optimizer = torch.optim.AdamW(network.parameters(), rate, weight_decay=1e-2, fused=True)
    scheduler = None
    if one_cycle:
        steps = epochs * -(-len(X) // batch_size)
        scheduler = OneCycleLR(optimizer, rate, steps, pct_start=0.1, cycle_momentum=False)
    history = []
    network.train()
    for _ in range(epochs):
        losses = []
        for index in torch.randperm(len(X)).to(X.device).split(batch_size):
            *aux, total = loss(network.forward_heads(X[index]), label[index])
            for part in aux:
                total = total + alpha * part
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            losses.append(total.detach())
        history.append(torch.stack(losses).mean().item())
    return history


@torch.inference_mode()
def predict(network: nn.Module, X: Tensor, cost_matrix: Tensor, *, loss: str) -> Tensor:
    """Indices of the classes with the smallest estimated cost."""
    network.eval()
    outputs = network(X)
    if loss == "cross_entropy":
        outputs = outputs.softmax(dim=1) @ cost_matrix
    return outputs.argmin(dim=1)
