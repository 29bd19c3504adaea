"""Bounded factors on the mean costs of the classes, and the expected costs that follow."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import torch
from torch import Tensor

# Factors on the mean costs lie within exp(-6) and exp(6).
LARGEST_LOG_FACTOR = 6.0

# With fewer classes, a factor is computed for each pair: few operations on few numbers.
MANY_CLASSES = 64

# A polynomial through this many nodes of an interval of this length approximates the factors to a
# relative 5e-7, about the rounding of float32. Wider ranges of values are split into intervals of
# the last length.
NODES_AND_LENGTHS = ((4, 0.35), (5, 0.75), (6, 1.3), (7, 1.9), (8, 2.6), (9, 3.4))


def bounded(h: Tensor) -> Tensor:
    """Logarithms of factors, bounded."""
    return LARGEST_LOG_FACTOR * torch.tanh(h / LARGEST_LOG_FACTOR)


def cost_matrices(cost: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The matrix ``cost_kj exp(bounded(a_j + b_k))`` of each row, (..., K, K)."""
    return cost * bounded(a.unsqueeze(-2) + b.unsqueeze(-1)).exp()


def expected_costs(p: Tensor, cost: Tensor, a: Tensor, b: Tensor, largest_table: int) -> Tensor:
    """Sum over the classes k of ``p_k cost_kj exp(bounded(a_j + b_k))``, for each row (n, K).

    This needs a factor for each pair of classes. With many classes most of the work is avoided:
    ``exp(bounded(a + b) - a / 2)`` is a smooth function of a, so that its sums over k are computed
    at a few values of a, as a matrix product, and interpolated. The number of values depends only
    on the row. At most `largest_table` numbers are computed at once.
    """
    n_classes = len(cost)
    if torch.compiler.is_compiling():  # for an ONNX file, in which nothing may depend on the rows
        return _sum(p, cost, a, b)
    if n_classes < MANY_CLASSES:
        rows = zip(*(x.split(max(1, largest_table // cost.numel())) for x in (p, a, b)))
        return torch.cat([_sum(p, cost, a, b) for p, a, b in rows])
    costs = torch.empty_like(a)
    for kind, rows_of_kind in _kinds(a):
        size = n_classes * (n_classes if kind is None else kind[0])
        for rows in rows_of_kind.split(max(1, largest_table // size)):
            parts = p[rows], cost, a[rows], b[rows]
            costs[rows] = _sum(*parts) if kind is None else _interpolate(*parts, *kind)
    return costs


def _kinds(a: Tensor) -> Iterator[tuple[tuple[int, int] | None, Tensor]]:
    """Numbers of nodes and of intervals, and the rows that need them; None for no polynomial."""
    lowest, highest = a.aminmax(dim=-1)
    nodes, lengths = zip(*NODES_AND_LENGTHS)
    length = highest - lowest
    n_intervals = (length / lengths[-1]).ceil().clamp(min=1)
    kind = torch.bucketize(length, a.new_tensor(lengths[:-1])) + (n_intervals - 1)
    no_gain = ~(2 * nodes[-1] * n_intervals <= a.shape[-1])  # also if a is NaN
    kind = kind.masked_fill(no_gain, -1).int()
    last = len(nodes) - 1
    for i in kind.unique().tolist():
        how = None if i < 0 else (nodes[min(i, last)], max(1, i - last + 1))
        yield how, (kind == i).nonzero().squeeze(-1)


def _sum(p: Tensor, cost: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The sums, with a factor for each pair of classes."""
    return (p.unsqueeze(-1) * cost_matrices(cost, a, b)).sum(dim=-2)


def _interpolate(p: Tensor, cost: Tensor, a: Tensor, b: Tensor, n_nodes: int, n: int) -> Tensor:
    """The sums, by Chebyshev polynomials in a over each of n intervals of equal length."""
    lowest, highest = a.aminmax(dim=-1, keepdim=True)
    half = (highest - lowest) / (2 * n)
    costs = torch.empty_like(a)
    for i in range(n):
        center = lowest + (2 * i + 1) * half
        values = _polynomial(p, cost, a, b, center, half, n_nodes)
        costs = values if i == 0 else torch.where(a < center - half, costs, values)
    return costs


def _polynomial(
    p: Tensor, cost: Tensor, a: Tensor, b: Tensor, center: Tensor, half: Tensor, n_nodes: int
) -> Tensor:
    """The sums, by one polynomial, which is valid within `half` of the centers."""
    nodes, transform = (values.to(a) for values in _chebyshev(n_nodes))
    offsets = (half * nodes).unsqueeze(-1)
    # bounded(h) = 6 - 12 / (1 + exp(h / 3)), whose powers are products
    rate = 2 / LARGEST_LOG_FACTOR
    powers = ((center + b) * rate).exp().unsqueeze(-2) * (offsets * rate).exp()
    # In place, because most of the time is spent on memory.
    factors = powers.add_(1).reciprocal_().mul_(-2 * LARGEST_LOG_FACTOR)
    factors.add_(LARGEST_LOG_FACTOR - offsets / 2).exp_().mul_(p.unsqueeze(-2))
    coefficients = transform @ factors
    sums = (coefficients.flatten(0, 1) @ cost).view_as(coefficients)
    t = ((a - center) / half.clamp(min=torch.finfo(a.dtype).tiny)).clamp(-1, 1)
    last = before = torch.zeros_like(t)
    for degree in range(n_nodes - 1, 0, -1):  # Clenshaw's recurrence
        last, before = torch.addcmul(sums[:, degree] - before, 2 * t, last), last
    return torch.addcmul(sums[:, 0] - before, t, last) * ((a - center) / 2).exp()


@cache
def _chebyshev(n: int) -> tuple[Tensor, Tensor]:
    """Nodes in [-1, 1], and the matrix from values at them to coefficients."""
    angles = (2 * np.arange(n) + 1) * np.pi / (2 * n)
    transform = np.cos(np.outer(np.arange(n), angles)) * 2 / n
    transform[0] /= 2
    return torch.from_numpy(np.cos(angles)), torch.from_numpy(transform)
