from copy import deepcopy
from functools import partial

import numpy as np
import pytest
import torch
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import check_random_state
from skorch.callbacks import Callback
from torch import nn

from auxcst_sklearn import CostSensitiveAuxNet
from auxcst_sklearn.losses import OneSided, Target
from auxcst_sklearn.metrics import make_cost_scorer
from tests.estimators.torch_modules import LazyMLP, Residual, body, mlp, mlp_for, net, weights

MATRIX = np.array([[0.0, 1, 5], [2, 0, 1], [1, 8, 0]])


def raw_loop(module, X, cost, *, seed, alpha, epochs, size):
    """The same training, written by hand for the module that `mlp` makes."""
    random_state = check_random_state(seed)
    init_seed, train_seed = (random_state.randint(np.iinfo(np.int32).max) for _ in range(2))
    first, _, second, _, _ = deepcopy(module)
    with torch.random.fork_rng():
        torch.manual_seed(init_seed)
        output, head = nn.Linear(8, 3), nn.Linear(8, 3)
    row_minimum = cost.min(axis=1)
    above = cost - row_minimum[:, None]
    cost = (cost - row_minimum.mean()) / above[above > 0].mean()
    with torch.no_grad():
        for layer in (output, head):
            layer.bias.copy_(torch.from_numpy(cost.mean(axis=0)))
    layers = [first, second, output, head]
    parameters = [p for layer in layers for p in layer.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=1e-2, fused=True)
    generator = torch.Generator().manual_seed(train_seed)
    X, cost = torch.from_numpy(X.astype(np.float32)), torch.from_numpy(cost.astype(np.float32))
    for _ in range(epochs):
        for batch in torch.randperm(len(X), generator=generator).split(size):
            hidden1 = torch.relu(first(X[batch]))
            outputs = [head(hidden1), output(torch.relu(second(hidden1)))]
            losses = [OneSided()(r, Target(cost[batch], None)).mean() for r in outputs]
            optimizer.zero_grad()
            (alpha * losses[0] + losses[1]).backward()
            optimizer.step()
    return np.concatenate([p.detach().ravel() for p in parameters])


# ------------------------------------------------------------------------------- training


def test_a_module_is_trained_as_by_hand(problem):
    X, y, _ = problem
    torch.manual_seed(5)
    module = mlp()
    expected = raw_loop(module, X, MATRIX[y], seed=0, alpha=0.4, epochs=3, size=8)

    known = {"cost_matrix": MATRIX, "loss": "one_sided", "schedule": "constant"}
    estimator = net(module, alpha=0.4, max_epochs=3, batch_size=8, **known).fit(X, y)

    np.testing.assert_allclose(weights(estimator), expected, atol=1e-5)


def test_the_module_of_the_caller_stays_as_it_was(digits):
    module = Residual().eval()
    before = deepcopy(module.state_dict())

    estimator = net(module, learning_rate=1e-6, max_epochs=1).fit(*digits)

    assert estimator.module is module
    assert not any(part.training for part in module.modules())
    assert module.fc.out_features == 1000
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])
    trained = body(estimator)
    assert not np.array_equal(trained["conv.weight"], before["conv.weight"])
    np.testing.assert_allclose(trained["conv.weight"], before["conv.weight"], atol=1e-4)


def test_stages_have_every_layer(digits):
    X, y = digits
    estimator = net(alpha=[0.3, 0.5]).fit(X, y)

    assert estimator.hidden_layers_ == ["relu:1", "relu:2"]
    stages = list(estimator.staged_predict_cost(X))
    assert len(stages) == 3
    np.testing.assert_allclose(stages[-1], estimator.predict_cost(X), rtol=1e-6)


@pytest.mark.parametrize("writes", [nn.ReLU(inplace=True), nn.Hardtanh(inplace=True)])
def test_a_module_may_write_to_its_input(problem, writes):
    class Copies(nn.Module):
        def forward(self, x):
            return x.clone()

    def costs(first):
        X, y, cost = problem
        given = X.copy()
        torch.manual_seed(0)
        model = net(nn.Sequential(first, writes, *mlp()), alpha=0.2).fit(X, y, cost=cost)
        once = model.predict_cost(X)
        list(model.staged_predict_cost(X))
        np.testing.assert_array_equal(X, given)
        np.testing.assert_array_equal(model.predict_cost(X), once)
        return once

    np.testing.assert_array_equal(costs(nn.Identity()), costs(Copies()))


def tokens_problem():
    tokens = np.random.default_rng(0).integers(0, 20, size=(200, 6))
    return tokens, (tokens > 9).sum(axis=1) > 3


class Text(nn.Module):
    """Reads tokens; from floats too, if it makes integers of them."""

    def __init__(self, converts):
        super().__init__()
        self.converts = converts
        self.embedding, self.fc = nn.Embedding(20, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(self.embedding(x.long() if self.converts else x).mean(1))


@pytest.mark.parametrize(
    ("converts", "dtype"),
    [(False, "uint8"), (False, "int16"), (False, "float32"), (True, "int64"), (True, "float32")],
)
def test_tokens_reach_an_embedding_as_they_are(converts, dtype):
    X, y = tokens_problem()
    X = X.astype(dtype)
    model = net(partial(Text, converts), alpha=0, max_epochs=20, learning_rate=0.05).fit(X, y)

    assert model.score(X, y) > 0.9
    again = clone(model).fit(X.astype(int), y)
    np.testing.assert_array_equal(model.predict_cost(X), again.predict_cost(X.astype(int)))


def test_an_embedding_takes_whole_numbers_alone():
    X, y = tokens_problem()

    with pytest.raises(ValueError, match=r"X contains 3\.5, but the module takes integers alone"):
        net(partial(Text, False), alpha=0).fit(np.where(X == 3, 3.5, X), y)


def test_bytes_of_rows_are_numbers_and_those_of_images_pixels(digits):
    X, y = digits
    rows = (X.reshape(len(X), 64) * 255).astype(np.uint8)

    def estimates(X, **parameters):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Flatten(), *mlp(64))
        return net(module, max_epochs=1, **parameters).fit(X, y).predict_cost(X)

    np.testing.assert_array_equal(estimates(rows), estimates(rows.astype(float)))
    images = estimates(rows.reshape(-1, 8, 8))
    np.testing.assert_array_equal(estimates(rows, image_shape=(8, 8)), images)
    np.testing.assert_allclose(estimates(rows.reshape(-1, 8, 8) / 255), images, rtol=1e-4)


# ------------------------------------------------------------------------------- the layers


def test_named_layers(digits):
    estimator = net(hidden_layers=["bn", "conv", "drop"], alpha=[0.1, 0, 0.2]).fit(*digits)

    assert estimator.hidden_layers_ == ["bn", "drop"]
    assert estimator.net_.criterion_.alphas.flatten().tolist() == pytest.approx([0.1, 0.2, 1])


@pytest.mark.parametrize(("alpha", "layers"), [(0.2, ["relu:1", "relu:2"]), (0, [])])
def test_what_auto_found_may_be_named(digits, alpha, layers):
    found = net(alpha=alpha).fit(*digits)
    named = net(alpha=0.2, hidden_layers=layers).fit(*digits)

    assert found.hidden_layers_ == layers
    np.testing.assert_array_equal(weights(named), weights(found))


@pytest.mark.parametrize(("head_input", "n_inputs"), [("mean", 4), ("flatten", 4 * 8 * 8)])
def test_head_input(digits, head_input, n_inputs):
    estimator = net(head_input=head_input).fit(*digits)

    (network,) = estimator.net_.module_.networks
    heads = network.heads.values()
    assert [tuple(head.weight.shape) for head in heads] == [(10, n_inputs)] * 2


def test_a_module_without_hidden_layers(problem):
    X, y, _ = problem
    module = nn.Linear(4, 7)

    with pytest.warns(UserWarning, match="No hidden layer but the last was found in Linear"):
        estimator = net(module).fit(X, y)
    np.testing.assert_array_equal(weights(estimator), weights(net(module, alpha=0).fit(X, y)))

    parts = [nn.Linear(4, 4), nn.Identity(), nn.Linear(4, 3)]
    with pytest.warns(UserWarning, match=r"hidden_layers to some of .*'0'.*'1'"):
        net(nn.Sequential(*parts)).fit(X, y)


# ------------------------------------------------------------------------------- factories


@pytest.mark.parametrize(
    "module",
    [partial(mlp, width=6), mlp_for, partial(mlp_for, width=6), LazyMLP, LazyMLP()],
    ids=["partial", "by input_shape", "partial by input_shape", "factory", "instance"],
)
def test_what_module_may_be(problem, module):
    X, y, _ = problem

    estimator = net(module).fit(X, y)

    assert estimator.hidden_layers_ == ["1"]
    assert estimator.predict_cost(X).shape == (60, 3)


def test_a_factory_works_under_the_seed(problem):
    X, y, _ = problem
    state = torch.get_rng_state()

    first, again = (weights(net(mlp).fit(X, y)) for _ in range(2))

    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, weights(net(mlp, random_state=1).fit(X, y)))
    assert torch.equal(torch.get_rng_state(), state)


# ------------------------------------------------------------------------------- randomness


def test_threads_fit_the_same_networks(digits):
    networks = [net(random_state=seed) for seed in (0, 1, 0, 1)]
    fitted = Parallel(n_jobs=4, backend="threading")(
        delayed(clone(network).fit)(*digits) for network in networks
    )

    for one, network in zip(fitted, networks, strict=True):
        np.testing.assert_array_equal(weights(one), weights(network.fit(*digits)))


# ------------------------------------------------------------------------------- scikit-learn


def test_search_over_alpha_and_modules(problem):
    X, y, _ = problem
    grid = {"alpha": [0, 0.3], "module": [partial(mlp, width=6), mlp()]}
    search = GridSearchCV(
        net(mlp, cost_matrix=MATRIX), grid, scoring=make_cost_scorer(cost_matrix=MATRIX), cv=2
    ).fit(X, y)

    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.hidden_layers_ == (["1"] if search.best_params_["alpha"] else [])


# ------------------------------------------------------------------------------- mistakes


def ends_with_a_convolution():
    return nn.Sequential(nn.Conv2d(1, 4, 5), nn.ReLU(), nn.Conv2d(4, 3, 4), nn.Flatten())


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"module": "resnet18"}, ValueError, "'module' parameter .* must be a callable"),
        ({"module": partial(nn.Linear, 4)}, TypeError, "missing .* argument: 'out_features'"),
        ({"module": list}, TypeError, "made an object of type list; expected an nn.Module"),
        ({"module": mlp}, ValueError, r"of shape \(1, 8, 8\); check.*axis for the channel"),
        ({"module": ends_with_a_convolution}, ValueError, "does not end with an nn.Linear"),
        ({"hidden_layers": ["fc9"]}, ValueError, "names 'fc9', which is not a layer that runs"),
        ({"hidden_layers": ["relu"]}, ValueError, "which is not a layer that runs .*'relu:1'"),
        ({"hidden_layers": ["bn", "bn"]}, ValueError, "names a layer twice"),
        ({"alpha": [0.1]}, ValueError, r"2: one per layer of \['relu:1', 'relu:2'\]"),
    ],
)
def test_mistakes_are_named_before_training(digits, parameters, error, message):
    with pytest.raises(error, match=message):
        net(**parameters).fit(*digits)


def test_costs_of_examples_leave_random_numbers_to_the_fit(problem):
    X, y, cost = problem
    module = nn.Sequential(nn.Dropout(0.3), *mlp())
    before = torch.get_rng_state()

    one, other = (net(module, alpha=0).fit(X, y, cost=cost).predict_cost(X) for _ in range(2))

    np.testing.assert_array_equal(one, other)
    assert torch.equal(before, torch.get_rng_state())


# ------------------------------------------------------------------ arguments of the module


def width(model):
    return len(body(model)["0.weight"])


def test_arguments_of_the_module_can_be_searched(problem):
    X, y, _ = problem
    model = net(mlp_for, module__width=3, max_epochs=1)
    search = GridSearchCV(model, {"module__width": [5, 6], "alpha": [0]}, cv=2).fit(X, y)

    best = search.best_estimator_
    assert width(best) == best.get_params()["module__width"] in (5, 6)
    assert model.get_params(deep=False)["module__width"] == 3  # as it was
    assert "module__width=3" in repr(model)
    assert width(clone(model).fit(X, y)) == 3
    steps = make_pipeline(MinMaxScaler(), model).set_params(costsensitiveauxnet__module__width=7)
    assert width(steps.fit(X, y)[-1]) == 7


def test_wrong_arguments_of_the_module_are_named(problem):
    X, y, _ = problem
    with pytest.raises(TypeError, match="unexpected keyword argument 'wide'"):
        net(mlp_for).set_params(module__wide=3).fit(X, y)
    with pytest.raises(ValueError, match=r"\['module__width'\] are arguments of a class or"):
        net(mlp(), module__width=3).fit(X, y)
    with pytest.raises(TypeError, match=r"no \['width'\].* module have the prefix module__"):
        net(mlp_for, width=3)


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("lr", "learning_rate is lr"),
        ("epochs", "max_epochs epochs"),
        ("optimizer__weight_decay", "net_params optimizer__"),
        ("train_split", "validation_fraction train_split"),
        ("modul__width", "learning_rate"),
    ],
)
def test_names_of_skorch_and_keras_are_told(name, here):
    with pytest.raises(TypeError, match=rf"^CostSensitiveAuxNet has no \['{name}'\].*{here}"):
        CostSensitiveAuxNet(nn.Identity, **{name: 0.1})


@pytest.mark.parametrize("size", [-1, 0, 2.5])
def test_a_number_of_rows_that_is_none_is_refused(digits, size):
    with pytest.raises(ValueError, match=rf"iterator_valid__batch_size={size}; expected 1 or more"):
        net(net_params={"iterator_valid__batch_size": size}).fit(*digits)


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(50, 16, mode="sum", sparse=True)
        self.hidden, self.last = nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.last(torch.relu(self.hidden(torch.relu(self.words(x)))))


def in_groups(model, name):
    """A value of the optimizer's groups, by the shape of their weights."""
    groups = model.net_.optimizer_.param_groups
    return {tuple(p.shape): group[name] for group in groups for p in group["params"]}


@pytest.mark.parametrize(("decay", "rate_of_body"), [(0.0, 1), (0.02, 0.5)])
def test_sparse_embeddings_have_no_weight_decay(decay, rate_of_body):
    """torch has none for sparse gradients; all other parameters have it."""
    X = np.random.default_rng(0).integers(0, 50, size=(240, 4))
    y = np.arange(240) % 3
    X[:, 0] = 10 * y
    model = CostSensitiveAuxNet(
        Bag,
        optimizer="sgd",
        learning_rate=0.1,
        weight_decay=decay,
        pretrained_lr_factor=rate_of_body,
        max_epochs=20,
        random_state=0,
    ).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.9
    decays, rates = in_groups(model, "weight_decay"), in_groups(model, "lr")
    assert (decays[50, 16], decays[16, 16]) == (0, decay)
    assert rates[50, 16] == rates[16, 16] == 0.1 * rate_of_body
    model.set_params(weight_decay=0.3).partial_fit(X, y)
    decays, rates = in_groups(model, "weight_decay"), in_groups(model, "lr")
    assert (decays[50, 16], decays[16, 16]) == (0, 0.3)
    assert rates[50, 16] == rates[16, 16] == 0.1 * rate_of_body


def test_a_weight_decay_of_the_caller_stays():
    X, y = np.random.default_rng(0).normal(size=(60, 5)), np.arange(60) % 3
    no_decay = {"optimizer__param_groups": [("*.bias", {"weight_decay": 0.0})]}
    module = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))
    model = CostSensitiveAuxNet(
        module, net_params=no_decay, weight_decay=0.0, alpha=0, pretrained=False, random_state=0
    )
    model.partial_fit(X, y, classes=[0, 1, 2]).set_params(weight_decay=0.3).partial_fit(X, y)
    decays = in_groups(model, "weight_decay")
    assert (decays[7,], decays[7, 5]) == (0, 0.3)
    model.set_params(pretrained=True)
    with pytest.raises(ValueError, match="has the factor 0.1.*Set pretrained_lr_factor=1"):
        model.fit(X, y)


class Counted(nn.Module):
    """Counts how often it runs, whatever the instance."""

    n_runs = 0

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 10)
        )

    def forward(self, x):
        Counted.n_runs += 1
        return self.layers(x)


class NoteRuns(Callback):
    """The number of runs before the first batch."""

    def on_train_begin(self, net, **kwargs):
        NoteRuns.n_before = Counted.n_runs


def test_networks_alike_are_tried_once(digits):
    X, y = digits[0].reshape(-1, 64), digits[1]
    cost = np.random.default_rng(0).uniform(size=(len(y), 10))
    n_before = set()
    for n_networks, given in ((1, {}), (3, {}), (2, {"cost": cost})):
        Counted.n_runs = 0
        model = net(Counted, n_networks=n_networks, max_epochs=1, callbacks=[NoteRuns()])
        model.fit(X, y, **given)
        n_before.add(NoteRuns.n_before)

    assert len(n_before) == 1
    # Of costs that differ within a class a second network learns, which has no heads.
    classes, costs = model.net_.module_.classes, model.net_.module_.costs
    assert (classes.layers, costs.layers) == (("layers.1", "output"), ("output",))


class Gated(nn.Module):
    """One softmax for a gate, and for the probabilities of the classes."""

    def __init__(self):
        super().__init__()
        self.gate, self.values, self.out = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.softmax = nn.Softmax(-1)

    def forward(self, x):
        return self.softmax(self.out(self.softmax(self.gate(x)) * self.values(x)))


def test_a_softmax_that_also_runs_elsewhere_is_not_left_out(problem):
    X, y, _ = problem
    with pytest.raises(ValueError, match="ends with the softmax 'softmax'.*but runs 2 times"):
        net(Gated).fit(np.hstack([X, X]), y)


@pytest.mark.parametrize("widths", [(9, 3), (8, 8, 3)])
def test_a_cost_network_is_like_the_network_of_the_classes(problem, widths):
    X, y, cost = problem
    others = iter([(8, 3), widths])

    def make():
        sizes = [4, *next(others)]
        layers = [x for pair in zip(sizes, sizes[1:]) for x in (nn.Linear(*pair), nn.ReLU())]
        return nn.Sequential(*layers[:-1])

    with pytest.raises(ValueError, match="module made networks of different layers or sizes"):
        net(make, n_networks=1, hidden_layers=[], alpha=0).fit(X, y, cost=cost)


@pytest.mark.parametrize("linear", [nn.Linear, lambda _, n_outputs: nn.LazyLinear(n_outputs)])
def test_a_module_that_a_function_returns_stays_as_it_is(problem, linear):
    X, y, _ = problem
    own = nn.Sequential(linear(4, 8), nn.ReLU(), linear(8, 3))
    last = own[-1]

    model = net(lambda: own, alpha=0).fit(X, y)

    assert own[-1] is last
    assert model.net_.module_.networks[0].body is not own


def test_a_linear_layer_and_a_deeper_module_are_not_alike(problem):
    X, y, _ = problem
    modules = [nn.Linear(4, 3), nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))]
    for first, second in (modules, reversed(modules)):
        several = iter([first, second])
        with pytest.raises(ValueError, match="module made networks of different layers or sizes"):
            net(lambda several=several: next(several), n_networks=2, alpha=0).fit(X, y)
    net(lambda: nn.Linear(4, 3), n_networks=2, alpha=0).fit(X, y)
