import numpy as np
import pytest
import torch

from auxcst_sklearn.modules._images import ImageLayer


@pytest.fixture
def pixels():
    return np.random.RandomState(0).randint(256, size=(5, 3, 4, 6)).astype(np.uint8)


def test_bytes_become_floats_from_0_to_1(pixels):
    x = ImageLayer((3, 4, 6))(torch.from_numpy(pixels))

    assert x.dtype == torch.float32
    np.testing.assert_array_equal(x.numpy(), pixels.astype(np.float32) / np.float32(255))


def test_floats_are_taken_as_they_are(pixels):
    x = torch.from_numpy(pixels).double() - 100

    assert torch.equal(ImageLayer((3, 4, 6))(x), x)


def test_rows_get_their_shape_and_channels_come_first(pixels):
    channels_last = ImageLayer((4, 6, 3), channels_last=True)
    x = torch.from_numpy(pixels).float()
    moved = x.permute(0, 2, 3, 1).contiguous()

    assert torch.equal(ImageLayer((3, 4, 6))(x.flatten(1)), x)
    assert torch.equal(channels_last(moved), x)
    assert torch.equal(channels_last(moved.flatten(1)), x)
    assert channels_last.out_shape == (3, 4, 6)
    assert ImageLayer((3, 4, 6)).out_shape == (3, 4, 6)


def test_what_is_no_image_has_no_channels_to_move():
    rows = ImageLayer((7,), channels_last=True)

    assert rows.out_shape == (7,)
    assert rows(torch.zeros(2, 7)).shape == (2, 7)


def test_augmentation_is_for_training_only_and_sees_floats_with_channels_first(pixels):
    seen = []

    def negative(x):
        seen.append((x.dtype, tuple(x.shape)))
        return 1 - x

    images = ImageLayer((4, 6, 3), channels_last=True, augmentation=negative)
    x = torch.from_numpy(pixels.transpose(0, 2, 3, 1).copy())

    assert torch.equal(images(x), 1 - images.eval()(x))
    assert seen == [(torch.float32, (5, 3, 4, 6))]


def test_augmentation_must_keep_the_shape():
    images = ImageLayer((1, 4, 4), augmentation=lambda x: x[..., 1:])

    with pytest.raises(ValueError, match=r"shape \(2, 1, 4, 4\) into one of shape \(2, 1, 4, 3\)"):
        images(torch.zeros(2, 1, 4, 4))
