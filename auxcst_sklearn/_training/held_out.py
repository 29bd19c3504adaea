"""Class probabilities of the rows that networks have held out."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from .net import CostNet
from .rows import RowSets
from .runtime import neutral_torch_modes
from .training import Training
from .training_set import TrainingSet


def held_out_proba(training: Training, data: TrainingSet) -> NDArray[np.float64]:
    """Class probabilities (n_samples, K) by the networks that held a row out; NaN where none did.

    Rows so many that only a sample of them is evaluated have none.
    """
    counts, held_out = data.counts, training.held_out
    found = np.full((len(data.label), data.n_classes), np.nan)
    if held_out is not None and not training.rows.sets[0].in_blocks:
        found[counts] = _means(training.net, held_out, int(counts.sum()))
    return found


@torch.no_grad()
def _means(net: CostNet, held_out: RowSets, n_rows: int) -> NDArray[np.float64]:
    with neutral_torch_modes():
        batches = [net.probabilities(net.module_(x)) for x, _ in net.get_iterator(held_out)]
    of_sets = torch.cat(batches, dim=-2).double().cpu()
    of_sets = of_sets.reshape(len(held_out.sets), -1, of_sets.shape[-1])
    total = torch.zeros(n_rows, of_sets.shape[-1], dtype=torch.float64)
    count = torch.zeros(n_rows, dtype=torch.float64)
    for rows, probability in zip(held_out.sets, of_sets):
        index = torch.arange(len(rows)) if rows.index is None else rows.index.cpu()
        if rows.weight is not None:  # rows that pad a smaller part have none
            counts = rows.weight.cpu()[index] > 0
            index, probability = index[counts], probability[: len(counts)][counts]
        total.index_add_(0, index, probability[: len(index)])
        count.index_add_(0, index, torch.ones(len(index), dtype=torch.float64))
    mean: NDArray[np.float64] = (total / count.unsqueeze(1)).numpy()
    mean /= mean.sum(axis=1, keepdims=True)
    return mean
