import numpy as np
import pytest
import torch
from scipy import sparse

from auxcst_sklearn._checks.lazy_rows import LazyRows
from auxcst_sklearn._training import batches as batches_module
from auxcst_sklearn._training import devices
from auxcst_sklearn._training.batches import Batches
from auxcst_sklearn._training.devices import as_tensor
from tests.training.few_rows import COST, LABEL, MATRIX, X, make_rows, order


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("per_class", [False, True])
def test_a_batch_keeps_each_row_with_its_label_cost_and_weight(kind, per_class):
    weight = np.arange(6, dtype=np.float64)
    cost = MATRIX if per_class else COST
    rows = make_rows(kind(X), cost=cost, weight=weight, per_class=per_class)
    index = torch.tensor([4, 0, 3])

    x, target = rows[index]

    np.testing.assert_array_equal(x.numpy(), X[index])
    np.testing.assert_array_equal(target.label.numpy(), LABEL[index])
    np.testing.assert_array_equal(target.weight.numpy(), np.float32(weight / 2.5)[index])
    expected = MATRIX[LABEL[index]] if per_class else COST[index]
    np.testing.assert_array_equal(target.cost.numpy(), expected)


def test_dense_rows_share_the_memory_of_x():
    rows = make_rows()

    assert rows.X.data_ptr() == X.ctypes.data


def test_read_only_arrays_are_copied():
    frozen = X.copy()
    frozen.flags.writeable = False

    assert as_tensor(frozen).data_ptr() != frozen.ctypes.data
    np.testing.assert_array_equal(as_tensor(frozen).numpy(), X)


def test_arrays_with_negative_strides_are_copied():
    for array in (X[::-1], X[:, ::-1], X[:1][::-1]):
        np.testing.assert_array_equal(as_tensor(array).numpy(), array)


def test_a_part_holds_the_rows_of_its_index_and_copies_none():
    rows = make_rows()
    part = rows.take(np.array([5, 1, 2]))

    assert part.X is rows.X
    assert (len(rows), len(part)) == (6, 3)
    assert order(Batches([part], 2)) == X[[5, 1, 2], 0].tolist()
    x, target = part[torch.tensor([0, 2])]
    np.testing.assert_array_equal(x, X[[5, 2]])
    np.testing.assert_array_equal(target.label, LABEL[[5, 2]])
    np.testing.assert_array_equal(target.cost, COST[[5, 2]])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rows_that_do_not_fit_on_the_device_are_brought_there_batch_by_batch(monkeypatch, kind):
    expected = list(Batches([make_rows()], 4))
    monkeypatch.setattr(batches_module, "has_room", lambda device, n_bytes: False)
    rows = make_rows(kind(X))

    assert not rows.on_device
    for found, batch in zip(Batches([rows], 4), expected, strict=True):
        assert torch.equal(found[0], batch[0])
        assert torch.equal(found[1].cost, batch[1].cost)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_half_of_the_free_memory_of_a_gpu_is_for_the_training_set():
    free, _ = torch.cuda.mem_get_info()

    assert devices.has_room("cuda", free // 4)
    assert not devices.has_room("cuda", free)


def test_the_memory_of_the_computer_has_room_for_what_is_already_there():
    assert devices.has_room("cpu", 10**15)


@pytest.mark.parametrize("kind", [LazyRows, sparse.csr_array])
@pytest.mark.parametrize("n_bytes", [1, 2 * X[0].nbytes, 10**6])
def test_rows_are_read_in_parts_of_bounded_size(monkeypatch, kind, n_bytes):
    monkeypatch.setattr(batches_module, "READ_BYTES", n_bytes)
    rows, index = make_rows(kind(X)), torch.tensor([4, 0, 3, 1, 0])
    np.testing.assert_array_equal(rows[index][0].numpy(), X[index])
