"""A stack against its networks alone; tests of `alpha_path` compare whole fits."""

import numpy as np
import pytest

from auxcst_sklearn._training.loop import Plan
from auxcst_sklearn._training.rows import RowSets
from auxcst_sklearn._training.training import train_together
from tests.factories import small_mlp


def trainings(problem, alphas=(0, 0.3), **parameters):
    """Trainings that have been built and not run."""
    built = []
    for alpha in alphas:
        model = small_mlp(alpha=alpha, **parameters)
        with model._fitting(resume=False):
            data = model._validate_training_set(
                problem.X, problem.y, problem.cost, None, None, resume=False
            )
            built.append(model._build(data, resume=False))
    return built


@pytest.mark.parametrize("schedule", ["constant", "one_cycle"])
def test_a_stack_trains_each_network_as_if_alone(problem, schedule):
    together, alone = trainings(problem), trainings(problem)
    plan = Plan(3, schedule)

    train_together(together, ["a", "b"], 1, plan)
    for training in alone:
        training.run(plan)

    X = problem.X
    for one, other in zip(together, alone, strict=True):
        (found,), (expected,) = one.net.predict_heads(X), other.net.predict_heads(X)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert [r["train_loss"] for r in one.net.history] == pytest.approx(
            [r["train_loss"] for r in other.net.history]
        )


def test_networks_that_have_stopped_are_no_longer_recorded(problem):
    stopping = {"early_stopping": True, "validation_fraction": 0.5, "learning_rate": 0.03}
    together = trainings(problem, (0, 1.0, 20.0), loss="one_sided", batch_size=8, **stopping)

    train_together(together, ["a", "b", "c"], 1, Plan(60, "constant", patience=2))

    lengths = [len(training.net.history) for training in together]
    assert len(set(lengths)) > 1
    for training in together:
        costs = [record["valid_cost"] for record in training.net.history]
        assert len(costs) == np.argmin(costs) + 1 + 2  # patience
        assert all(record["dur"] > 0 for record in training.net.history)


def test_a_stack_of_row_sets_gives_each_network_its_own_rows(problem):
    whole = trainings(problem, (0.3, 0.3))
    halves = [np.arange(0, 60, 2), np.arange(1, 60, 2)]
    alone = trainings(problem, (0.3, 0.3))
    for one, other, half in zip(whole, alone, halves, strict=True):
        for training in (one, other):
            training.rows = RowSets([rows.part(half) for rows in training.rows.sets])

    train_together(whole, ["a", "b"], 2, Plan(2, "constant"))
    for training in alone:
        training.run(Plan(2, "constant"))

    found = [training.net.predict_heads(problem.X)[0] for training in whole]
    expected = [training.net.predict_heads(problem.X)[0] for training in alone]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert not np.allclose(found[0], found[1], rtol=1e-2)


def test_the_network_that_diverges_is_named(problem):
    together = trainings(problem, (0.1, 1e10), optimizer="sgd", loss="squared")

    with pytest.raises(ValueError, match="With b: The training loss became infinite"):
        train_together(together, ["a", "b"], 1, Plan(3, "constant"))
