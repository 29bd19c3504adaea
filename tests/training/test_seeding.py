import torch

from auxcst_sklearn._training.runtime import seeded


def test_seeded_leaves_the_global_generator_alone():
    before = torch.get_rng_state()

    with seeded(3):
        first = torch.rand(4)
    with seeded(3):
        second = torch.rand(4)

    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_seeded_context_within_another():
    with seeded(0):
        first = torch.rand(2)
        with seeded(1):
            torch.rand(3)
        second = torch.rand(2)
    with seeded(0):
        assert torch.equal(torch.rand(4), torch.cat([first, second]))
