"""Networks of the kinds that users bring along."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class BasicBlock(nn.Module):
    """Two convolutions and a shortcut; one in-place ReLU, used twice."""

    def __init__(self, n_inputs, n_maps, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(n_inputs, n_maps, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_maps)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(n_maps, n_maps, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_maps)
        self.downsample = None
        if stride > 1:
            shortcut = nn.Conv2d(n_inputs, n_maps, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(n_maps))

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet18(nn.Module):
    """The residual network of 18 layers, with few channels."""

    def __init__(self, channels=(4, 4, 6, 8), n_classes=10):
        super().__init__()
        first = channels[0]
        self.conv1 = nn.Conv2d(3, first, 3, 2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(first)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        for i, (n_inputs, n_maps) in enumerate(zip((first, *channels), channels), start=1):
            blocks = [BasicBlock(n_inputs, n_maps, 1 + (i > 1)), BasicBlock(n_maps, n_maps, 1)]
            self.add_module(f"layer{i}", nn.Sequential(*blocks))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels[-1], n_classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class FunctionalNet(nn.Module):
    """Activations and dropout are functions in the forward."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3)
        self.conv2 = nn.Conv2d(4, 6, 3)
        self.fc1 = nn.Linear(24, 8)
        self.fc2 = nn.Linear(8, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = torch.flatten(F.relu(self.conv2(x)), 1)
        x = F.dropout(torch.tanh(self.fc1(x)), 0.5, training=self.training)
        return self.fc2(x)


@pytest.fixture
def resnet18():
    torch.manual_seed(0)
    return ResNet18()


@pytest.fixture
def functional_net():
    torch.manual_seed(0)
    return FunctionalNet()
