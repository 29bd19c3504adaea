import numpy as np
import pytest

from auxcst_sklearn._training.loop import check_finite
from tests.factories import small_mlp, small_stack


def test_check_finite():
    check_finite([1.0, 2.0])
    for value in (np.inf, np.nan, 1e30):
        with pytest.raises(ValueError, match="Lower learning_rate.*StandardScaler"):
            check_finite([1.0, value])


def test_early_stopping_restores_the_epoch_of_the_smallest_held_out_cost(data):
    X, y = data
    cost = np.random.RandomState(0).uniform(size=(200, 3))
    parameters = {"early_stopping": True, "validation_fraction": 0.3, "learning_rate": 0.05}
    parameters |= {"schedule": "constant", "loss": "one_sided", "dropout": 0.0}
    estimator = small_mlp(patience=3, max_epochs=60, **parameters).fit(X, y, cost=cost)

    costs = [record["valid_cost"] for record in estimator.history_]
    best = int(np.argmin(costs))
    assert best < len(costs) - 1 == best + 3 < 59
    shorter = small_mlp(patience=60, max_epochs=best + 1, **parameters).fit(X, y, cost=cost)
    np.testing.assert_array_equal(estimator.predict_cost(X), shorter.predict_cost(X))


def test_verbose_prints_a_line_per_epoch(data, capsys):
    small_mlp(verbose=1).fit(*data)

    out = capsys.readouterr().out
    plan, head, *lines = out.splitlines()
    assert plan.startswith("Training: Plan(device='cpu', n_networks=1, batch_size=")
    assert head.split() == ["epoch", "train_loss", "at", "most", "left"]
    assert [line.split()[0] for line in lines] == ["1", "2", "3"]
    assert lines[-1].endswith("0:00:00")
    assert "\x1b" not in out  # colours are not for logs


def test_verbose_shows_the_cost_of_held_out_rows(data, capsys):
    model = small_stack(verbose=1, max_epochs=2).fit(*data)

    _, head, _, last = capsys.readouterr().out.splitlines()[:4]
    shown = dict(zip(head.split(), last.split()))
    record = model.history_[1]
    for name in ("train_loss", "valid_loss", "valid_cost", "valid_refinement"):
        assert float(shown[name]) == pytest.approx(record[name], rel=1e-4)
