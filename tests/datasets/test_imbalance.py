import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from auxcst_sklearn.datasets import make_imbalanced

Y = np.random.default_rng(0).permutation(np.repeat(np.arange(10), [10, 20, 30, 40, 50] * 2))
X = np.arange(len(Y) * 2).reshape(-1, 2)


def test_imbalanced_thins_two_fifths_of_the_classes():
    X_thin, y_thin, indices = make_imbalanced(X, Y, random_state=0, return_indices=True)
    kept = np.bincount(y_thin) / np.bincount(Y)
    assert sorted(kept) == pytest.approx([0.3] * 4 + [1.0] * 6)
    assert np.all(np.diff(indices) > 0)
    np.testing.assert_array_equal(X_thin, X[indices])
    np.testing.assert_array_equal(y_thin, Y[indices])


def test_imbalanced_draws_classes_and_examples():
    results = [make_imbalanced(X, Y, random_state=seed, return_indices=True) for seed in range(20)]
    thinned = {tuple(np.flatnonzero(np.bincount(y) < np.bincount(Y))) for _, y, _ in results}
    assert len(thinned) > 10
    again = make_imbalanced(X, Y, random_state=3, return_indices=True)
    np.testing.assert_array_equal(again[2], results[3][2])


@pytest.mark.parametrize(
    ("classes_fraction", "removed_fraction", "smallest"),
    [(0, 1, 10), (1, 0, 10), (1, 1, 1), (1, 0.999, 1), (0.1, 0.5, 5)],
)
def test_imbalanced_keeps_one_of_each_class(classes_fraction, removed_fraction, smallest):
    y = np.repeat(["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"], 10)
    _, y_thin = make_imbalanced(
        y, y, classes_fraction=classes_fraction, removed_fraction=removed_fraction, random_state=0
    )
    labels, counts = np.unique(y_thin, return_counts=True)
    assert len(labels) == 10
    assert counts.min() == smallest


def test_imbalanced_keeps_the_type():
    indices = make_imbalanced(X, Y, random_state=0, return_indices=True)[2]
    frame, series = make_imbalanced(pd.DataFrame(X), pd.Series(Y), random_state=0)
    assert frame.index.tolist() == series.index.tolist() == indices.tolist()
    for kind in (sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix):
        matrix, labels = make_imbalanced(kind(X), Y.tolist(), random_state=0)
        assert matrix.format == "csr"
        np.testing.assert_array_equal(matrix.toarray(), X[indices])
        assert labels == Y[indices].tolist()
    images, _ = make_imbalanced(X.reshape(-1, 1, 2, 1), Y, random_state=0)
    np.testing.assert_array_equal(images[:, 0, :, 0], X[indices])


def test_imbalanced_polars():
    pl = pytest.importorskip("polars")
    indices = make_imbalanced(X, Y, random_state=0, return_indices=True)[2]
    frame, series = make_imbalanced(pl.DataFrame(X), pl.Series(Y), random_state=0)
    np.testing.assert_array_equal(frame.to_numpy(), X[indices])
    np.testing.assert_array_equal(series.to_numpy(), Y[indices])


def test_imbalanced_rejects():
    with pytest.raises(ValueError, match="'removed_fraction' parameter of make_imbalanced"):
        make_imbalanced(X, Y, removed_fraction=70)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        make_imbalanced(X[1:], Y)
    with pytest.raises(ValueError, match="1d array"):
        make_imbalanced(X, X)
