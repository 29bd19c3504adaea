import numpy as np
import pytest
import torch

from auxcst_sklearn import CostSensitiveAuxNet
from auxcst_sklearn.modules import find_hidden_layers
from benchmarks.paper.alexnet_network import AlexNet

# Names and shapes of the published weights.
SHAPES = {
    "features.0.weight": (64, 3, 11, 11),
    "features.0.bias": (64,),
    "features.3.weight": (192, 64, 5, 5),
    "features.3.bias": (192,),
    "features.6.weight": (384, 192, 3, 3),
    "features.6.bias": (384,),
    "features.8.weight": (256, 384, 3, 3),
    "features.8.bias": (256,),
    "features.10.weight": (256, 256, 3, 3),
    "features.10.bias": (256,),
    "classifier.1.weight": (4096, 9216),
    "classifier.1.bias": (4096,),
    "classifier.4.weight": (4096, 4096),
    "classifier.4.bias": (4096,),
    "classifier.6.weight": (1000, 4096),
    "classifier.6.bias": (1000,),
}


@pytest.fixture(scope="module")
def small():
    torch.manual_seed(0)
    return AlexNet(5, small=True, width=16).eval()


def test_names_and_shapes_are_the_published_ones():
    with torch.device("meta"):
        network = AlexNet()

    assert {name: tuple(value.shape) for name, value in network.state_dict().items()} == SHAPES


def test_seven_hidden_layers(small):
    expected = [f"features.{i}" for i in (1, 4, 7, 9, 11)] + ["classifier.2", "classifier.5"]

    assert find_hidden_layers(small, (3, 32, 32)) == expected


@pytest.mark.parametrize(
    ("head_input", "n_inputs"),
    [("mean", [64, 192, 384, 256, 256, 16]), ("flatten", [65536, 43200, 18816, 12544, 12544, 16])],
)
def test_parameters_of_the_heads(small, head_input, n_inputs):
    images, labels = np.zeros((4, 3, 32, 32), np.uint8), [0, 1, 0, 1]

    model = CostSensitiveAuxNet(small, head_input=head_input, max_epochs=1, random_state=0)
    heads = model.fit(images, labels).net_.module_.networks[0].heads.values()

    assert [sum(p.numel() for p in head.parameters()) for head in heads] == [
        (n + 1) * 2 for n in n_inputs
    ]


@pytest.mark.parametrize("size", [32, 48, 64])
def test_small_images(small, size):
    assert small(torch.zeros(2, 3, size, size)).shape == (2, 5)


def test_images_of_imagenet_size_reach_six_by_six_values():
    with torch.device("meta"):
        network = AlexNet()
        assert network.features(torch.zeros(1, 3, 224, 224)).shape == (1, 256, 6, 6)


def test_normalised_images(small):
    x = np.random.RandomState(0).uniform(size=(2, 3, 32, 32)).astype(np.float32)
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    by_hand = (x - mean[:, None, None]) / std[:, None, None]
    expected = small(torch.from_numpy(by_hand.astype(np.float32)))
    network = AlexNet(5, small=True, width=16, normalize=True).eval()
    network.load_state_dict(small.state_dict())

    torch.testing.assert_close(network(torch.from_numpy(x)), expected)
