import numpy as np
import pytest
import torch
from scipy.signal import correlate

from auxcst_sklearn.modules import AuxNetwork
from auxcst_sklearn.modules._images import AuxCNN, BatchNorm, ImageLayer


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


def network(shape=(3, 8, 8), n_classes=4, **parameters):
    defaults = {
        "channels": [5, 6],
        "kernel_size": [3, 3],
        "pool_size": [2, 2],
        "width": [7],
        "head_layers": [0, 1],
    }
    return AuxCNN(ImageLayer(shape), n_classes, **{**defaults, **parameters})


def convolve(x, weight):
    """Cross-correlation with zeros around, image by image and map by map."""
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.array([[correlate(image, kernel, "valid")[0] for kernel in weight] for image in x])


def max_pool(x):
    n, c, h, w = x.shape
    return x[:, :, : h // 2 * 2, : w // 2 * 2].reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))


@pytest.mark.parametrize("head_input", ["mean", "flatten"])
def test_forward_agrees_with_an_independent_computation(head_input):
    net = network((2, 7, 6), head_input=head_input).double().eval()
    rng = np.random.RandomState(0)
    with torch.no_grad():
        for layer in (net.hidden["conv1"], net.hidden["conv2"]):
            for values in (*layer[1].parameters(), layer[1].running_mean, layer[1].running_var):
                values.copy_(torch.from_numpy(rng.uniform(0.5, 2, len(values))))
    w = {name: values.numpy() for name, values in net.state_dict().items()}
    x = rng.normal(size=(5, 2, 7, 6))

    def block(x, name):
        x = convolve(x, w[f"hidden.{name}.0.weight"])
        scale, shift, mean, variance = (
            w[f"hidden.{name}.1.{part}"][:, None, None]
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        x = (x - mean) / np.sqrt(variance + net.hidden[name][1].eps) * scale + shift
        return max_pool(np.maximum(x, 0))

    def head(x, name):
        maps = x.mean(axis=(2, 3)) if head_input == "mean" else x.reshape(len(x), -1)
        return maps @ w[f"heads.{name}.weight"].T + w[f"heads.{name}.bias"]

    conv1 = block(x, "conv1")
    conv2 = block(conv1, "conv2")
    dense1 = conv2.reshape(5, -1) @ w["hidden.dense1.1.weight"].T + w["hidden.dense1.1.bias"]
    output = np.maximum(dense1, 0) @ w["output.weight"].T + w["output.bias"]

    found = net.forward_heads(torch.from_numpy(x))

    for values, expected in zip(found, [head(conv1, "conv1"), head(conv2, "conv2"), output]):
        np.testing.assert_allclose(values.detach().numpy(), expected)
    assert torch.equal(net(torch.from_numpy(x)), found[-1])


def test_heads_stand_on_every_layer_that_is_named():
    net = network(channels=[5, 6], width=[7, 9], head_layers=[0, 1, 2])

    assert isinstance(net, AuxNetwork)
    assert net.layers == ("conv1", "conv2", "dense1", "output")
    assert [head.in_features for head in net.heads.values()] == [5, 6, 7]
    assert net.output.in_features == 9
    flat = network(head_layers=[0], head_input="flatten")
    assert flat.heads["conv1"].in_features == 5 * 4 * 4


def test_without_dense_layers_the_output_reads_the_last_block():
    net = network(width=[], head_layers=[0])

    assert net.layers == ("conv1", "output")
    assert net.output.in_features == 6 * 2 * 2
    assert net(torch.zeros(3, 3, 8, 8)).shape == (3, 4)


def test_networks_with_and_without_heads_start_alike():
    networks = []
    for head_layers in ([0, 1], []):
        torch.manual_seed(0)
        networks.append(network(head_layers=head_layers))
    with_heads, plain = networks

    for name, values in plain.state_dict().items():
        assert torch.equal(values, with_heads.state_dict()[name])


def test_start_at_sets_the_biases_of_all_heads():
    net = network(n_classes=2)

    net.start_at(torch.tensor([1.0, 2]), torch.tensor([3.0, 4]))

    assert net.output.bias.tolist() == [1, 2]
    assert [head.bias.tolist() for head in net.heads.values()] == [[3, 4], [3, 4]]


@pytest.mark.parametrize(
    ("shape", "pool_size", "size"),
    [((1, 1, 20), [2, 2], (1, 5)), ((1, 1, 1), [2, 2], (1, 1)), ((1, 7, 9), [1, 3], (2, 3))],
)
def test_pooling_leaves_at_least_one_pixel(shape, pool_size, size):
    net = network(shape, pool_size=pool_size, width=[], head_layers=[])

    maps = net.hidden["conv2"](net.hidden["conv1"](torch.rand(3, *shape)))

    assert maps.shape == (3, 6, *size)


@pytest.mark.parametrize("kernel_size", [1, 2, 5])
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
def test_convolutions_keep_the_size_of_the_maps(kernel_size):
    net = network(kernel_size=[kernel_size, 3], pool_size=[1, 1])

    assert net.hidden["conv1"](torch.rand(3, 3, 8, 8)).shape == (3, 5, 8, 8)


def test_batch_normalisation_and_dropout_can_be_chosen():
    def kinds(net):
        return [type(module).__name__ for layer in net.hidden.values() for module in layer]

    assert kinds(
        network(channels=[5], kernel_size=[3], pool_size=[2], dropout=0.1, head_layers=[])
    ) == [
        "Conv2d",
        "BatchNorm",
        "ReLU",
        "MaxPool2d",
        "Flatten",
        "Linear",
        "ReLU",
        "SeededDropout",
    ]
    plain = network(
        channels=[5],
        kernel_size=[3],
        pool_size=[1],
        batch_norm=False,
        activation="gelu",
        head_layers=[],
    )
    assert kinds(plain) == ["Conv2d", "GELU", "Flatten", "Linear", "GELU"]
    assert plain.hidden["conv1"][0].bias is not None


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


@pytest.mark.parametrize("n", [1, 3, 4])
def test_few_images_are_predicted_like_many(n):
    net = network().eval()
    x = torch.rand(20, 3, 8, 8)

    few, many = net.forward_heads(x[:n]), net.forward_heads(x)

    for head, expected in zip(few, many):
        assert head.shape == (n, 4)
        torch.testing.assert_close(head, expected[:n])


def test_bfloat16_is_for_the_hidden_layers_only():
    net = network().eval()
    net.bf16 = True
    inputs, dtypes = torch.rand(8, 3, 8, 8), []
    for layer in (*net.hidden.values(), *net.heads.values(), net.output):
        layer.register_forward_hook(lambda module, x, y: dtypes.append(y.dtype))

    rough = net.forward_heads(inputs)

    assert dtypes.count(torch.bfloat16) == 3
    assert dtypes.count(torch.float32) == 3
    net.bf16 = False
    for found, expected in zip(rough, net.forward_heads(inputs)):
        assert not torch.equal(found, expected)
        torch.testing.assert_close(found, expected, atol=0.02, rtol=0.02)
