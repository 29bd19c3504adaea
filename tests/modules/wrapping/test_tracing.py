from copy import deepcopy

import pytest
import torch
from torch import nn

from auxcst_sklearn.modules import find_hidden_layers
from auxcst_sklearn.modules.wrapping._tracing import Trace
from tests.modules.nets import Net, dense


def test_resnet_has_its_stem_and_eight_blocks(resnet18):
    expected = [f"layer{i}.{j}" for i in range(1, 5) for j in range(2)]

    assert find_hidden_layers(resnet18, (3, 16, 16)) == ["relu", *expected]


def test_functional_activations(functional_net):
    assert find_hidden_layers(functional_net, (1, 10, 10)) == ["relu():1", "relu():2", "tanh()"]


def test_one_activation_module_used_for_all_layers():
    def forward(self, x):
        return self.fc(self.act(self.b(self.act(self.a(x)))))

    net = Net(forward, **dense(4, 5, 6), act=nn.ReLU(inplace=True))

    assert find_hidden_layers(net, (4,)) == ["act:1", "act:2"]


def test_the_largest_submodule_gives_the_name():
    block = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
    with_dropout = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(), nn.Identity())
    two = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU())
    net = nn.Sequential(block, with_dropout, two, nn.Linear(4, 2))

    assert find_hidden_layers(net, (4,)) == ["0", "1.1", "2.1", "2.3"]


def test_residual_blocks_that_start_with_the_activation():
    net = Net(
        lambda self, x: self.fc(torch.relu(self.bn(self.block2(self.block1(self.stem(x)))))),
        stem=nn.Linear(4, 4),
        block1=Net(lambda self, x: x + self.fc(torch.relu(x)), fc=nn.Linear(4, 4)),
        block2=Net(lambda self, x: self.fc(torch.relu(x)).add_(x), fc=nn.Linear(4, 4)),
        bn=nn.BatchNorm1d(4),
        fc=nn.Linear(4, 2),
    )

    assert find_hidden_layers(net, (4,)) == ["block1", "relu()"]


def test_branches_that_are_concatenated():
    def inception(self, x):
        return torch.cat([torch.relu(self.a(x)), torch.relu(self.b(x)), x], dim=1)

    net = nn.Sequential(
        Net(inception, a=nn.Linear(4, 3), b=nn.Linear(4, 2)),
        Net(inception, a=nn.Linear(9, 3), b=nn.Linear(9, 2)),
        nn.Linear(14, 2),
    )

    assert find_hidden_layers(net, (4,)) == ["0", "1"]


def test_a_dense_block_has_a_layer_wherever_all_data_pass():
    def block(self, x):
        first = torch.relu(self.a(x))
        second = torch.relu(self.b(torch.cat([x, first], dim=1)))
        return torch.cat([x, first, second], dim=1)

    net = nn.Sequential(
        Net(block, a=nn.Linear(4, 2), b=nn.Linear(6, 2)), nn.Linear(8, 3), nn.ELU(), nn.Linear(3, 2)
    )

    assert find_hidden_layers(net, (4,)) == ["0", "2"]


def test_operations_without_weights_make_no_layer_of_their_own():
    def forward(self, x):
        x = self.a(torch.cat([x, x**2], dim=1))
        x = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)
        x = x * torch.sigmoid(x)
        return self.fc(torch.relu(self.b(x)))

    assert find_hidden_layers(Net(forward, **dense(8, 4, 4)), (4,)) == ["mul()", "relu()"]


def test_assignment_into_a_tensor_is_followed():
    def forward(self, x):
        out = torch.zeros(len(x), 6)
        out[:, 2:] = torch.relu(self.a(x))
        return self.c(torch.tanh(self.b(out)))

    net = Net(forward, a=nn.Linear(4, 4), b=nn.Linear(6, 4), c=nn.Linear(4, 2))

    assert find_hidden_layers(net, (4,)) == ["relu()", "tanh()"]


def test_data_that_torch_functions_do_not_carry_are_not_followed():
    net = Net(lambda self, x: self.a(torch.tensor(x.tolist())), a=nn.Linear(4, 2))

    assert find_hidden_layers(net, (4,)) == []


def test_several_outputs_of_one_function():
    def forward(self, x):
        value, gate = self.a(x).chunk(2, dim=1)
        return self.b(value * torch.sigmoid(gate))

    net = Net(forward, a=nn.Linear(4, 8), b=nn.Linear(4, 2))

    assert find_hidden_layers(net, (4,)) == ["mul()"]


def test_lazy_layers_get_their_shapes():
    net = nn.Sequential(nn.LazyConv2d(3, 2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))

    assert find_hidden_layers(net, (1, 3, 3)) == ["1"]
    assert net[3].in_features == 12


def test_a_run_leaves_the_module_and_the_random_numbers_alone(resnet18):
    resnet18.train()
    resnet18.layer1.eval()
    before = deepcopy(resnet18.state_dict())
    training = [part.training for part in resnet18.modules()]
    state = torch.get_rng_state()

    find_hidden_layers(resnet18, (3, 16, 16))

    assert all(torch.equal(value, before[key]) for key, value in resnet18.state_dict().items())
    assert [part.training for part in resnet18.modules()] == training
    assert torch.equal(torch.get_rng_state(), state)


def test_outputs_that_are_changed_in_place():
    trace = Trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Tanh()), (4,))

    assert trace.was_overwritten(("0", 1))
    assert not trace.was_overwritten(("1", 1))
    assert not trace.was_overwritten(("2", 1))


def test_a_module_that_refuses_the_example():
    message = r"Linear cannot compute an example of shape \(5,\).*torch says: (addmm: )?mat1"
    with pytest.raises(ValueError, match=message):
        find_hidden_layers(nn.Linear(4, 2), (5,))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nose", "'nose', which is not a layer that runs .* Net; .* some of .*'act:1'"),
        ("act", "'act', which is not a layer that runs"),
        ("act:3", "'act:3', which is not a layer that runs"),
        ("a:2", "'a:2', which is not a layer that runs"),
        ("unused", "'unused', which is not a layer that runs"),
        ("sum()", r"'sum\(\)', which puts out a tensor of shape \(\); expected"),
    ],
)
def test_names_that_no_head_can_read(name, message):
    parts = {"a": nn.Linear(4, 4), "act": nn.ReLU(), "lstm": nn.LSTM(4, 4), "unused": nn.ReLU()}
    net = Net(lambda self, x: self.lstm(self.act(self.a(self.act(x))))[0].sum(), **parts)

    with pytest.raises(ValueError, match=message):
        Trace(net, (4,)).find(name)
