import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from auxcst_sklearn.losses import LOSSES, SmoothOneSided, Softmin, Target
from tests.losses.formulas import problem, statistics

reals = st.floats(-100, 100)


@settings(deadline=None)
@given(
    outputs=arrays(float, (3, 4), elements=reals),
    cost=arrays(float, (3, 4), elements=st.floats(0, 100)),
)
def test_one_sided_loss_bounds_the_cost_of_the_prediction(outputs, cost):
    cost = cost - cost.min(axis=1, keepdims=True)
    label = torch.from_numpy(cost.argmin(axis=1))

    for name in ("one_sided", "smooth_one_sided"):
        loss = LOSSES[name](torch.from_numpy(outputs), Target(torch.from_numpy(cost), label))
        paid = cost[np.arange(3), outputs.argmin(axis=1)]
        assert (loss.numpy() >= paid - 1e-9).all()


@pytest.mark.parametrize("loss", [SmoothOneSided, Softmin])
@pytest.mark.parametrize("tau", [0, -1.0, float("nan")])
def test_a_smoothing_is_refused_that_is_not_positive(loss, tau):
    with pytest.raises(ValueError, match="tau must be positive"):
        loss(tau)


def test_softmin_estimates_have_the_mean_cost_as_level():
    stats, cost, _ = statistics()
    outputs = torch.from_numpy(problem()[0])

    estimate = Softmin().to_cost(outputs, stats)

    np.testing.assert_allclose(estimate.mean(dim=1).numpy(), cost.mean())
    assert torch.equal(estimate.argmin(dim=1), outputs.argmin(dim=1))
