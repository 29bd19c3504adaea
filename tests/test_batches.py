import numpy as np
import pytest
import torch
from scipy import sparse

from auxcst_sklearn import _batches
from auxcst_sklearn._batches import Batches, Rows, as_tensor

X = np.arange(12, dtype=np.float32).reshape(6, 2)
LABEL = np.array([0, 1, 2, 2, 1, 0])
COST = np.arange(18, dtype=np.float64).reshape(6, 3)
MATRIX = np.arange(9, dtype=np.float64).reshape(3, 3)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("per_class", [False, True])
def test_a_batch_keeps_each_row_with_its_label_cost_and_weight(kind, per_class):
    weight = np.arange(6, dtype=np.float64)
    rows = Rows(
        kind(X), LABEL, MATRIX if per_class else COST, weight, per_class=per_class, device="cpu"
    )
    index = torch.tensor([4, 0, 3])

    x, target = rows[index]

    np.testing.assert_array_equal(x.numpy(), X[index])
    np.testing.assert_array_equal(target.label.numpy(), LABEL[index])
    np.testing.assert_array_equal(target.weight.numpy(), weight[index])
    np.testing.assert_array_equal(
        target.cost.numpy(), MATRIX[LABEL[index]] if per_class else COST[index]
    )


def test_dense_rows_share_the_memory_of_x():
    rows = Rows(X, LABEL, COST, None, per_class=False, device="cpu")

    assert rows.X.data_ptr() == X.ctypes.data


def test_read_only_arrays_are_copied():
    frozen = X.copy()
    frozen.flags.writeable = False

    assert as_tensor(frozen).data_ptr() != frozen.ctypes.data
    np.testing.assert_array_equal(as_tensor(frozen).numpy(), X)


def test_batches_pass_over_every_row_once():
    rows = make_rows()
    assert order(Batches(rows, 4)) == X[:, 0].tolist()
    shuffled = Batches(rows, 4, torch.Generator().manual_seed(0))
    first, second = order(shuffled), order(shuffled)
    assert sorted(first) == sorted(second) == X[:, 0].tolist()
    assert first != second
    assert order(Batches(rows, 4, torch.Generator().manual_seed(0))) == first


def test_arrays_with_negative_strides_are_copied():
    for array in (X[::-1], X[:, ::-1], X[:1][::-1]):
        np.testing.assert_array_equal(as_tensor(array).numpy(), array)


def make_rows(X=X, label=LABEL, cost=COST, weight=None):
    return Rows(X, label, cost, weight, per_class=False, device="cpu")


def order(batches):
    return np.concatenate([x[:, 0].numpy() for x, _ in batches]).tolist()


def test_a_part_holds_the_rows_of_its_index_and_copies_none():
    rows = make_rows()
    part = rows.part(np.array([5, 1, 2]))

    assert part.X is rows.X
    assert (len(rows), len(part)) == (6, 3)
    assert order(Batches(part, 2)) == X[[5, 1, 2], 0].tolist()
    x, target = part[torch.tensor([0, 2])]
    np.testing.assert_array_equal(x, X[[5, 2]])
    np.testing.assert_array_equal(target.label, LABEL[[5, 2]])
    np.testing.assert_array_equal(target.cost, COST[[5, 2]])


@pytest.mark.parametrize(("n", "sizes"), [(8, [4, 4]), (10, [4, 4, 2]), (9, [4, 5]), (1, [1])])
def test_the_last_batch_is_smaller_but_never_one_row_of_many(n, sizes):
    rows = make_rows(np.zeros((n, 2), np.float32), np.zeros(n, np.int64), np.zeros((n, 3)))

    assert [len(x) for x, _ in Batches(rows, 4)] == sizes


@pytest.mark.parametrize("n_bytes", [1, 70, 2**20])
@pytest.mark.parametrize("weight", [None, np.arange(6.0)])
def test_batches_do_not_depend_on_how_many_are_gathered_at_once(monkeypatch, n_bytes, weight):
    monkeypatch.setattr(_batches, "GATHER_BYTES", n_bytes)
    rows = make_rows(weight=weight)
    index = torch.randperm(6, generator=torch.Generator().manual_seed(3))

    batches = Batches(rows, 2, torch.Generator().manual_seed(3))

    for (x, target), part in zip(batches, index.split(2), strict=True):
        expected_x, expected = rows[part]
        assert torch.equal(x, expected_x)
        assert torch.equal(target.cost, expected.cost)
        assert torch.equal(target.label, expected.label)
        assert (target.weight is None) == (weight is None)
        assert weight is None or torch.equal(target.weight, expected.weight)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rows_that_do_not_fit_on_the_device_are_brought_there_batch_by_batch(monkeypatch, kind):
    expected = list(Batches(make_rows(), 4))
    monkeypatch.setattr(_batches, "fits", lambda n_bytes, device: False)
    rows = make_rows(kind(X))

    assert not rows.on_device
    for (x, target), (expected_x, expected_target) in zip(Batches(rows, 4), expected, strict=True):
        assert torch.equal(x, expected_x)
        assert torch.equal(target.cost, expected_target.cost)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_half_of_the_free_memory_of_a_gpu_is_for_the_training_set():
    free, _ = torch.cuda.mem_get_info()

    assert _batches.fits(free // 4, "cuda")
    assert not _batches.fits(free, "cuda")


def test_the_memory_of_the_computer_fits_what_is_already_there():
    assert _batches.fits(10**15, "cpu")
