"""Heads learn from the layers that they are named after, however a module runs them in training."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.checkpoint import checkpoint

from tests.factories import small_net

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 8)).astype(np.float32)
Y = (X[:, 0] * X[:, 1] > 0).astype(int)


class Deep(nn.Module):
    """Three layers, one activation for all, and what is done in addition, by `kind`."""

    def __init__(self, kind=None):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
        self.out, self.act, self.kind = nn.Linear(8, 2), nn.ReLU(), kind
        self.side, self.drop = nn.Linear(8, 8), nn.Dropout(0.3, inplace=kind == "in place")

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = self.step(i, layer, x)
        return self.out(x)

    def step(self, i, layer, x):
        return self.act(layer(x))


class Frozen(Deep):
    """Two layers are frozen, and run without gradients."""

    def __init__(self, kind=None):
        super().__init__(kind)
        self.layers[:2].requires_grad_(False)

    def step(self, i, layer, x):
        if i > 1 or self.kind is None:
            return self.act(layer(x))
        with torch.no_grad() if self.kind == "no_grad" else torch.inference_mode():
            x = self.act(layer(x))
        return x.clone()


class Checkpointed(Deep):
    def step(self, i, layer, x):
        block = nn.Sequential(layer, self.act)
        if not self.training or self.kind is None:
            return block(x)
        return checkpoint(block, x, use_reentrant=False)


class Shifted(Deep):
    """In training, functions of one name that run once more."""

    def step(self, i, layer, x):
        x = F.relu(layer(x))
        return F.relu(x - 0.1) if self.training else x


class InPlace(Deep):
    def step(self, i, layer, x):
        return self.drop(F.gelu(layer(x)))


def losses(module, **parameters):
    model = small_net(module, max_epochs=3, learning_rate=1e-2, **parameters).fit(X, Y)
    names = [f"train_loss_{name}" for name in model.hidden_layers_]
    assert len(names) == 3
    return [[record[name] for name in names] for record in model.history_]


@pytest.mark.parametrize(
    ("module", "kind"),
    [
        (Frozen, "no_grad"),
        (Frozen, "inference"),
        (Checkpointed, "checkpoint"),
        (InPlace, "in place"),
    ],
)
@pytest.mark.parametrize("head_input", ["mean", "flatten"])
def test_heads_learn_as_in_the_plain_network(module, kind, head_input):
    plain = losses(module, head_input=head_input)

    assert losses(module, module__kind=kind, head_input=head_input) == plain
    assert all(last < first for first, last in zip(plain[0], plain[-1]))


class Branch(Deep):
    """The activation runs once more in training, in a branch after the last layer."""

    def forward(self, x):
        out = super().forward(x)
        self.kept = self.act(self.side(x)) if self.training else None
        return out


def test_heads_of_skipped_functions_learn_nothing_from_a_step():
    class Skips(Deep):
        def step(self, i, layer, x):
            return x if self.training and i == 1 else F.relu(layer(x))

    first, *_, last = losses(Skips)

    # All calls of the name, whose numbers are shifted. Weight decay changes a few digits.
    assert first == pytest.approx(last, rel=1e-4)


def test_calls_that_cannot_be_told_are_an_error():
    with pytest.raises(ValueError, match="'act:4' cannot be told .* ran 5 times, but 4 times in"):
        small_net(Branch, hidden_layers=["act:4"]).fit(X, Y)
    with pytest.raises(ValueError, match=r"'relu\(\):1' cannot be told .* ran 8 times, but 4"):
        losses(Shifted)


@pytest.mark.parametrize("kind", ["cell", "functions"])
def test_the_last_step_of_a_cell_is_the_last_of_any_number(kind):
    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.cell = nn.Embedding(9, 8), nn.GRUCell(8, 8)
            self.inputs, self.state = nn.Linear(8, 8), nn.Linear(8, 8)
            self.dense, self.out = nn.Linear(8, 8), nn.Linear(8, 2)

        def encode(self, ids):
            h = torch.zeros(len(ids), 8)
            for x in self.embed(ids).unbind(1):
                new = torch.tanh(self.inputs(x) + self.state(h))
                h = self.cell(x, h) if kind == "cell" else new
            return h

        def forward(self, ids, attention_mask):
            return self.out(torch.relu(self.dense(self.encode(ids))))

    ids = RNG.integers(1, 9, (60, 12))
    name = "cell:12" if kind == "cell" else "tanh():12"
    given = {"ids": ids, "attention_mask": np.ones_like(ids)}
    model = small_net(Cell, hidden_layers=[name]).fit(given, ids[:, 0] > 4)
    (network,) = model.net_.module_.networks

    for n_steps in (1, 5, 12):
        short = {key: values[:, :n_steps] for key, values in given.items()}
        found = next(iter(model.staged_predict_cost(short)))
        with torch.no_grad():
            h = network.body.encode(torch.from_numpy(ids[:, :n_steps]))
            logits = network.heads["hidden1"](h).numpy()
        np.testing.assert_array_equal(found.argmin(axis=1), logits.argmax(axis=1))
