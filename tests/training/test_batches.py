from weakref import ref

import numpy as np
import pytest
import torch

from auxcst_sklearn._training import batches as batches_module
from auxcst_sklearn._training import net as net_module
from auxcst_sklearn._training.batches import Batches, join_targets
from tests.factories import small_mlp
from tests.training.few_rows import X, make_rows, order


def test_batches_pass_over_every_row_once():
    rows = make_rows()
    assert order(Batches([rows], 4)) == X[:, 0].tolist()
    shuffled = Batches([rows], 4, [torch.Generator().manual_seed(0)])
    first, second = order(shuffled), order(shuffled)
    assert sorted(first) == sorted(second) == X[:, 0].tolist()
    assert first != second
    assert order(Batches([rows], 4, [torch.Generator().manual_seed(0)])) == first


@pytest.mark.parametrize(("n", "sizes"), [(8, [4, 4]), (10, [4, 4, 2]), (9, [4, 5]), (1, [1])])
def test_the_last_batch_is_smaller_but_never_one_row_of_many(n, sizes):
    rows = make_rows(np.zeros((n, 2), np.float32), np.zeros(n, np.int64), np.zeros((n, 3)))

    assert [x.shape[:2] for x, _ in Batches([rows], 4)] == [(1, size) for size in sizes]


@pytest.mark.parametrize("n_bytes", [1, 70, 2**20])
@pytest.mark.parametrize("weight", [None, np.arange(6.0)])
def test_batches_do_not_depend_on_how_many_are_gathered_at_once(monkeypatch, n_bytes, weight):
    monkeypatch.setattr(batches_module, "GATHER_BYTES", n_bytes)
    rows = make_rows(weight=weight)
    index = torch.randperm(6, generator=torch.Generator().manual_seed(3))

    batches = Batches([rows], 2, [torch.Generator().manual_seed(3)])

    for (x, target), part in zip(batches, index.split(2), strict=True):
        expected_x, expected = rows[part]
        assert torch.equal(x[0], expected_x)
        assert torch.equal(target.cost, expected.cost)
        assert torch.equal(target.label, expected.label)
        assert (target.weight is None) == (weight is None)
        assert weight is None or torch.equal(target.weight, expected.weight)


def test_batches_of_a_stack_hold_those_of_every_set():
    rows = make_rows(weight=np.arange(1.0, 7))
    sets = [rows.take(np.array([0, 1, 2, 3])), rows.take(np.array([5, 4, 3, 0]))]

    stacked = Batches(sets, 2)

    separate = zip(*(Batches([part], 2) for part in sets))
    assert len(stacked) == 2
    for (x, target), parts in zip(stacked, separate, strict=True):
        for found, (expected, _) in zip(x, parts, strict=True):
            assert torch.equal(found, expected[0])
        expected = join_targets([of_set for _, of_set in parts])
        assert target.matrices is expected.matrices is None
        assert all(torch.equal(a, b) for a, b in zip(target[:3], expected[:3]))


@pytest.mark.parametrize(("n_sets", "expected"), [(1, 8), (2, 4), (5, 1), (50, 1)])
def test_batches_to_evaluate_are_bounded_in_bytes(monkeypatch, n_sets, expected):
    rows, net = make_rows(), small_mlp().fit(X, np.arange(len(X)) % 2).net_
    monkeypatch.setattr(net_module, "EVALUATED_BYTES", 8 * rows.row_nbytes)
    assert net.evaluation_batches([rows] * n_sets).size == expected


def test_large_batches_are_not_kept_while_the_next_ones_are_read(monkeypatch):
    monkeypatch.setattr(batches_module, "GATHER_BYTES", 1)
    kept = []
    for x, _ in Batches([make_rows() for _ in range(3)], 2):
        assert all(reference() is None for reference in kept[:-1])
        kept.append(ref(x))
        assert x.shape[0] == 3
        del x
    assert len(kept) == 3
