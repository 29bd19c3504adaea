"""Digests: equal for equal values, and others for others."""

from functools import partial
from pickle import PicklingError

import numpy as np
import pandas as pd
import pytest
import torch

from auxcst_sklearn._training.checkpoints import digest
from auxcst_sklearn.losses import CrossEntropy, Squared


class Noted(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)


class Double(torch.nn.Module):
    def forward(self, x):
        return 2 * x


def test_torch_wraps_methods_of_an_optimizer():
    before = digest(Noted)
    Noted([torch.ones(1)])
    assert digest(Noted) == before


def test_what_has_no_pickle_or_no_name_is_refused():
    with pytest.raises(PicklingError, match="not found as"):
        digest(lambda: 1)
    with pytest.raises(PicklingError, match="generator"):
        digest(i for i in range(3))


@pytest.mark.parametrize(
    ("first", "second", "other"),
    [
        ([[0.0, 1.0]], np.array([[0.0, 1.0]]), [[0.0, 2.0]]),
        (np.eye(3)[:2], np.asfortranarray(np.eye(3)[:2]), np.eye(3)[1:]),
        (0.2, np.float64(0.2), 0.3),
        ([[0, 1], 0.3], [[0, 1], 0.3], [[0, 1], 0.4]),
        (torch.ones(2), torch.ones(4)[:2], torch.zeros(2)),
        (torch.nn.Sequential(Double()), torch.nn.Sequential(Double()), torch.nn.Sequential()),
        (Squared, Squared, CrossEntropy),
        (CrossEntropy(), CrossEntropy(), Squared()),
        (partial(max, 1), partial(max, 1), partial(max, 2)),
        (np.sum, np.sum, np.max),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})),
    ],
)
def test_equal_values_have_equal_digests(first, second, other):
    assert digest(first) == digest(second) != digest(other)


class Named(np.ndarray):
    classes = decisions = None


def test_names_of_costs_count():
    plain, first, second, other = (np.eye(2).view(Named) for _ in range(4))
    first.decisions = second.decisions = np.array(["a", "b"])
    other.decisions = np.array(["b", "a"])

    assert digest(first) == digest(second)
    assert len({digest(plain), digest(first), digest(other)}) == 3
