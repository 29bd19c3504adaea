import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from auxcst_sklearn.losses import LOSSES, OneSided, Target

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


def test_one_sided_sign_is_plus_at_every_cheapest_class():
    target = Target(torch.tensor([[2.0, 2.0, 5.0]]), torch.tensor([0]))

    under = OneSided()(torch.tensor([[1.0, 0.0, 6.0]]), target)
    over = OneSided()(torch.tensor([[3.0, 2.5, 4.0]]), target)

    assert under.item() == 0.0
    assert over.item() == 1.0 + 0.5 + 1.0
