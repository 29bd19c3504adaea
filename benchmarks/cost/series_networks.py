"""Networks on time series for `bench_series`, as users bring them; each takes (n, channels, steps).

The widths are those of the papers divided by two or four, so that a training of 50 epochs takes a
minute or less.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class InceptionBlock(nn.Module):
    def __init__(self, n_in: int, n_filters: int) -> None:
        super().__init__()
        n_narrow = n_filters if n_in > 1 else 1
        self.narrow = nn.Conv1d(n_in, n_narrow, 1, bias=False) if n_in > 1 else nn.Identity()
        self.convolutions = nn.ModuleList(
            nn.Conv1d(n_narrow, n_filters, k, padding=k // 2, bias=False) for k in (39, 19, 9)
        )
        self.pool = nn.Sequential(nn.MaxPool1d(3, 1, 1), nn.Conv1d(n_in, n_filters, 1, bias=False))
        self.norm = nn.BatchNorm1d(4 * n_filters)

    def forward(self, x: Tensor) -> Tensor:
        narrow = self.narrow(x)
        parts = [*(convolution(narrow) for convolution in self.convolutions), self.pool(x)]
        return F.relu(self.norm(torch.cat(parts, dim=1)))


class Inception(nn.Module):
    """InceptionTime: blocks of convolutions of three lengths, with a shortcut around three."""

    def __init__(
        self, input_shape: Sequence[int], n_classes: int = 2, n_filters: int = 8, depth: int = 3
    ) -> None:
        super().__init__()
        width = 4 * n_filters
        sizes = [input_shape[0]] + [width] * depth
        self.blocks = nn.ModuleList(InceptionBlock(n, n_filters) for n in sizes[:-1])
        self.shortcuts = nn.ModuleList(
            nn.Sequential(nn.Conv1d(n, width, 1, bias=False), nn.BatchNorm1d(width))
            for n in sizes[:-3:3]
        )
        self.output = nn.Linear(width, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        start = x
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i % 3 == 2:
                x = start = F.relu(x + self.shortcuts[i // 3](start))
        return self.output(x.mean(dim=-1))


class ResidualBlock(nn.Module):
    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for n, k in ((n_in, 7), (n_out, 5), (n_out, 3)):
            layers += [nn.Conv1d(n, n_out, k, padding=k // 2), nn.BatchNorm1d(n_out), nn.ReLU()]
        self.body = nn.Sequential(*layers[:-1])
        self.shortcut = nn.Sequential(nn.Conv1d(n_in, n_out, 1), nn.BatchNorm1d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.shortcut(x))


class ResNet(nn.Module):
    """Three residual blocks of three convolutions."""

    def __init__(self, input_shape: Sequence[int], n_classes: int = 2, width: int = 16) -> None:
        super().__init__()
        sizes = [input_shape[0], width, 2 * width, 2 * width]
        self.blocks = nn.Sequential(*map(ResidualBlock, sizes[:-1], sizes[1:]))
        self.output = nn.Linear(sizes[-1], n_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.blocks(x).mean(dim=-1))


class LSTMFCN(nn.Module):
    """A recurrent branch over the steps beside three convolutions."""

    def __init__(
        self,
        input_shape: Sequence[int],
        n_classes: int = 2,
        hidden: int = 8,
        filters: Sequence[int] = (32, 64, 32),
    ) -> None:
        super().__init__()
        self.lstm = nn.LSTM(input_shape[0], hidden, batch_first=True)
        self.dropout = nn.Dropout(0.5)
        layers: list[nn.Module] = []
        for n, n_out, k in zip([input_shape[0], *filters], filters, (7, 5, 3)):
            layers += [nn.Conv1d(n, n_out, k, padding=k // 2), nn.BatchNorm1d(n_out), nn.ReLU()]
        self.convolutions = nn.Sequential(*layers)
        self.output = nn.Linear(hidden + filters[-1], n_classes)

    def forward(self, x: Tensor) -> Tensor:
        _, (last, _) = self.lstm(x.transpose(1, 2))
        parts = [self.dropout(last[-1]), self.convolutions(x).mean(dim=-1)]
        return self.output(torch.cat(parts, dim=1))


class Transformer(nn.Module):
    """Blocks of attention over patches of steps; the last steps are left out if they fill none."""

    def __init__(
        self,
        input_shape: Sequence[int],
        n_classes: int = 2,
        width: int = 32,
        depth: int = 2,
        n_patches: int = 16,
    ) -> None:
        super().__init__()
        n_in, n_steps = input_shape
        patch = max(1, n_steps // n_patches)
        self.patches = nn.Conv1d(n_in, width, patch, stride=patch)
        self.position = nn.Parameter(0.02 * torch.randn(1, n_steps // patch, width))
        block = nn.TransformerEncoderLayer(
            width, 4, 2 * width, 0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(block, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).transpose(1, 2) + self.position
        return self.output(self.norm(self.encoder(x)).mean(dim=1))


NETWORKS = {
    "Inception": Inception,
    "ResNet": ResNet,
    "LSTM-FCN": LSTMFCN,
    "transformer": Transformer,
}
