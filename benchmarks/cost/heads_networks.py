"""Networks of several kinds for `bench_heads`, as users bring them, and the data they train on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


class PlainCNN(nn.Module):
    """Convolutions of three pixels without shortcuts, perhaps with batch normalisation."""

    def __init__(
        self, input_shape: Sequence[int], n_outputs: int, depth: int, width: int, norm: bool
    ) -> None:
        super().__init__()
        n_channels, size = input_shape[0], min(input_shape[1:])
        n_poolings = size.bit_length() - 2  # 8 pixels become 2, 16 become 2
        pooled = {(i + 1) * depth // (n_poolings + 1) for i in range(n_poolings)}
        layers: list[nn.Module] = []
        for i in range(depth):
            n_maps = width * (1 if n_channels == 1 or i < depth // 3 or width < 24 else 2)
            layers.append(nn.Conv2d(n_channels, n_maps, 3, padding=1))
            layers += [nn.BatchNorm2d(n_maps)] * norm + [nn.ReLU()]
            n_channels = n_maps
            if i in pooled:
                layers.append(nn.MaxPool2d(2))
                size //= 2
        self.body = nn.Sequential(*layers)
        self.output = nn.Linear(n_channels * size**2, n_outputs)

    def forward(self, x: Tensor) -> Any:
        return self.output(self.body(x).flatten(1))


class Perceptron(nn.Module):
    """Fully connected layers of one width."""

    def __init__(self, input_shape: Sequence[int], n_outputs: int, depth: int, width: int = 128):
        super().__init__()
        layers: list[nn.Module] = [nn.Flatten()]
        n = int(torch.Size(input_shape).numel())
        for _ in range(depth):
            layers += [nn.Linear(n, width), nn.ReLU()]
            n = width
        self.layers = nn.Sequential(*layers, nn.Linear(n, n_outputs))

    def forward(self, x: Tensor) -> Any:
        return self.layers(x)


class FCN(nn.Module):
    """Three convolutions over time, with normalisation, and the mean over the steps."""

    def __init__(
        self, input_shape: Sequence[int], n_outputs: int, widths: Sequence[int] = (32, 64, 32)
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for n, n_maps, k in zip([input_shape[0], *widths], widths, (7, 5, 3)):
            layers += [nn.Conv1d(n, n_maps, k, padding=k // 2), nn.BatchNorm1d(n_maps), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.output = nn.Linear(widths[-1], n_outputs)

    def forward(self, x: Tensor) -> Any:
        return self.output(self.layers(x).mean(dim=-1))


class DilatedBlock(nn.Module):
    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.filter, self.gate = (
            nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation) for _ in range(2)
        )
        self.narrow = nn.Conv1d(width, width, 1)

    def forward(self, x: Tensor) -> Any:
        return x + self.narrow(torch.tanh(self.filter(x)) * torch.sigmoid(self.gate(x)))


class Dilated(nn.Module):
    """Gated, dilated convolutions with shortcuts, as in WaveNet."""

    def __init__(
        self, input_shape: Sequence[int], n_outputs: int, depth: int = 5, width: int = 16
    ) -> None:
        super().__init__()
        self.first = nn.Conv1d(input_shape[0], width, 1)
        self.blocks = nn.ModuleList(DilatedBlock(width, 2**i) for i in range(depth))
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(width, 2 * width, 1), nn.ReLU())
        self.output = nn.Linear(2 * width, n_outputs)

    def forward(self, x: Tensor) -> Any:
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.output(self.last(x).mean(dim=-1))


class PointNet(nn.Module):
    """Layers applied to each point (x, y, value, whether there is one), and their maximum."""

    def __init__(self, input_shape: Sequence[int], n_outputs: int, width: int = 32) -> None:
        super().__init__()
        sizes = [input_shape[1] - 1, width, width, 2 * width]
        layers: list[nn.Module] = []
        for n, n_maps in zip(sizes, sizes[1:]):
            layers += [nn.Conv1d(n, n_maps, 1), nn.BatchNorm1d(n_maps), nn.ReLU()]
        self.points = nn.Sequential(*layers)
        self.dense = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Dropout(0.1))
        self.output = nn.Linear(width, n_outputs)

    def forward(self, x: Tensor) -> Any:
        missing = x[:, None, :, -1] == 0
        x = self.points(x[:, :, :-1].transpose(1, 2)).masked_fill(missing, -1e4).amax(dim=-1)
        return self.output(self.dense(x))


class GIN(nn.Module):
    """A graph isomorphism network on padded graphs: nodes, adjacency, and which nodes exist."""

    def __init__(self, n_outputs: int, n_inputs: int = 3, width: int = 32, depth: int = 3) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(n, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
            for n in [n_inputs] + [width] * (depth - 1)
        )
        self.output = nn.Linear(width, n_outputs)

    def forward(self, nodes: Tensor, adjacency: Tensor, exists: Tensor) -> Any:
        neighbours, exists = adjacency.to(nodes.dtype), exists.to(nodes.dtype).unsqueeze(-1)
        for layer in self.layers:
            nodes = layer(nodes + neighbours @ nodes) * exists
        return self.output(nodes.sum(dim=1) / exists.sum(dim=1).clamp(min=1))


class Mixture(nn.Module):
    """Convolutions on an image and layers on a table, joined."""

    def __init__(self, n_outputs: int, n_columns: int = 6, width: int = 32) -> None:
        super().__init__()
        self.of_image = nn.Sequential(
            *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()),
        )
        self.of_table = nn.Sequential(
            nn.Linear(n_columns, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.both = nn.Sequential(
            nn.Linear(128 + width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.output = nn.Linear(width, n_outputs)

    def forward(self, image: Tensor, table: Tensor) -> Any:
        both = torch.cat([self.of_image(image), self.of_table(table)], dim=1)
        return self.output(self.both(both))


class FTTransformer(nn.Module):
    """Attention between the columns of a table, each a token."""

    def __init__(
        self, input_shape: Sequence[int], n_outputs: int, width: int = 32, depth: int = 3
    ) -> None:
        super().__init__()
        self.scale = nn.Parameter(0.1 * torch.randn(input_shape[0], width))
        self.shift = nn.Parameter(0.1 * torch.randn(input_shape[0], width))
        self.summary = nn.Parameter(0.1 * torch.randn(1, 1, width))
        self.blocks = nn.ModuleList(encoder_layer(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, n_outputs)

    def forward(self, x: Tensor) -> Any:
        x = x.unsqueeze(-1) * self.scale + self.shift
        x = torch.cat([self.summary.expand(len(x), -1, -1), x], dim=1)
        for block in self.blocks:
            x = block(x)
        return self.output(self.norm(x[:, 0]))


class TextTransformer(nn.Module):
    """A small transformer that is trained from scratch."""

    def __init__(
        self,
        n_outputs: int,
        n_tokens: int = 2048,
        width: int = 64,
        depth: int = 3,
        length: int = 20,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, width)
        self.position = nn.Parameter(0.1 * torch.randn(1, length, width))
        self.blocks = nn.ModuleList(encoder_layer(width) for _ in range(depth))
        self.output = nn.Linear(width, n_outputs)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        x = self.embedding(input_ids) + self.position[:, : input_ids.shape[1]]
        for block in self.blocks:
            x = block(x, src_key_padding_mask=attention_mask == 0)
        weight = attention_mask.to(x.dtype).unsqueeze(-1)
        return self.output((x * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1))


class TextLSTM(nn.Module):
    """Two recurrent layers over the tokens, and the mean of their steps."""

    def __init__(self, n_outputs: int, n_tokens: int = 2048, width: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, width)
        self.first = nn.LSTM(width, width, batch_first=True)
        self.second = nn.LSTM(width, width, batch_first=True)
        self.output = nn.Linear(width, n_outputs)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        x, _ = self.first(self.embedding(input_ids))
        x, _ = self.second(x)
        weight = attention_mask.to(x.dtype).unsqueeze(-1)
        return self.output((x * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1))


def encoder_layer(width: int) -> nn.TransformerEncoderLayer:
    """A block of attention, with normalisation before it."""
    return nn.TransformerEncoderLayer(
        width, 4, 2 * width, 0.1, activation="gelu", batch_first=True, norm_first=True
    )
