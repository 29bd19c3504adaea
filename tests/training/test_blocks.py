import numpy as np
import pytest
import torch

from auxcst_sklearn._checks import lazy_rows
from auxcst_sklearn._training import batches as batches_module
from auxcst_sklearn._training.batches import Batches, BlockBatches, Rows
from auxcst_sklearn._training.folds import sampled_folds
from auxcst_sklearn._training.processes import Processes
from tests.factories import training_set

N, D = 1000, 3


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(lazy_rows, "LARGE_BYTES", 100)
    monkeypatch.setattr(batches_module, "BLOCK_BYTES", 7 * D * 4)
    monkeypatch.setattr(batches_module, "MIXED_BYTES", 70 * D * 4)


@pytest.fixture
def rows():
    X = np.arange(N * D, dtype=np.float32).reshape(N, D)
    weight = np.arange(1, N + 1, dtype=float)
    return Rows(training_set(X, np.arange(N) % 4, 1 - np.eye(4), True, weight), "cpu")


def generators(n):
    return [torch.Generator().manual_seed(i) for i in range(n)]


def row_numbers(x):
    return (x[..., 0] / D).long()


def test_an_epoch_has_each_row_once_with_its_label_and_weight_and_batches_mix_blocks(rows):
    assert rows.in_blocks
    batches = BlockBatches([rows], 64, generators(1))
    found = list(batches)
    assert [x.shape[1] for x, _ in found] == [64] * 15 + [40]
    assert len(batches) == 16
    seen = torch.cat([row_numbers(x[0]) for x, _ in found])
    assert sorted(seen.tolist()) == list(range(N))
    assert (seen != torch.arange(N)).float().mean() > 0.9
    assert all(len(set((row_numbers(x[0]) // 7).tolist())) > 8 for x, _ in found)  # blocks
    label = torch.cat([target.label for _, target in found])
    assert (label == seen % 4).all()
    weight = torch.cat([target.weight for _, target in found])
    np.testing.assert_allclose(weight, (seen + 1).numpy() / ((N + 1) / 2), rtol=1e-6)
    again = torch.cat([row_numbers(x[0]) for x, _ in batches])
    assert (again != seen).any()


def test_networks_of_a_stack_see_all_but_their_folds(rows):
    of_row = torch.full((N,), 3, dtype=torch.uint8)
    of_row[:300] = torch.arange(300) % 3  # each network lacks another hundred
    of_row[300:350] = 0  # one lacks more
    sets = [rows.without(of_row, i) for i in range(3)]
    assert [len(s) for s in sets] == [850, 900, 900]
    batches = BlockBatches(sets, 100, generators(3))
    xs, targets = zip(*batches)
    assert len(batches) == len(xs) == 9
    seen = torch.cat([row_numbers(x) for x in xs], dim=1)
    assert seen.shape == (3, 850)
    for i in range(3):
        assert len(set(seen[i].tolist())) == 850
        assert (of_row[seen[i]] != i).all()
    labels = torch.cat([target.label.view(3, -1) for target in targets], dim=1)
    assert (labels == seen % 4).all()


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
