import threading

import pytest
import torch
from torch import nn

from auxcst_sklearn.modules.wrapping._listener import Listener


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.relu = nn.ReLU()

    def forward(self, x):
        return torch.tanh(self.relu(self.linear(self.relu(x))))


def listen(module, x, only=None):
    heard = []
    with Listener(module, lambda call, output, inputs: heard.append((call, output)), only):
        output = module(x)
    return heard, output


def test_submodules_and_functions_are_heard_in_order():
    heard, output = listen(Twice(), torch.ones(1, 2))

    assert [call for call, _ in heard] == [
        ("relu.relu()", 1),
        ("relu", 1),
        ("linear.linear()", 1),
        ("linear", 1),
        ("relu.relu()", 2),
        ("relu", 2),
        ("tanh()", 1),
    ]
    assert heard[-1][1] is output


@pytest.mark.parametrize(
    ("only", "expected"),
    [({"relu"}, [("relu", 1), ("relu", 2)]), ({"linear"}, [("linear", 1)]), (set(), [])],
)
def test_only_some_submodules(only, expected):
    heard, _ = listen(Twice(), torch.ones(1, 2), only)

    assert [call for call, _ in heard] == expected


def test_nothing_is_left_behind():
    module = Twice()

    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        listen(module, torch.ones(1, 5))

    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


def run_in_a_thread(module, x):
    thread = threading.Thread(target=module, args=(x,))
    thread.start()
    thread.join()


@pytest.mark.parametrize("compute", [lambda module, x: torch.relu(x), run_in_a_thread])
def test_what_the_hearer_computes_and_other_threads_are_not_heard(compute):
    module, x, calls = Twice(), torch.ones(1, 2), []

    def hear(call, output, inputs):
        calls.append(call)
        compute(module, x)

    with Listener(module, hear):
        module(x)

    assert calls == [call for call, _ in listen(module, x)[0]]
