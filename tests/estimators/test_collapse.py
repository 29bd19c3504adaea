"""A training whose predictions are all of one class, which is not the cheapest, warns."""

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification
from skorch.callbacks import Callback

from tests.factories import dense, small_mlp, small_net

X, Y = make_classification(400, 6, n_informative=4, n_classes=3, random_state=0)
COST = np.array([[0, 1, 1], [1, 0, 1], [10, 10, 0.0]])


class Spoil(Callback):
    """Makes class 0 the cheapest at the end of a training, as a rate that is too high may."""

    def on_train_end(self, net, **kwargs):
        net.module_.output.bias.data[0, :, 0] = torch.tensor([-1e6, 0, 0])


def test_a_failed_training_warns():
    model = small_mlp(loss="one_sided", cost_matrix=COST, callbacks=[Spoil()])
    told = "All predictions for the training rows are 0, at a mean .* always 2 would cost 0.6"
    with pytest.warns(UserWarning, match=told) as found:
        model.fit(X, Y)
    assert found[0].filename == __file__


@pytest.mark.filterwarnings("error")
def test_classes_that_take_turns_raise_no_alarm():
    rows = np.random.RandomState(1).randn(4000, 5)
    small_mlp(max_epochs=1).fit(rows, (np.arange(4000) % 4 == 0).astype(int))


@pytest.mark.parametrize(
    "matrix", [COST, COST - 9, COST + 9, [[0, 1, 1], [1, 0, 1], [1000, 1000, 0.0]]]
)
@pytest.mark.filterwarnings("error")
def test_one_that_chooses_well_does_not(matrix):
    small_mlp(max_epochs=8, cost_matrix=matrix).fit(X, Y)
    weight = (np.arange(400) == 1).astype(float)  # none of those that are looked at
    small_mlp(max_epochs=2, cost_matrix=matrix, loss="one_sided").fit(X, Y, weight)


class NoteRows(torch.nn.Sequential):
    """A module that notes the rows of each call in evaluation mode."""

    seen: list[int] = []

    def forward(self, x):
        if not self.training:
            self.seen.append(len(x))
        return super().forward(x)


def test_a_few_rows_suffice_if_they_get_two_decisions():
    known = {"alpha": 0, "max_epochs": 5, "temperature": 1.0, "pretrained": False}
    small_net(NoteRows(*dense(6, 16, 3)), **known).fit(X, Y)
    assert NoteRows.seen[-1] == 32
