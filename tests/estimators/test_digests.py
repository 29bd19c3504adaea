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


class Times(torch.nn.Module):
    """A module with an attribute that is neither in its weights nor in its repr."""

    def __init__(self, factor=2.0):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x


class Shifted(Squared):
    """A loss that contains a tensor."""

    def __init__(self, shift):
        super().__init__()
        self.shift = torch.full((3,), shift)


def frame_with_a_cache():
    frame = pd.DataFrame(np.eye(2), list("ab"), list("ab"))
    frame.columns.get_loc("b")  # fills a cache that a pickle of the frame contains
    return frame


ROW = [0.0, 1.0]


def test_torch_wraps_methods_of_an_optimizer():
    before = digest(Noted)
    Noted([torch.ones(1)])
    assert digest(Noted) == before


def test_what_has_no_pickle_or_no_name_is_refused():
    with pytest.raises(PicklingError, match="<lambda>"):
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
        ([ROW, ROW], [list(ROW), list(ROW)], [ROW, [0.0, 2.0]]),
        (torch.nn.Sequential(Times()), torch.nn.Sequential(Times()), torch.nn.Sequential()),
        (Times(1.0), Times(1.0), Times(3.0)),
        (Shifted(1.0), Shifted(1.0), Shifted(2.0)),
        (Squared, Squared, CrossEntropy),
        (CrossEntropy(), CrossEntropy(), Squared()),
        (partial(max, 1), partial(max, 1), partial(max, 2)),
        (np.sum, np.sum, np.max),
        (frame_with_a_cache(), frame_with_a_cache().copy(), pd.DataFrame({"b": [1]})),
        (frame_with_a_cache(), pd.DataFrame(np.eye(2), ["a", "b"], ["a", "b"]), np.eye(2)),
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
