"""Arrays by name: what a tokenizer returns, texts in pipelines, several inputs."""

import pickle
from collections import UserDict

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from skorch.helper import SliceDict
from torch import nn

from auxcst_sklearn import (
    BayesMinimumRiskClassifier,
    CostSensitiveAuxMLP,
    CostSensitiveAuxNet,
    CostSensitiveEnsembleClassifier,
)
from auxcst_sklearn.metrics import compare_costs
from auxcst_sklearn.modules._named_rows import cut_length
from tests.factories import dense

N, LENGTH, WORDS = 160, 9, 30
COST = np.array([[0.0, 1, 5], [2, 0, 1], [4, 1, 0]])
rng = np.random.default_rng(0)
y = rng.integers(0, 3, N)
length = rng.integers(3, LENGTH + 1, N)
mask = (np.arange(LENGTH) < length[:, np.newaxis]).astype(np.int64)
ids = mask * rng.integers(6, WORDS, (N, LENGTH))
ids[:, 1] = y + 3  # the word that tells the class
X = {"input_ids": ids, "attention_mask": mask}


class Encoder(nn.Module):
    """Three blocks of a transformer, and the mean over the tokens that are no padding."""

    seen: list[tuple[int, ...]] = []

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 8, padding_idx=0)
        block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(block, 3)
        self.fc = nn.Linear(8, 3)

    def forward(self, input_ids, attention_mask):
        self.seen.append(tuple(input_ids.shape))
        x = self.encoder(self.embed(input_ids), src_key_padding_mask=attention_mask == 0)
        weight = attention_mask.unsqueeze(-1).to(x.dtype)
        return self.fc((x * weight).sum(1) / weight.sum(1))


class ReadsPadding(nn.Module):
    """The mean over all tokens, padding included."""

    def __init__(self):
        super().__init__()
        self.embed, self.fc = nn.Embedding(WORDS, 8), nn.Linear(8, 3)
        self.hidden = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh())

    def forward(self, input_ids, attention_mask):
        return self.fc(self.hidden(self.embed(input_ids).mean(1)))


class ReadsPaddingLater(ReadsPadding):
    """The mean over tokens, and through a gate that training opens over padding, too."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(()))

    def of_padding(self, mean):
        return self.gate * mean

    def forward(self, input_ids, attention_mask):
        x, weight = self.embed(input_ids), attention_mask.unsqueeze(-1).float()
        mean = (x * weight).sum(1) / weight.sum(1)
        return self.fc(self.hidden(mean + self.of_padding(x.mean(1))))


class Adapter(ReadsPaddingLater):
    """Padding behind a linear layer of zeros, after a layer norm."""

    def __init__(self):
        super().__init__()
        self.norm, self.zero = nn.LayerNorm(8), nn.Linear(8, 8)
        nn.init.zeros_(self.zero.weight)
        nn.init.zeros_(self.zero.bias)

    def of_padding(self, mean):
        return self.zero(self.norm(mean))


class NearZero(ReadsPadding):
    """A module that fails where a parameter is not near zero."""

    def __init__(self):
        super().__init__()
        self.step = nn.Parameter(torch.zeros(4))

    def forward(self, input_ids, attention_mask):
        if self.step.abs().max() > 0.05:
            raise RuntimeError("outside of the trust region")
        return super().forward(input_ids, attention_mask)


class TwoInputs(nn.Module):
    """Tokens beside numbers."""

    def __init__(self):
        super().__init__()
        self.embed, self.dense = nn.Embedding(WORDS, 8), nn.Linear(2, 8)
        self.join, self.last, self.fc = nn.Linear(16, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, numbers, words):
        assert (numbers.dtype, words.dtype) == (torch.float32, torch.int64)
        x = torch.cat([self.embed(words).mean(1), torch.relu(self.dense(numbers))], dim=1)
        return self.fc(torch.relu(self.last(torch.relu(self.join(x)))))


class Words(TransformerMixin, BaseEstimator):
    """A tokenizer as a step: the numbers in a text are its tokens."""

    def fit(self, texts, y=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def transform(self, texts):
        rows = [[int(word) for word in text.split()] for text in texts]
        longest = max(map(len, rows))
        padded = np.array([row + [0] * (longest - len(row)) for row in rows])
        return {"input_ids": padded, "attention_mask": (padded > 0).astype(int)}


texts = [" ".join(map(str, row[:n])) for row, n in zip(ids, length)]


def net(module=Encoder, **parameters):
    known = {"max_epochs": 3, "batch_size": 32, "learning_rate": 1e-2, "random_state": 0}
    known |= {"cost_matrix": COST, "temperature": 1.0}  # one network, of all rows
    return CostSensitiveAuxNet(module, **{**known, **parameters})


@pytest.fixture(scope="module")
def fitted():
    return net(max_epochs=20, batch_size=16, device="cpu").fit(X, y)


def padded(by):
    return {name: np.pad(values, ((0, 0), (0, by))) for name, values in X.items()}


def rows_of(index):
    return {name: values[index] for name, values in X.items()}


# --------------------------------------------------------------------------------- inputs


@pytest.mark.parametrize(
    "given",
    [
        {"attention_mask": mask.astype(bool), "input_ids": ids.astype(np.int32)},
        {name: values.tolist() for name, values in X.items()},
        {name: torch.from_numpy(values) for name, values in X.items()},
        UserDict(X),
        SliceDict(**X),
    ],
    ids=["types and order", "lists", "tensors", "UserDict", "SliceDict"],
)
def test_forms_of_arrays_by_name(fitted, given):
    np.testing.assert_array_equal(fitted.predict_cost(given), fitted.predict_cost(X))
    assert net(max_epochs=1).fit(given, y).predict(given).shape == (N,)


def test_a_network_learns_and_has_a_head_on_each_block_but_the_last(fitted):
    assert fitted.hidden_layers_ == ["encoder.layers.0", "encoder.layers.1"]
    (network,) = fitted.net_.module_.networks
    assert [head.in_features for head in network.heads.values()] == [8, 8]
    for cost in fitted.staged_predict_cost(X):
        assert COST[y, cost.argmin(axis=1)].mean() < 0.3  # a constant costs 1 or more
    assert not hasattr(fitted, "n_features_in_")


def test_padding_changes_nothing(fitted):
    model = fitted
    for n in (1, 4):
        for one, other in zip(model.staged_predict_cost(X), model.staged_predict_cost(padded(n))):
            np.testing.assert_allclose(one, other, atol=1e-5)
    alone = np.vstack([model.predict_cost(rows_of([i])) for i in range(30)])
    np.testing.assert_allclose(alone, model.predict_cost(X)[:30], atol=1e-5)


def test_heads_read_the_mean_over_tokens_that_are_no_padding(fitted):
    (network,) = fitted.net_.module_.networks
    found = {}
    layer = network.body.encoder.layers[0]
    handle = layer.register_forward_hook(lambda part, args, x: found.update(x=x))
    with torch.no_grad():
        given = {name: torch.from_numpy(values) for name, values in X.items()}
        outputs = network.eval().forward_heads(given)
    handle.remove()
    x, weight = found["x"].double().numpy(), mask[..., np.newaxis]
    mean = (x * weight).sum(axis=1) / weight.sum(axis=1)
    head = network.heads["hidden1"]
    expected = mean @ head.weight.detach().double().numpy().T + head.bias.detach().numpy()
    np.testing.assert_allclose(outputs[0].numpy(), expected, atol=1e-5)


def test_a_head_may_read_a_function_of_layer_and_inputs():
    def second_token(x, inputs):
        assert set(inputs) == set(X)
        return x[:, 1]

    model = net(head_input=second_token, max_epochs=12).fit(X, y)
    assert (next(iter(model.staged_predict(X))) == y).mean() > 0.9
    with pytest.raises(ValueError, match=r"head_input returns a tensor of shape \(7, .*expected"):
        net(head_input=lambda x, inputs: x).fit(X, y)


def test_a_gpu_sees_few_lengths_and_a_cpu_no_needless_padding():
    lengths = range(5, 60)
    on_gpu = {cut_length(n, "cuda") for n in lengths}
    assert len(on_gpu) <= 8
    assert max(on_gpu) < 60 + 8
    assert [cut_length(n, "cpu") for n in lengths] == [*lengths]


def test_batches_have_rows_of_similar_length():
    Encoder.seen.clear()
    many = {name: np.tile(values, (8, 1)) for name, values in X.items()}
    net(max_epochs=1, device="cpu").fit(many, np.tile(y, 8))
    shapes = [shape for shape in Encoder.seen if shape[0] == 32]
    assert len(shapes) == 8 * N // 32 + 2  # with checks of the last step and of the decisions
    widths = np.array([shape[1] for shape in shapes])
    assert widths.max() == LENGTH  # of the longest row
    assert widths.mean() < length.mean() + 0.5
    assert (np.diff(widths) < 0).any()  # in random order


@pytest.mark.parametrize("module", [ReadsPadding, ReadsPaddingLater, Adapter, NearZero])
def test_a_module_that_reads_padding_gets_all_of_it(module):
    model = net(module, learning_rate=0.05).fit(X, y)
    alone = np.vstack([model.predict_cost(rows_of([i])) for i in range(10)])
    np.testing.assert_allclose(alone, model.predict_cost(X)[:10], atol=1e-5)
    difference = np.abs(model.predict_cost(padded(5)) - model.predict_cost(X))
    assert difference.max() > 1e-3  # as with the module itself


def test_several_inputs():
    numbers = np.column_stack([y == 1, rng.normal(size=N)])
    given = {"numbers": numbers, "words": np.where(y == 2, 3, 4)[:, np.newaxis]}
    model = net(TwoInputs, max_epochs=15).fit(given, y)
    assert (model.predict(given) == y).mean() > 0.95
    assert len(model.hidden_layers_) == 2


def test_one_array_by_name_is_the_array():
    numbers = rng.normal(size=(N, 4)).astype(np.float32)
    costs = [
        net(lambda: dense(4, 8, 8, 3)).fit(given, y).predict_cost(given)
        for given in ({"input": numbers}, numbers)
    ]
    np.testing.assert_array_equal(*costs)


# --------------------------------------------------------------------- scikit-learn's tools


@pytest.mark.slow
def test_texts_in_a_pipeline():
    model = make_pipeline(Words(), net(batch_size=8, max_epochs=5))
    always = COST[y].mean(axis=0).min()
    assert -model.fit(texts, y).score(texts, y) < 0.5 * always
    assert len(cross_val_score(model, texts, y, cv=2)) == 2
    search = GridSearchCV(model, {"costsensitiveauxnet__alpha": [0.0, 0.3]}, cv=2, refit=False)
    assert len(search.fit(texts, y).cv_results_["mean_test_score"]) == 2
    rule = BayesMinimumRiskClassifier(model, cost_matrix=COST, calibration=None).fit(texts, y)
    assert -rule.score(texts, y) < 0.5 * always
    table = compare_costs({"network": model}, texts, y, cost_matrix=COST, cv=2)
    assert table.loc["network", "cost"] < always


def test_an_ensemble_takes_texts_through_pipelines():
    words = make_pipeline(TfidfVectorizer(token_pattern=r"\d+"), LogisticRegression())
    members = [("words", words), ("network", make_pipeline(Words(), net()))]
    ensemble = CostSensitiveEnsembleClassifier(members, cost_matrix=COST, cv=2).fit(texts, y)
    assert ensemble.score(texts, y) > -0.5


def test_splitters_index_rows_of_a_slice_dict():
    scores = cross_val_score(net(), SliceDict(**X), y, cv=3)
    assert len(scores) == 3
    assert not np.isnan(scores).any()


@pytest.mark.parametrize(("early_stopping", "n_networks"), [(False, 1), (True, 2)])
def test_all_that_a_fit_takes(early_stopping, n_networks):
    known = {"early_stopping": early_stopping, "n_networks": n_networks, "max_epochs": 2}
    cost = rng.uniform(0, 3, (N, 3))
    weight = rng.integers(0, 3, N)
    model = net(cost_matrix=None, **known).fit(X, y, weight, cost=cost, groups=np.arange(N) // 2)
    assert model.score(X, y, cost=cost) < 0
    matrices = rng.uniform(0, 3, (N, 3, 3))
    model = net(cost_matrix=None, **known).fit(X, y, cost=matrices)
    assert set(model.decide(X, matrices, capacity={0: 5}).tolist()) <= {0, 1, 2}
    if early_stopping:
        assert net(**known).fit(X, y, X_val=X, y_val=y).temperature_ > 0


def test_continued_trainings_and_files(tmp_path):
    stream = net().partial_fit(X, y, classes=[0, 1, 2]).partial_fit(padded(2), y)
    assert stream.predict(X).shape == (N,)
    warm = net(warm_start=True).fit(X, y)
    loaded = pickle.loads(pickle.dumps(warm))
    np.testing.assert_array_equal(loaded.predict_cost(X), warm.predict_cost(X))
    saved = net(checkpoint_dir=tmp_path / "fit").fit(X, y)
    loaded.set_params(warm_start=False).fit(X, y)
    np.testing.assert_array_equal(loaded.predict_cost(X), saved.predict_cost(X))


# --------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"input_ids": ids, "attention_mask": mask[:5]}, "inconsistent numbers of samples"),
        ({"input_ids": [row[:n].tolist() for row, n in zip(ids, length)]}, "inhomogeneous"),
        ({"input_ids": texts}, r"X\['input_ids'\] is read as <U.* padding=True"),
        ({"input_ids": np.full((N, 3), np.nan)}, "NaN"),
        ({}, "expected at least one"),
        ({"input_ids": ids, "mask": mask}, "cannot compute an example of .*'mask'"),
    ],
)
def test_arrays_that_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        net().fit(given, y)


@pytest.mark.parametrize(
    ("model", "label", "message"),
    [
        (net(), y[:7], "inconsistent numbers of samples"),
        (net(image_shape=(3, 3)), y, r"image_shape=\(3, 3\) is for X as one array"),
        (CostSensitiveAuxMLP(), y, "Expected 2D array"),
        (CostSensitiveEnsembleClassifier(), y, "expected two dimensions"),
    ],
)
def test_what_is_for_one_array_alone(model, label, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, label)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"input_ids": ids}, r"contains the arrays \['input_ids'\], but .* was fitted on"),
        ({**X, "input_ids": ids[:, :5]}, "the length that all sequences of X share"),
        ({**X, "attention_mask": mask / 2}, "contains float32 of shape"),
        (ids, r"X is a ndarray, but CostSensitiveAuxNet was fitted on the arrays"),
        (texts, "put the tokenizer in front, in a Pipeline"),
    ],
)
def test_arrays_unlike_those_of_the_fit(fitted, given, message):
    with pytest.raises(ValueError, match=message):
        fitted.predict(given)


# ---------------------------------------------------------------------------------- rates


def rates(model, given, **parameters):
    net = model.set_params(max_epochs=1, **parameters).fit(given, y).net_
    named = net.module_.named_parameters()
    parts = {id(p): "body" if "body" in name else "new" for name, p in named}
    return {parts[id(group["params"][0])]: group["lr"] for group in net.optimizer_.param_groups}


def test_rates_of_pretrained_encoders():
    model = net(learning_rate="auto")
    assert rates(model, X, pretrained=False) == {"body": 1e-3}  # all in one group
    assert rates(model, X, pretrained=True) == pytest.approx({"new": 5e-3, "body": 1e-4})
    assert rates(model, X, learning_rate=1e-2) == pytest.approx({"new": 1e-2, "body": 1e-3})
    given = {"pretrained_lr_factor": 0.5}
    assert rates(model, X, **given) == pytest.approx({"new": 1e-2, "body": 5e-3})
