"""The batches of a training, as its networks see them."""

from weakref import ref

import numpy as np
import pytest
import torch

from auxcst_sklearn._training import batches as batches_module
from auxcst_sklearn._training import net as net_module
from tests.factories import small_mlp, small_stack
from tests.seen import AS_THEY_ARE, Noting, Seen

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(60, 4)).astype(np.float32), np.arange(60) % 3
COST, WEIGHT = rng.uniform(size=(60, 3)) + (np.arange(3) != Y[:, None]), rng.uniform(1, 4, size=60)


def batches_of(n, n_epochs=1, **parameters):
    """The numbers of the samples of each batch, of at most four."""
    seen = Seen(X[:n])
    model = small_mlp(batch_size=4, max_epochs=n_epochs, callbacks=[seen], **AS_THEY_ARE)
    model.set_params(**parameters).fit(X[:n], Y[:n])
    return [numbers for (numbers,) in seen.trained]


def test_an_epoch_passes_over_every_sample_once():
    found = batches_of(6, 2)
    first, second = np.concatenate(found[:2]), np.concatenate(found[2:])
    assert sorted(first) == sorted(second) == list(range(6))
    assert first.tolist() != second.tolist()
    assert batches_of(6, 2) == found != batches_of(6, 2, random_state=1)


@pytest.mark.parametrize(("n", "sizes"), [(8, [4, 4]), (10, [4, 4, 2]), (9, [3, 3, 3])])
def test_an_epoch_has_batches_of_alike_many_samples(n, sizes):
    assert [*map(len, batches_of(n))] == sizes


@pytest.mark.parametrize(("n", "sizes"), [(8, [4, 4]), (10, [4, 4, 2]), (9, [4, 5]), (1, [1])])
def test_the_last_batch_to_evaluate_is_smaller_but_never_one_sample_of_many(n, sizes):
    seen, given = Seen(X), {"iterator_valid__batch_size": 4}
    model = small_mlp(batch_size=4, max_epochs=1, net_params=given, **AS_THEY_ARE)
    model.set_params(callbacks=[seen]).fit(X, Y, X_val=X[:n], y_val=Y[:n])
    assert [len(numbers) for (numbers,) in seen.evaluated] == sizes
    assert np.hstack(seen.evaluated)[0].tolist() == list(range(n))


@pytest.mark.parametrize("n_bytes", [1, 70, 2**20])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_batches_do_not_depend_on_how_many_are_gathered_at_once(monkeypatch, n_bytes, weight):
    model = small_stack(batch_size=4)
    expected = model.fit(X, Y, weight, cost=COST).predict_cost(X)
    monkeypatch.setattr(batches_module, "GATHER_BYTES", n_bytes)
    np.testing.assert_array_equal(model.fit(X, Y, weight, cost=COST).predict_cost(X), expected)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("make", [small_mlp, small_stack])
def test_a_sample_keeps_its_label_cost_and_weight(monkeypatch, make, per_class, weight):
    monkeypatch.setattr(Noting, "targets", [])
    seen, matrix = Seen(X), np.array([[0.0, 1, 5], [2, 0, 1], [1, 3, 0]])
    model = make(loss=Noting(), alpha=0, batch_size=8, callbacks=[seen], **AS_THEY_ARE)
    if per_class:
        model.set_params(cost_matrix=matrix).fit(X, Y, weight)
    else:
        model.fit(X, Y, weight, cost=COST)

    costs = matrix[Y] if per_class else COST
    assert len(seen.trained) == len(Noting.targets) > 10
    number = np.concatenate([np.ravel(numbers) for numbers in seen.trained])
    targets = [torch.cat(parts).numpy() for parts in zip(*(t[:2] for t in Noting.targets))]
    np.testing.assert_array_equal(targets[1], Y[number])
    above = [c - c.min(axis=1, keepdims=True) for c in (targets[0], costs[number])]
    np.testing.assert_allclose(above[0] / above[0].mean(), above[1] / above[1].mean(), rtol=1e-5)
    if weight is None:
        assert {target.weight for target in Noting.targets} == {None}
    else:
        found = torch.cat([target.weight for target in Noting.targets])
        np.testing.assert_allclose(found, weight[number] / weight.mean(), rtol=1e-5)


def test_networks_of_a_stack_see_all_samples_but_their_folds():
    seen = Seen(X)
    small_stack(max_epochs=1, batch_size=8, callbacks=[seen], **AS_THEY_ARE).fit(X, Y)
    trained = np.hstack(seen.trained)
    for own, unseen in zip(trained, seen.held_out, strict=True):
        assert sorted([*own, *unseen]) == list(range(60))
    assert (trained[0] != trained[1]).mean() > 0.9


@pytest.mark.parametrize(("n_networks", "expected"), [(1, 8), (2, 4), (5, 1), (50, 1)])
def test_batches_to_evaluate_are_bounded_in_bytes(monkeypatch, n_networks, expected):
    monkeypatch.setattr(net_module, "EVALUATED_BYTES", 8 * X[0].nbytes)
    seen = Seen(X)
    model = small_stack(n_networks=n_networks, max_epochs=1, callbacks=[seen], **AS_THEY_ARE)
    model.fit(X, Y, cost=COST, X_val=X, y_val=Y, cost_val=COST)
    sizes = [len(numbers) for numbers, *_ in seen.evaluated]
    assert sum(sizes) == 60
    assert max(sizes) == expected


def test_large_batches_are_not_kept_while_the_next_ones_are_read(monkeypatch):
    monkeypatch.setattr(batches_module, "GATHER_BYTES", 1)
    kept = []

    class Keep(Seen):
        def _note(self, module, args):
            assert all(reference() is None for reference in kept[:-1])
            if torch.is_grad_enabled():
                kept.append(ref(args[0]))

    small_stack(batch_size=8, callbacks=[Keep(X)], **AS_THEY_ARE).fit(X, Y)
    assert len(kept) == 18
