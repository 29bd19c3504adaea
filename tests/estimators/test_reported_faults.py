"""Faults that users of other packages reported, each as a kind that stays mended."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits, make_classification
from torch import nn
from torch.nn import functional as F  # noqa: N812

from auxcst_sklearn import CostSensitiveAuxMLP, CostSensitiveAuxNet
from auxcst_sklearn.losses import Loss
from auxcst_sklearn.modules import find_hidden_layers
from tests.factories import dense

COSTS = np.array([[0.0, 1, 4], [2, 0, 1], [6, 3, 0]])
SMALL = {"max_epochs": 3, "random_state": 0, "cost_matrix": COSTS}


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
    return X.astype(np.float32), y


@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_only_differences_within_a_row_of_costs_decide(problem, offset):
    X, y = problem
    model = CostSensitiveAuxMLP(width=8, **SMALL).fit(X, y)
    raised = COSTS + offset * np.arange(3)[:, np.newaxis]
    moved = CostSensitiveAuxMLP(width=8, **{**SMALL, "cost_matrix": raised}).fit(X, y)

    assert (model.predict(X) != moved.predict(X)).mean() < 0.01


def test_hidden_layers_are_found_with_an_array(problem):
    X, _ = problem
    assert find_hidden_layers(dense(6, 8, 8, 3), X[:2]) == ["1", "3"]


class Embedded(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 8, sparse=True)
        self.hidden = nn.Linear(8, 8)
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        return self.last(torch.relu(self.hidden(self.table(x).mean(dim=1))))


def test_sparse_embeddings_are_trained_with_sgd():
    rng = np.random.default_rng(0)
    X, y = rng.integers(20, size=(120, 5)), rng.integers(3, size=120)
    model = CostSensitiveAuxNet(Embedded, optimizer="sgd", weight_decay=0.0, **SMALL).fit(X, y)
    assert model.predict(X).shape == (120,)


class Shapeless(Loss):
    """A loss that returns one number for a batch."""

    def __call__(self, r, target):
        return ((r - target.cost) ** 2).mean()

    def to_cost(self, output, statistics):
        return output


def test_a_loss_of_a_wrong_shape_is_named(problem):
    X, y = problem
    with pytest.raises(ValueError, match=r"Shapeless.*expected"):
        CostSensitiveAuxMLP(width=8, loss=Shapeless(), **SMALL).fit(X, y)


class AlwaysDrops(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.last(F.dropout(torch.relu(self.first(x)), 0.5))  # training=True, also later


def test_outputs_that_are_random_in_evaluation_raise_a_warning(problem):
    X, y = problem
    with pytest.warns(UserWarning, match="training"):
        CostSensitiveAuxNet(AlwaysDrops, **SMALL).fit(X, y)


class ReadsItsHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Linear(6, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(torch.relu(self.first(x)).to(self.head.weight.dtype))


def test_an_error_says_that_the_last_layer_was_replaced(problem):
    X, y = problem
    with pytest.raises(ValueError, match="replace"):
        CostSensitiveAuxNet(ReadsItsHead, **SMALL).fit(X, y)


class OfTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = dense(6, 16, 16, 3)

    def forward(self, table):
        return self.layers(table)


def test_columns_among_named_arrays_are_compared_with_the_fit(problem):
    X, y = problem
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = CostSensitiveAuxNet(OfTable, **SMALL).fit({"table": frame}, y)

    with pytest.raises(ValueError, match="feature names|columns"):
        model.predict({"table": frame[list("fedcba")]})
    np.testing.assert_array_equal(model.predict({"table": frame}), model.predict({"table": frame}))


class Graph(nn.Module):
    """Nodes with as many features as positions, and their adjacency."""

    def __init__(self, n_features=9):
        super().__init__()
        self.first, self.last = nn.Linear(n_features, 16), nn.Linear(16, 3)

    def forward(self, x, adjacency, attention_mask):
        weight = attention_mask.to(x.dtype).unsqueeze(-1)
        hidden = torch.relu(self.first(adjacency @ x)) * weight
        return self.last(hidden.sum(dim=1) / weight.sum(dim=1).clamp(min=1))


@pytest.mark.parametrize("n_features", [5, 9])
def test_masks_beside_an_adjacency(n_features):
    rng = np.random.default_rng(0)
    lengths, n = rng.integers(3, 9, size=80), 80
    mask = (np.arange(9) < lengths[:, np.newaxis]).astype(np.int64)
    x = (rng.normal(size=(n, 9, n_features)) * mask[:, :, np.newaxis]).astype(np.float32)
    adjacency = (mask[:, :, np.newaxis] * mask[:, np.newaxis]).astype(np.float32)
    arrays = {"x": x, "adjacency": adjacency, "attention_mask": mask}
    y = rng.integers(3, size=n)
    known = {"module__n_features": n_features, "n_networks": 1, **SMALL}
    model = CostSensitiveAuxNet(Graph, **known).fit(arrays, y)

    # Whether some sample has the full length makes no difference to the others.
    some = {name: a[:20] for name, a in arrays.items()}
    np.testing.assert_allclose(
        model.predict_proba(some), model.predict_proba(arrays)[:20], atol=1e-5
    )


def test_one_hot_bytes_raise_a_warning_before_they_are_divided():
    digits = load_digits()
    X = (digits.images[:200, np.newaxis] > 8).astype(np.uint8)
    module = nn.Sequential(nn.Flatten(), *dense(64, 16, 10))
    with pytest.warns(UserWarning, match="astype"):
        CostSensitiveAuxNet(module, max_epochs=1, pretrained=False).fit(X, digits.target[:200])


class Paused(nn.Module):
    """Lets another thread do something in the middle of a prediction."""

    meanwhile = None

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 8)
        self.act, self.last = nn.ReLU(), nn.Linear(8, 3)

    def forward(self, x):
        x = self.act(self.first(x))
        if Paused.meanwhile is not None:
            do, Paused.meanwhile = Paused.meanwhile, None
            with ThreadPoolExecutor(1) as pool:
                pool.submit(do).result()
        return self.last(torch.relu(self.second(x)))


@pytest.mark.parametrize("what", ["pickle", "deepcopy", "to_module", "partial_fit"])
def test_a_model_is_copied_and_updated_while_another_thread_predicts(problem, what):
    X, y = problem
    model = CostSensitiveAuxNet(Paused, n_networks=1, **SMALL).fit(X, y)
    expected, found = [*model.staged_predict_cost(X[:40])], []
    copies = {
        "pickle": lambda: pickle.loads(pickle.dumps(model)),
        "deepcopy": lambda: copy.deepcopy(model),
        "to_module": model.to_module,
        "partial_fit": lambda: model.partial_fit(X, y),
    }
    Paused.meanwhile = lambda: found.append(copies[what]())

    during = [*model.staged_predict_cost(X[:40])]

    np.testing.assert_array_equal(during, expected)
    (made,) = found
    module = made if what == "to_module" else made.net_.module_
    assert not any(part._forward_hooks for part in module.modules())
    if what in ("pickle", "deepcopy"):
        np.testing.assert_array_equal([*made.staged_predict_cost(X[:40])], expected)
