"""The losses once more, in float64, example by example and class by class."""

from __future__ import annotations

import math

import numpy as np
import torch

from auxcst_sklearn.costs._statistics import CostStatistics
from auxcst_sklearn.losses import Target


def one_sided(r, c, label):
    return sum(max((rk - ck) if ck == min(c) else (ck - rk), 0) for rk, ck in zip(r, c))


def smooth_one_sided(r, c, label, tau=0.1):
    signs = [1 if ck == min(c) else -1 for ck in c]
    excess = [z * (rk - ck) / tau for z, rk, ck in zip(signs, r, c)]
    return tau * sum(math.log(1 + math.exp(x)) for x in excess)


def softmax(values):
    powers = [math.exp(v - max(values)) for v in values]
    return [p / sum(powers) for p in powers]


def softmin(r, c, label, tau=1.0):
    target = softmax([-ck / tau for ck in c])
    guess = softmax([-rk / tau for rk in r])
    return -sum(t * math.log(g) for t, g in zip(target, guess))


def squared(r, c, label):
    return sum((rk - ck) ** 2 for rk, ck in zip(r, c))


def cross_entropy(r, c, label, smoothing=0.0):
    p = softmax(r)
    target = [smoothing / len(r) + (1 - smoothing) * (k == label) for k in range(len(r))]
    return -sum(t * math.log(q) for t, q in zip(target, p))


def torch_problem():
    """Outputs and target of `problem`."""
    outputs, cost, label = map(torch.from_numpy, problem())
    return outputs, Target(cost, label)


def problem(n=6, n_classes=4, seed=0):
    """Outputs, costs with ties and with row minima of either sign, labels."""
    random = np.random.RandomState(seed)
    cost = random.uniform(0, 3, size=(n, n_classes))
    cost -= cost.min(axis=1, keepdims=True)
    cost[1, :2] = 0.0
    cost[2] += 1.5
    cost[3] -= 2.0
    cost[4] = 0.7
    outputs = random.normal(size=(n, n_classes))
    return outputs, cost, random.randint(n_classes, size=n)


def statistics():
    _, cost, label = problem()
    return CostStatistics.of(cost, label), cost, label
