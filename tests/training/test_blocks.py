import numpy as np
import pytest
import torch

from auxcst_sklearn._checks import lazy_rows
from auxcst_sklearn._training import batches as batches_module
from auxcst_sklearn._training.batches import Batches, BlockBatches, Rows
from auxcst_sklearn._training.folds import sampled_folds
from auxcst_sklearn._training.processes import Processes
from tests.factories import small_mlp, small_stack, training_set
from tests.seen import AS_THEY_ARE, Noting, Seen

N, D = 1000, 3
X, Y = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32), np.arange(N) % 4


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(lazy_rows, "LARGE_BYTES", 100)
    monkeypatch.setattr(batches_module, "BLOCK_BYTES", 7 * D * 4)
    monkeypatch.setattr(batches_module, "MIXED_BYTES", 70 * D * 4)


@pytest.fixture
def rows():
    weight = np.arange(1, N + 1, dtype=float)
    return Rows(training_set(X, Y, 1 - np.eye(4), True, weight), "cpu")


def generators(n):
    return [torch.Generator().manual_seed(i) for i in range(n)]


def fit(model, **given):
    """What the networks of a model see of a thousand samples, in batches of 64."""
    seen = Seen(X)
    model.set_params(batch_size=64, callbacks=[seen], **AS_THEY_ARE).fit(X, Y, **given)
    return np.hstack(seen.trained), seen


def test_an_epoch_has_each_sample_once_with_its_label_and_weight_and_batches_mix_blocks(
    monkeypatch,
):
    monkeypatch.setattr(Noting, "targets", [])
    weight = np.arange(1.0, N + 1)
    trained, seen = fit(small_mlp(loss=Noting(), alpha=0, max_epochs=2), sample_weight=weight)

    assert [len(numbers) for (numbers,) in seen.trained] == 2 * ([64] * 15 + [40])
    first, second = trained.reshape(2, N)
    assert sorted(first) == sorted(second) == list(range(N))
    assert (first != np.arange(N)).mean() > 0.9
    assert (first != second).any()
    assert all(len(set(np.array(numbers) // 7)) > 8 for (numbers,) in seen.trained)  # blocks
    label, found = (torch.cat([t[i] for t in Noting.targets]).numpy() for i in (1, 2))
    np.testing.assert_array_equal(label, Y[trained[0]])
    np.testing.assert_allclose(found, weight[trained[0]] / weight.mean(), rtol=1e-6)


def test_networks_of_a_stack_see_all_but_their_folds():
    groups = np.repeat(np.arange(20), np.r_[[10] * 10, [90] * 10])  # folds of many sizes
    trained, seen = fit(small_stack(max_epochs=1), groups=groups)

    folds = [set(groups) - set(groups[own]) for own in trained]
    sizes = [(~np.isin(groups, [*fold])).sum() for fold in folds]
    assert len(set(sizes)) > 1
    assert [len(set(own)) for own in trained] == [min(sizes)] * 3
    for fold, unseen in zip(folds, seen.held_out, strict=True):
        assert len(fold) == 4
        assert set(groups[unseen]) <= fold


@pytest.mark.parametrize("kind", [Batches, BlockBatches])
def test_processes_share_out_each_batch(rows, kind):
    whole = list(kind([rows], 64, generators(1)))
    parts = [list(kind([rows], 64, generators(1), group=Processes(i, 2))) for i in range(2)]
    for (x, target), (x0, target0), (x1, target1) in zip(whole, *parts):
        assert torch.equal(x, torch.cat([x0, x1], dim=1))
        assert torch.equal(target.label, torch.cat([target0.label, target1.label]))
        assert torch.equal(target.weight, torch.cat([target0.weight, target1.weight]))


LABEL = np.repeat([0, 1, 2], [90_000, 9_900, 100])


def test_folds_have_alike_many_rows_of_each_class_that_count_as_many_as_there_are():
    found = sampled_folds(LABEL, 5, 0.2, 2**14, random_state=0)  # 4,096 rows in all
    assert np.unique(np.concatenate(found.evaluated)).size == sum(map(len, found.evaluated))
    for i, (rows, weight) in enumerate(zip(found.evaluated, found.weight)):
        assert (found.of_row[rows] == i).all()
        np.testing.assert_array_equal(np.bincount(LABEL[rows]), [273, 273, 20])
        assert weight.mean() == pytest.approx(1)
        share = np.bincount(LABEL[rows], weight) / weight.sum()
        np.testing.assert_allclose(share, [0.9, 0.099, 0.001])
        assert (np.diff(rows) > 0).all()
    assert (found.of_row == 5).sum() == len(LABEL) - sum(map(len, found.evaluated))


def test_folds_of_groups_have_no_group_in_common():
    groups = np.random.RandomState(0).randint(1000, size=len(LABEL))
    found = sampled_folds(LABEL, 2, 0.1, 4, random_state=0, groups=groups)
    folds = [set(groups[found.of_row == i]) for i in range(3)]
    assert sum(map(len, folds)) == len(set(groups))
    assert len(folds[0]) == len(folds[1]) == 100
    for i in range(2):
        assert set(groups[found.evaluated[i]]) <= folds[i]
    with pytest.raises(ValueError, match="There are 9 different values of groups"):
        sampled_folds(LABEL, 2, 0.1, 4, random_state=0, groups=groups % 9)


def test_classes_of_a_few_rows_each():
    found = sampled_folds(np.arange(600) % 300, 5, 0.2, 4, random_state=0)
    assert [len(rows) for rows in found.evaluated] == [120] * 5
    assert np.unique(np.concatenate(found.evaluated)).size == 600
    assert (np.concatenate(found.weight) == 1).all()
