"""Early stopping of a stack, on a net that only counts epochs."""

import numpy as np
import pytest
import torch

from auxcst_sklearn._training.plan import RATES
from auxcst_sklearn._training.schedule import LEAST, EarlyStopping, Plateaus
from tests.factories import small_mlp
from tests.training.stopping import stop_at


class Net:
    """Networks whose weights are the number of the epoch; every other one sees bins."""

    def __init__(self, n_networks):
        self.bin_masks = [torch.arange(n_networks).view(-1, 1, 1) % 2.0]
        self.weight = torch.zeros(n_networks, 3)
        group = {"params": [self.weight], "lr": 1.0, "initial_lr": 1.0}
        self.optimizer_ = torch.optim.SGD([group])
        self.module_ = self

    def weights(self):
        return [[of_one] for of_one in self.weight]

    def own_modules(self):
        return [[] for _ in self.weight]


def run(costs, patience):
    """The epochs of the weights that are restored, and the last epoch."""
    net = Net(2)
    stop = EarlyStopping(net, patience)
    for epoch, values in enumerate(costs, start=1):
        net.weight.fill_(epoch)
        stop.update(np.array(values))
        if not stop.running:
            break
    stop.restore()
    return net.weight[:, 0].tolist(), epoch


def test_each_network_keeps_its_own_best_epoch():
    assert run([[3, 1], [2, 2], [4, 3], [5, 4]], patience=9) == ([2, 1], 4)


def test_training_ends_when_no_network_has_improved():
    costs = [[3, 1], [2, 2], [4, 3], [5, 0], [1, 0], [1, 0], [1, 0]]

    assert run(costs[:4], patience=2) == ([2, 4], 4)
    assert run(costs, patience=2) == ([5, 4], 7)


def test_equal_costs_are_no_progress():
    assert run([[1, 1]] * 9, patience=3) == ([1, 1], 4)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_costs_that_are_not_finite_are_no_progress(bad):
    assert run([[1, bad], [bad, 1], [bad, bad]], patience=5) == ([1, 2], 3)


def test_without_an_epoch_the_weights_stay():
    net = Net(2)
    EarlyStopping(net, 3).restore()

    assert net.weight.sum() == 0


def test_a_callback_that_interrupts_at_the_end_does_not_keep_the_best_weights_away(problem):
    stopping = {"early_stopping": True, "validation_fraction": 0.5, "patience": 3}
    parameters = {**stopping, "max_epochs": 30, "learning_rate": 0.1, "schedule": "constant"}

    plain = small_mlp(**parameters).fit(problem.X, problem.y)
    ended = small_mlp(**parameters, callbacks=[stop_at("on_train_end")])
    ended.fit(problem.X, problem.y)

    assert len(plain.history_) < 30
    np.testing.assert_array_equal(ended.predict_cost(problem.X), plain.predict_cost(problem.X))


@pytest.mark.parametrize("n_networks", [1, 2])
@pytest.mark.parametrize("n_epochs", [1, 2])
def test_the_epoch_after_which_a_callback_ends_the_training_counts(problem, n_networks, n_epochs):
    parameters = {"n_networks": n_networks, "early_stopping": True, "schedule": "constant"}
    plain = small_mlp(**parameters, max_epochs=n_epochs).fit(problem.X, problem.y)
    ended = small_mlp(**parameters, max_epochs=9, callbacks=[stop_at("on_epoch_end", n_epochs)])
    ended.fit(problem.X, problem.y)

    assert len(ended.history_) == n_epochs
    np.testing.assert_array_equal(ended.predict_cost(problem.X), plain.predict_cost(problem.X))


def test_a_training_that_ends_before_an_evaluation_keeps_its_steps(problem):
    start, step = (
        small_mlp(early_stopping=True, callbacks=[stop_at(method)]).fit(problem.X, problem.y)
        for method in ("on_batch_begin", "on_batch_end")
    )

    assert start.history_ == step.history_ == []
    assert not torch.equal(start.net_.module_.output.weight, step.net_.module_.output.weight)


def run_plateaus(costs, patience):
    """The rates of the epochs, and whether the training goes on, after each epoch."""
    net = Net(len(costs[0]))
    stop = Plateaus(net, patience, RATES)
    rates, running = [], []
    for values in costs:
        stop.update(np.array(values))
        rates.append(net.optimizer_.param_groups[0]["lr"])
        running.append(stop.running)
    return rates, running


def test_the_rate_is_lowered_on_plateaus_and_training_ends_on_the_third():
    costs = [[4, 4], [2, 4], [3, 3], [3, 3], [1, 1], [1, 1], [1, 1], [1, 1], [1, 1]]

    rates, running = run_plateaus(costs, 2)

    # Means 4, 3, 3, 3 (a plateau), 1, 1, 1 (the second), 1, 1 (the last).
    assert rates == [rate for rate in RATES for _ in range(3)]
    assert running == [True] * 8 + [False]


def test_a_smaller_improvement_than_a_thousandth_is_none():
    slow = [[1 - 0.4 * LEAST * epoch] for epoch in range(6)]

    rates, _ = run_plateaus(slow, 2)

    # Two epochs are 0.8 thousandths; the third is an improvement.
    assert rates == [1, 1, *[RATES[1]] * 3, RATES[2]]


def test_costs_may_be_negative():
    assert run_plateaus([[-1], [-2], [-2], [-3]], 1)[0] == [1, 1, RATES[1], RATES[1]]


@pytest.mark.parametrize(("errors", "harm"), [([0.4, 0.3, 0.0], True), ([0.4, 0.5, 0.0], False)])
def test_where_bins_harm_networks_lose_them_on_a_plateau_and_keep_the_rate(errors, harm):
    net = Net(3)
    stop = Plateaus(net, 1, RATES)
    rates = []
    for _ in range(3):  # The second epoch is a plateau; so is the third, unless bins were lost.
        stop.update(np.array([1, 1.8, 1]), np.array(errors))
        rates.append(net.optimizer_.param_groups[0]["lr"])

    # The difference is .8; its error is that of a mean of two and of one network.
    assert net.bin_masks[0].flatten().tolist() == [0, not harm, 0]
    assert rates == ([1, 1, 1] if harm else [1, *RATES[1:]])
