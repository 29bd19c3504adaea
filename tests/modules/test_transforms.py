import re

import numpy as np
import pytest
import torch
from torch import nn

from auxcst_sklearn.modules import RandomFlipShift, SeededModule
from auxcst_sklearn.modules._images import TRANSFORMS
from tests.factories import small_cnn


def seeded(transform, seed=0):
    transform.generator = torch.Generator().manual_seed(seed)
    return transform


def reflected(index, size):
    """The index of a pixel in the image, whose border is a mirror."""
    return -index if index < 0 else 2 * (size - 1) - index if index >= size else index


def moved(image, flip, down, right):
    """The image, mirrored and moved, pixel by pixel; the gap reflects the image."""
    n_channels, height, width = image.shape
    result = np.zeros_like(image)
    for c in range(n_channels):
        for i in range(height):
            for j in range(width):
                row, column = reflected(i - down, height), reflected(j - right, width)
                result[c, i, j] = image[c, row, width - 1 - column if flip else column]
    return result


@pytest.mark.parametrize(("flip", "max_shift"), [(True, 0), (False, 1), (True, 1)])
def test_every_flip_and_shift_is_drawn_equally_often_and_nothing_else(flip, max_shift):
    image = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)
    shifts = range(-max_shift, max_shift + 1)
    candidates = [
        moved(image, mirrored, down, right)
        for mirrored in range(1 + flip)
        for down in shifts
        for right in shifts
    ]
    n = 400 * len(candidates)

    images = seeded(RandomFlipShift(flip=flip, max_shift=max_shift))(
        torch.from_numpy(image).expand(n, -1, -1, -1)
    ).numpy()

    counts = [(images == c).all(axis=(1, 2, 3)).sum() for c in candidates]
    assert sum(counts) == n
    assert min(counts) > 320  # 400 expected, with a standard deviation below 20
    assert max(counts) < 480


def test_the_images_of_a_batch_are_moved_independently_and_not_in_place():
    x = torch.rand(50, 1, 6, 6)
    before = x.clone()

    y = seeded(RandomFlipShift())(x)

    assert torch.equal(x, before)
    assert y.shape == x.shape
    assert y.dtype == x.dtype
    assert len({image.numpy().tobytes() for image in y}) == 50


def test_the_generator_alone_determines_the_images():
    x = torch.rand(20, 3, 8, 8)
    before = torch.get_rng_state()

    first, same, other = (seeded(RandomFlipShift(), seed)(x) for seed in (0, 0, 1))

    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_transform_of_ones_own_may_draw_from_the_generator():
    class Noise(SeededModule):
        def forward(self, x):
            return x + torch.empty_like(x).normal_(generator=self.generator)

    x = torch.zeros(2, 1, 4, 4)

    assert torch.equal(seeded(Noise())(x), seeded(Noise())(x))


def test_transforms_by_name():
    shifts = {name: (shift.flip, shift.max_shift) for name, shift in TRANSFORMS.items()}
    assert shifts == {"flip": (True, 0), "shift": (False, None), "flip_shift": (True, None)}


@pytest.mark.parametrize(("size", "most"), [((32, 40), 4), ((64, 64), 8), ((8, 8), 1), ((7, 9), 0)])
def test_images_are_shifted_by_an_eighth_of_the_smaller_side_by_default(size, most):
    rows = torch.arange(float(size[0])).view(1, 1, -1, 1).expand(2000, 1, *size)

    shifted = seeded(RandomFlipShift(flip=False))(rows) - rows

    middle = shifted[:, 0, size[0] // 2, 0]
    assert sorted(set(middle.tolist())) == list(range(-most, most + 1))


@pytest.mark.parametrize("given", ["flip", RandomFlipShift()])
def test_a_network_has_a_transform_of_its_own(given):
    X = np.random.default_rng(0).integers(0, 256, (24, 1, 8, 8), dtype=np.uint8)
    models = [small_cnn(augmentation=given).fit(X, np.arange(24) % 3) for _ in range(2)]
    one, other = (
        next(m for m in model.net_.module_.modules() if isinstance(m, RandomFlipShift))
        for model in models
    )
    assert one is not other
    assert given not in (one, other)


def test_bad_shifts():
    for shift in (-1, 1.5, float("nan"), "2", (1, 2)):
        with pytest.raises(ValueError, match=rf"max_shift is {re.escape(repr(shift))}; expected a"):
            RandomFlipShift(max_shift=shift)
    with pytest.raises(ValueError, match="max_shift=4 can move images of 3 x 8 pixels out of sigh"):
        RandomFlipShift(max_shift=4)(torch.zeros(1, 1, 3, 8))


def test_a_sequence_of_transforms_is_determined_by_random_state():
    X = np.random.default_rng(0).integers(0, 256, (24, 3, 8, 8), dtype=np.uint8)
    y = np.arange(24) % 3
    augmentation = nn.Sequential(RandomFlipShift(max_shift=0), RandomFlipShift(max_shift=1))

    def estimates(**parameters):
        torch.manual_seed(len(parameters))  # plays no part
        return small_cnn(channels=4, n_networks=2, **parameters).fit(X, y).predict_cost(X)

    first, same = estimates(augmentation=augmentation), estimates(augmentation=augmentation)
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, estimates())
