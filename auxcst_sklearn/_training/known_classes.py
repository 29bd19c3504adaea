"""Probabilities of several models, of which some have not seen every class."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# The share of the models is a stationary distribution, found by squaring the steps so many times.
SQUARINGS = 10


def completed(p: Tensor, known: Tensor) -> Tensor:
    """Probabilities (M, n, K) by M models; those of classes that a model does not know, by others.

    A model that has not seen a class estimates probabilities given that it is another one. So they
    are multiplied by the probability, in the mean over all models, of the classes that it knows.
    """
    known = known.to(p).expand_as(p)
    share, p = known / known.sum(dim=0).clamp(min=1), p * known
    p = p / p.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(p.dtype).tiny)
    step = torch.einsum("mnk,jnk->nmj", share, p)
    for _ in range(SQUARINGS):
        step = step @ step
    weight = step.sum(dim=-1).t().unsqueeze(-1)
    mean = (share * weight * p).sum(dim=0)
    return torch.where(known > 0, weight * p, mean) / mean.sum(dim=-1, keepdim=True)


def mean_of_known(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean (n, K) of probabilities (M, n, K) that are NaN where unknown; NaN where all are."""
    p, known = np.nan_to_num(parts), np.isfinite(parts)
    if not (known == known.any(axis=2, keepdims=True)).all():
        p = completed(torch.from_numpy(p), torch.from_numpy(known)).numpy()
    with np.errstate(invalid="ignore"):  # 0 / 0
        mean: NDArray[np.float64] = p.sum(axis=0) / p.sum(axis=(0, 2))[:, np.newaxis]
    return mean
