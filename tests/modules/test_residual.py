import numpy as np
import pytest
import torch
from scipy.signal import correlate
from torch import nn

from auxcst_sklearn import CostSensitiveAuxNet
from auxcst_sklearn.modules import RandomFlipShift, ResidualCNN
from auxcst_sklearn.modules._images import BatchNorm, ImageLayer
from auxcst_sklearn.modules.wrapping import MirroredNetwork


def test_forward_agrees_with_an_independent_computation():
    net = ResidualCNN((2, 9, 8), 4, channels=(5, 6), depth=2).double().eval()
    rng = np.random.RandomState(0)
    with torch.no_grad():
        for part in net.modules():
            if isinstance(part, nn.BatchNorm2d):
                values = [*part.parameters(), part.running_mean, part.running_var]
                for value in values:
                    value.copy_(torch.from_numpy(rng.uniform(0.5, 2, len(value))))
    w = {name: values.numpy() for name, values in net.state_dict().items()}
    x = rng.normal(size=(3, 2, 9, 8))

    def normalized(x, name):
        mean, variance = (w[f"{name}.running_{part}"][:, None, None] for part in ("mean", "var"))
        return (x - mean) / np.sqrt(variance + 1e-5)

    def convolved(x, name, pooled=False):
        x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        kernels = w[f"{name}.0.weight"]
        x = np.array([[correlate(image, kernel, "valid")[0] for kernel in kernels] for image in x])
        if pooled:
            x = x[:, :, :8].reshape(len(x), -1, 4, 2, 4, 2).max((3, 5))
        norm = f"{name}.{2 if pooled else 1}"
        scale, shift = (w[f"{norm}.{part}"][:, None, None] for part in ("weight", "bias"))
        return np.maximum(normalized(x, norm) * scale + shift, 0)

    found = net(torch.from_numpy(x)).detach().numpy()

    x = convolved(normalized(x, "normalize"), "first.0")
    for stage in ("stage1", "stage2"):
        # The maps of 4 x 4 pixels are not pooled again.
        x = convolved(x, f"{stage}.convolution", pooled=stage == "stage1")
        for block in ("block1", "block2"):
            name = f"{stage}.{block}.layers"
            x = x + convolved(convolved(x, f"{name}.0"), f"{name}.1")
    expected = x.max((2, 3)) / 4 @ w["output.weight"].T + w["output.bias"]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((3, 8, 8), (4, 4)),
        ((1, 28, 28), (3, 3)),
        ((3, 128, 64), (4, 4)),
        ((3, 64, 65), (4, 4)),
        ((1, 1, 5000), (1, 4)),
        ((2, 1, 20), (1, 5)),
        ((5, 1, 1), (1, 1)),
    ],
)
def test_pooling_leaves_three_pixels_or_what_there_is(shape, size):
    net, sizes = ResidualCNN(shape, 2, channels=(2, 3, 4)).eval(), []
    net.stage3.register_forward_hook(lambda module, x, y: sizes.append(y.shape[1:]))

    assert net(torch.rand(3, *shape)).shape == (3, 2)
    assert sizes == [(4, *size)]


def test_hidden_layers_are_the_residual_blocks_and_can_have_heads():
    names = ResidualCNN((3, 8, 8), channels=(4, 8), depth=2).hidden_layers
    X, y = np.random.default_rng(0).normal(size=(40, 3, 8, 8)), np.arange(40) % 4
    sizes = {"module__channels": (4, 8), "module__depth": 2}
    model = CostSensitiveAuxNet(
        ResidualCNN, hidden_layers=names, max_epochs=1, random_state=0, **sizes
    ).fit(X, y)

    assert names == ("stage1.block1", "stage1.block2", "stage2.block1", "stage2.block2")
    assert model.hidden_layers_ == list(names)


def test_a_single_value_is_normalised_by_what_was_seen_before():
    norm = BatchNorm(2)
    norm(torch.rand(8, 2, 3, 3))
    mean, variance = norm.running_mean.clone(), norm.running_var.clone()
    x = torch.tensor([3.0, -1]).reshape(1, 2, 1, 1)

    found = norm(x)

    expected = (x.flatten() - mean) / (variance + norm.eps).sqrt()
    torch.testing.assert_close(found.flatten(), expected)
    assert torch.equal(norm.running_mean, mean)
    found.sum().backward()
    assert norm.bias.grad.tolist() == [1, 1]


def mirrored(augmentation, shape=(1, 6, 8)):
    torch.manual_seed(0)
    images = ImageLayer(shape, augmentation=augmentation)
    body = ResidualCNN(shape, channels=(4, 5))
    return MirroredNetwork(images, body, 3, hidden_layers=["stage1.block1"])


def test_outputs_are_means_over_mirror_images_where_training_mirrors():
    plain, mean = mirrored(None).eval(), mirrored(RandomFlipShift(max_shift=0)).eval()
    x = torch.rand(5, 1, 6, 8)

    found = mean.forward_heads(x)

    for one, other, output in zip(plain.forward_heads(x), plain.forward_heads(x.flip(3)), found):
        assert not torch.equal(one, other)
        torch.testing.assert_close(output, (one + other) / 2)
    torch.testing.assert_close(mean(x), found[-1])
    torch.testing.assert_close(mean(x.flip(3)), mean(x))


@pytest.mark.parametrize("augmentation", [RandomFlipShift(flip=False), nn.Identity()])
def test_other_augmentations_have_no_mirror_images(augmentation):
    x = torch.rand(5, 1, 6, 8)

    assert torch.equal(mirrored(augmentation).eval()(x), mirrored(None).eval()(x))


def test_training_sees_each_image_once():
    network, sizes = mirrored(RandomFlipShift(max_shift=0)), []
    network.body.register_forward_hook(lambda module, x, y: sizes.append(len(y)))

    assert network(torch.rand(5, 1, 6, 8)).shape == (5, 3)
    assert sizes == [5]
