import numpy as np
import pytest
import torch
from scipy.special import expit
from torch import nn
from torch.func import functional_call

from auxcst_sklearn.losses import Target
from auxcst_sklearn.modules import CostSensitiveAutoencoder

N, D, H, K = 6, 5, 4, 3


def make_autoencoder(beta=0.3, corruption=0.0):
    torch.manual_seed(0)
    encoder = nn.Linear(D, H)
    autoencoder = CostSensitiveAutoencoder(encoder, K, beta=beta, corruption=corruption)
    with torch.no_grad():
        autoencoder.decoder_bias.uniform_(-1, 1)
    return autoencoder.double()


def make_batch(weighted=False):
    rng = np.random.RandomState(0)
    label = rng.randint(K, size=N)
    cost = rng.uniform(0.5, 3, size=(N, K))
    cost[np.arange(N), label] = 0
    weight = torch.from_numpy(rng.uniform(0.5, 2, size=N)) if weighted else None
    target = Target(torch.from_numpy(cost), torch.from_numpy(label), weight)
    return torch.from_numpy(rng.uniform(size=(N, D))), target


def numpy_losses(autoencoder, x, target):
    """Mean reconstruction and cost loss, as the formulas say, by numpy alone."""
    state = {name: value.numpy() for name, value in autoencoder.state_dict().items()}
    x, cost = x.numpy(), target.cost.numpy()
    code = expit(x @ state["encoder.weight"].T + state["encoder.bias"])
    reconstruction = expit(code @ state["encoder.weight"] + state["decoder_bias"])
    entropy = -(x * np.log(reconstruction) + (1 - x) * np.log(1 - reconstruction)).sum(axis=1)
    estimate = code @ state["cost_head.weight"].T + state["cost_head.bias"]
    z = np.where(cost == cost.min(axis=1, keepdims=True), 1, -1)
    one_sided = np.log1p(np.exp(z * (estimate - cost))).sum(axis=1)
    weight = np.ones(N) if target.weight is None else target.weight.numpy()
    return np.array([(weight * entropy).mean(), (weight * one_sided).mean()])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_loss_is_that_of_the_formula(beta, weighted):
    autoencoder = make_autoencoder(beta)
    x, target = make_batch(weighted)
    expected = numpy_losses(autoencoder, x, target)
    losses = autoencoder.losses(x, target)
    np.testing.assert_allclose(losses.detach(), expected, rtol=1e-12)
    total = (1 - beta) * expected[0] + beta * expected[1]
    np.testing.assert_allclose(autoencoder.total(losses).item(), total, rtol=1e-12)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_gradient_of_the_loss(beta):
    autoencoder = make_autoencoder(beta)
    x, target = make_batch(weighted=True)
    names, values = zip(*autoencoder.named_parameters())

    class Total(nn.Module):
        def __init__(self):
            super().__init__()
            self.autoencoder = autoencoder

        def forward(self):
            return self.autoencoder.total(self.autoencoder.losses(x, target))

    def loss(*parameters):
        replaced = {f"autoencoder.{name}": value for name, value in zip(names, parameters)}
        return functional_call(Total(), replaced, ())

    assert torch.autograd.gradcheck(loss, values)


def test_weights_are_tied_and_shared_with_the_encoder():
    encoder = nn.Linear(D, H)
    autoencoder = CostSensitiveAutoencoder(encoder, K, beta=0.5, corruption=0)
    assert autoencoder.encoder is encoder
    shapes = {name: tuple(value.shape) for name, value in autoencoder.named_parameters()}
    assert shapes == {
        "decoder_bias": (D,),
        "encoder.weight": (H, D),
        "encoder.bias": (H,),
        "cost_head.weight": (K, H),
        "cost_head.bias": (K,),
    }


def test_corruption_zeroes_inputs_at_its_rate_and_keeps_the_others():
    autoencoder = make_autoencoder(corruption=0.25)
    x = torch.full((200, 100), 0.5)
    state = torch.get_rng_state()
    corrupted = [autoencoder.corrupt(x, torch.Generator().manual_seed(s)) for s in (0, 0, 1)]
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(corrupted[0], corrupted[1])
    assert not torch.equal(corrupted[0], corrupted[2])
    assert set(corrupted[0].unique().tolist()) == {0.0, 0.5}
    # four standard deviations of 20,000 draws
    assert (corrupted[0] == 0).double().mean().item() == pytest.approx(0.25, abs=0.0123)
    assert (x == 0.5).all()


def test_losses_compare_with_the_uncorrupted_input():
    autoencoder = make_autoencoder(beta=0.0, corruption=0.5)
    x, target = make_batch()
    loss = autoencoder.losses(x, target, torch.Generator().manual_seed(0))[0]
    logits, _ = autoencoder(autoencoder.corrupt(x, torch.Generator().manual_seed(0)))
    p = torch.sigmoid(logits).detach().numpy()
    x = x.numpy()
    expected = -(x * np.log(p) + (1 - x) * np.log(1 - p)).sum(axis=1).mean()
    assert loss.item() == pytest.approx(expected, rel=1e-12)
