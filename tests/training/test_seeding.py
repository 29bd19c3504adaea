import torch

from auxcst_sklearn._training.torch_modes import seeded


def test_a_seed_counts_within_its_context_only():
    before = torch.get_rng_state()
    with seeded(0):
        first = torch.rand(2)
        with seeded(1):
            torch.rand(3)
        second = torch.rand(2)
    with seeded(0):
        assert torch.equal(torch.rand(4), torch.cat([first, second]))

    assert torch.equal(torch.get_rng_state(), before)
