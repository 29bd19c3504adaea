import gzip
import os
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import get_data_home

from auxcst_sklearn.datasets import fetch_cifar10, fetch_cifar100, fetch_mnist, make_imbalanced

CIFAR10 = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)

# --- MNIST ----------------------------------------------------------------------------------


def idx(array):
    """Encode an array as the IDX format says: zeros, type 8, dimensions, sizes, bytes."""
    sizes = b"".join(struct.pack(">I", size) for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def write(file, content):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)


def write_mnist(folder, form="{}-idx{}-ubyte.gz", n_train=7, n_test=4):
    """Write tiny files and return their images and labels, training part first."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n_train + n_test, 5, 6), dtype=np.uint8)
    labels = rng.integers(0, 10, n_train + n_test, dtype=np.uint8)
    for stem, rows in [("train", slice(n_train)), ("t10k", slice(n_train, None))]:
        write(folder / form.format(f"{stem}-images", 3), idx(images[rows]))
        write(folder / form.format(f"{stem}-labels", 1), idx(labels[rows]))
    return images, labels


@pytest.mark.parametrize("form", ["{}-idx{}-ubyte", "{}-idx{}-ubyte.gz", "{}.idx{}-ubyte"])
@pytest.mark.parametrize("folder", ["", "mnist", "MNIST/raw"])
def test_mnist_reads_its_original_files(tmp_path, form, folder):
    images, labels = write_mnist(tmp_path / folder, form)
    mnist = fetch_mnist(tmp_path)
    np.testing.assert_array_equal(mnist.images, images[:, np.newaxis])
    np.testing.assert_array_equal(mnist.data, images.reshape(11, 30))
    np.testing.assert_array_equal(mnist.target, labels)
    assert mnist.target_names[mnist.target].tolist() == [str(label) for label in labels]
    assert (mnist.n_train, mnist.images.dtype, mnist.target.dtype) == (7, np.uint8, np.int64)
    assert np.shares_memory(mnist.data, mnist.images)
    assert mnist.data.flags.writeable


@pytest.mark.parametrize("scaled", [False, True])
def test_subsets_are_cut_from_the_whole(tmp_path, scaled):
    write_mnist(tmp_path)
    whole = fetch_mnist(str(tmp_path), scaled=scaled)
    for subset, rows, n_train in [("train", slice(7), 7), ("test", slice(7, None), 0)]:
        part = fetch_mnist(tmp_path, subset=subset, scaled=scaled)
        np.testing.assert_array_equal(part.images, whole.images[rows])
        np.testing.assert_array_equal(part.target, whole.target[rows])
        assert part.n_train == n_train


def test_returns_data_and_target(tmp_path):
    write_mnist(tmp_path)
    X, y = fetch_mnist(tmp_path, subset="test", return_X_y=True)
    mnist = fetch_mnist(tmp_path, subset="test")
    np.testing.assert_array_equal(X, mnist.data)
    np.testing.assert_array_equal(y, mnist.target)


def test_scaled_takes_the_range_of_the_training_part(tmp_path):
    images = np.array([10, 60, 200, 110, 0, 10, 105, 255], np.uint8).reshape(4, 1, 2)
    for stem, rows in [("train", slice(2)), ("t10k", slice(2, None))]:
        write(tmp_path / f"{stem}-images-idx3-ubyte", idx(images[rows]))
        write(tmp_path / f"{stem}-labels-idx1-ubyte", idx(np.zeros(2, np.uint8)))
    mnist = fetch_mnist(tmp_path, scaled=True)
    assert mnist.data.dtype == np.float32
    assert np.shares_memory(mnist.data, mnist.images)
    expected = [[0, 50 / 190], [1, 100 / 190], [0, 0], [0.5, 1]]
    np.testing.assert_allclose(mnist.data, expected, rtol=1e-6)


def test_scaled_constant_training_part(tmp_path):
    for stem in ("train", "t10k"):
        write(tmp_path / f"{stem}-images-idx3-ubyte", idx(np.full((1, 2, 2), 9, np.uint8)))
        write(tmp_path / f"{stem}-labels-idx1-ubyte", idx(np.zeros(1, np.uint8)))
    np.testing.assert_array_equal(fetch_mnist(tmp_path, scaled=True).data, np.zeros((2, 4)))


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("train-images-idx3-ubyte", lambda c: b"\x00\x00\x0d\x03" + c[4:], "starts with 00000d03"),
        ("train-labels-idx1-ubyte", lambda c: idx(np.zeros((7, 1), np.uint8)), "starts with"),
        ("train-images-idx3-ubyte", lambda c: c[:-1], "holds 209 values"),
        ("train-images-idx3-ubyte", lambda c: c + b"\x00", "holds 211 values"),
        ("train-images-idx3-ubyte", lambda c: c[:10], "cannot be read"),
        ("train-images-idx3-ubyte", lambda c: b"", "cannot be read"),
        ("t10k-labels-idx1-ubyte", lambda c: idx(np.zeros(3, np.uint8)), "3 labels for 4 images"),
        ("t10k-labels-idx1-ubyte", lambda c: idx(np.full(4, 10, np.uint8)), "between 0 and 9"),
    ],
)
def test_damaged_idx_file_is_named(tmp_path, name, damage, message):
    write_mnist(tmp_path, "{}-idx{}-ubyte")
    (tmp_path / name).write_bytes(damage((tmp_path / name).read_bytes()))
    with pytest.raises(ValueError, match=f"{name} cannot be read: .*fresh copy") as error:
        fetch_mnist(tmp_path)
    assert message in str(error.value)


@pytest.mark.parametrize("kept", [0.3, 0.99])
def test_truncated_gzip_file_is_named(tmp_path, kept):
    write_mnist(tmp_path)
    file = tmp_path / "train-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[: int(kept * file.stat().st_size)])
    with pytest.raises(ValueError, match="train-images-idx3-ubyte.gz cannot be read"):
        fetch_mnist(tmp_path)


def test_incomplete_set_names_what_is_missing(tmp_path):
    write_mnist(tmp_path, "{}-idx{}-ubyte")
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(FileNotFoundError, match="lacks t10k-labels-idx1-ubyte:"):
        fetch_mnist(tmp_path)
    assert fetch_mnist(tmp_path, subset="train").images.shape == (7, 1, 5, 6)


@pytest.mark.parametrize(
    ("fetch", "file"),
    [
        (fetch_mnist, "train-images-idx3-ubyte.gz"),
        (fetch_cifar10, "cifar-10-binary.tar.gz"),
    ],
)
def test_missing_files_without_download(tmp_path, fetch, file):
    with pytest.raises(OSError, match=f"is not in {tmp_path}. Put {file}"):
        fetch(tmp_path, download_if_missing=False)


def test_cifar100_missing(tmp_path):
    with pytest.raises(OSError, match=f"is not in {tmp_path}. Put cifar-100-binary.tar.gz"):
        fetch_cifar100(tmp_path)


def test_data_home_defaults_to_that_of_scikit_learn(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    images, _ = write_mnist(Path(get_data_home()))
    np.testing.assert_array_equal(fetch_mnist().images[:, 0], images)


def test_rejects_unknown_subset(tmp_path):
    with pytest.raises(ValueError, match="'subset' parameter of fetch_mnist"):
        fetch_mnist(tmp_path, subset="validation")


# --- CIFAR ----------------------------------------------------------------------------------

LOOSE = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5")
FORMS = {
    (10, "binary"): ("cifar-10-batches-bin", "cifar-10-binary", LOOSE, "test_batch", ".bin"),
    (10, "python"): ("cifar-10-batches-py", "cifar-10-python", LOOSE, "test_batch", ""),
    (100, "binary"): ("cifar-100-binary", "cifar-100-binary", ("train",), "test", ".bin"),
    (100, "python"): ("cifar-100-python", "cifar-100-python", ("train",), "test", ""),
}
FETCH = {10: fetch_cifar10, 100: fetch_cifar100}
# Superclasses of some classes of CIFAR-100, as its files pair them.
COARSE = {0: 4, 1: 1, 4: 0, 8: 18, 26: 13, 41: 19, 72: 0, 99: 13}


def py2_string(value):
    return b"T" + struct.pack("<i", len(value)) + value


def py2_int(value):
    return b"J" + struct.pack("<i", value)


def py2_array(array, dtype=b"u1"):
    """Pickle an array in the way of Python 2, protocol 2, in which the originals are written."""
    shape = b"(" + b"".join(py2_int(size) for size in array.shape) + b"t"
    return (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85"
        + py2_string(b"b")
        + b"\x87R(K\x01"
        + shape
        + b"cnumpy\ndtype\n"
        + py2_string(dtype)
        + b"K\x00K\x01\x87R(K\x03"
        + py2_string(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        + py2_string(array.tobytes())
        + b"tb"
    )


def py2_batch(pixels, **labels):
    content = b"\x80\x02}(" + py2_string(b"data") + py2_array(pixels)
    for name, values in labels.items():
        content += py2_string(name.encode()) + b"](" + b"".join(map(py2_int, values)) + b"e"
    return content + b"u."


def encode(kind, pixels, labels, coarse=None):
    if kind == "binary":
        columns = [labels] if coarse is None else [coarse, labels]
        return np.column_stack([*columns, pixels]).astype(np.uint8).tobytes()
    if coarse is None:
        return py2_batch(pixels, batch_label=[1], labels=labels)
    return py2_batch(pixels, fine_labels=labels, coarse_labels=coarse)


def write_cifar(folder, n_classes, kind, n=3):
    """Write all batches, n images each, and return the images and labels, training first."""
    rng = np.random.default_rng(0)
    _, _, train, test, suffix = FORMS[n_classes, kind]
    images, labels = [], []
    for name in (*train, test):
        pixels = rng.integers(0, 256, (n, 3072), dtype=np.uint8)
        y = rng.choice(10 if n_classes == 10 else list(COARSE), n)
        coarse = None if n_classes == 10 else [COARSE[label] for label in y]
        write(folder / (name + suffix), encode(kind, pixels, y, coarse))
        images.append(pixels.reshape(n, 3, 32, 32))
        labels.append(y)
    return np.concatenate(images), np.concatenate(labels)


def pack(folder, archive, mode):
    with tarfile.open(archive, mode) as tar:
        tar.add(folder, folder.name)


@pytest.mark.filterwarnings("ignore:numpy.core")
def test_py2_batch_is_a_pickle_of_the_array():
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    batch = pickle.loads(py2_batch(pixels, labels=[1, 2, 3]), encoding="bytes")
    np.testing.assert_array_equal(batch[b"data"], pixels)
    assert batch[b"labels"] == [1, 2, 3]


@pytest.mark.parametrize("place", ["home", "folder", ".tar.gz", ".tar"])
@pytest.mark.parametrize(("n_classes", "kind"), FORMS)
def test_cifar_reads_its_original_files(tmp_path, n_classes, kind, place):
    folder, archive, *_ = FORMS[n_classes, kind]
    home = tmp_path / "home"
    if place == "home":
        images, labels = write_cifar(home, n_classes, kind)
    elif place == "folder":
        images, labels = write_cifar(home / folder, n_classes, kind)
    else:
        home.mkdir()
        images, labels = write_cifar(tmp_path / folder, n_classes, kind)
        pack(tmp_path / folder, home / (archive + place), "w:gz" if place == ".tar.gz" else "w")
    fetch = FETCH[n_classes]
    cifar = fetch(home)
    np.testing.assert_array_equal(cifar.images, images)
    np.testing.assert_array_equal(cifar.data, images.reshape(len(images), 3072))
    np.testing.assert_array_equal(cifar.target, labels)
    assert cifar.n_train == len(images) - 3
    assert cifar.data.flags.writeable
    np.testing.assert_array_equal(fetch(home, subset="test").images, images[-3:])


def test_cifar_classes(tmp_path):
    write_cifar(tmp_path / "10", 10, "binary")
    write_cifar(tmp_path / "100", 100, "binary", n=20)
    assert fetch_cifar10(tmp_path / "10").target_names.tolist() == list(CIFAR10)
    cifar100 = fetch_cifar100(tmp_path / "100", subset="test")
    coarse = [COARSE[label] for label in cifar100.target]
    np.testing.assert_array_equal(cifar100.coarse_target, coarse)
    assert (len(cifar100.target_names), len(cifar100.coarse_target_names)) == (100, 20)
    assert cifar100.target_names[[0, 41, 99]].tolist() == ["apple", "lawn_mower", "worm"]
    assert cifar100.coarse_target_names[[0, 19]].tolist() == ["aquatic_mammals", "vehicles_2"]
    assert [cifar100.paths[label] for label in (0, 72)] == [
        "fruit_and_vegetables/apple",
        "aquatic_mammals/seal",
    ]


def run_touch(file):
    """Pickle a call of os.system that creates a file."""
    return b"cos\nsystem\n(" + py2_string(f"touch {file}".encode()) + b"tR"


@pytest.mark.skipif(os.name != "posix", reason="the pickle calls touch")
def test_malicious_pickle_is_refused_and_not_run(tmp_path):
    proof = tmp_path / "executed"
    attack = b"\x80\x02" + run_touch(proof) + b"."
    pickle.loads(attack.replace(b"cos\n", b"cposix\n"), encoding="latin1")
    assert proof.exists()  # an ordinary pickle.load runs it
    proof.unlink()
    write_cifar(tmp_path, 10, "python")
    nested = py2_batch(np.zeros((1, 3072), np.uint8), labels=[1])[:-2]
    for content in (attack, nested + py2_string(b"filenames") + run_touch(proof) + b"u."):
        (tmp_path / "data_batch_3").write_bytes(content)
        with pytest.raises(ValueError, match=r"data_batch_3 cannot be read.*run os\.system"):
            fetch_cifar10(tmp_path)
        assert not proof.exists()


@pytest.mark.parametrize("name", ["frombuffer", "load", "core.multiarray.fromfile"])
def test_pickle_may_name_no_other_numpy_function(tmp_path, name):
    write_cifar(tmp_path, 10, "python")
    content = b"\x80\x02cnumpy\n" + name.encode() + b"\n(" + py2_string(b"file") + b"tR."
    (tmp_path / "test_batch").write_bytes(content)
    with pytest.raises(ValueError, match=rf"asks to run numpy\.{name}"):
        fetch_cifar10(tmp_path)


PIXELS = np.zeros((2, 3072), np.uint8)


@pytest.mark.parametrize(
    ("n_classes", "kind", "content", "message"),
    [
        (10, "binary", b"", "0 bytes are no whole number of records of 3073 bytes"),
        (10, "binary", bytes(2 * 3073 - 1), "6145 bytes are no whole number of records"),
        (100, "binary", bytes(2 * 3073), "records of 3074 bytes"),
        (10, "binary", encode("binary", PIXELS, [3, 10]), "between 0 and 9"),
        (100, "binary", encode("binary", PIXELS, [0, 1], [4, 4]), "contradict"),
        (10, "python", b"", "cannot be read"),
        (10, "python", encode("python", PIXELS, [1, 2])[:-3000], "cannot be read"),
        (10, "python", encode("python", PIXELS, [1]), "1 labels for 2 images"),
        (10, "python", encode("python", PIXELS, [1, -1]), "between 0 and 9"),
        (10, "python", encode("python", PIXELS[:, :-1], [1, 2]), "cannot be read"),
        (10, "python", pickle.dumps([1, 2], 2), "no pickled dictionary with 'data'"),
        (10, "python", py2_batch(PIXELS, fine_labels=[1, 2]), "no pickled dictionary"),
        (100, "python", encode("python", PIXELS, [0, 1], [4, 2]), "contradict"),
    ],
)
def test_damaged_cifar_file_is_named(tmp_path, n_classes, kind, content, message):
    write_cifar(tmp_path, n_classes, kind)
    test_file = "".join(FORMS[n_classes, kind][3:])
    (tmp_path / test_file).write_bytes(content)
    with pytest.raises(ValueError, match=f"{test_file} cannot be read.*fresh copy") as error:
        FETCH[n_classes](tmp_path)
    assert message in str(error.value)


def test_pickled_pixels_must_be_bytes(tmp_path):
    write_cifar(tmp_path, 10, "python")
    floats = b"\x80\x02}(" + py2_string(b"data") + py2_array(PIXELS, dtype=b"f4")
    labels = py2_string(b"labels") + b"](" + py2_int(1) + py2_int(2) + b"e"
    (tmp_path / "test_batch").write_bytes(floats + labels + b"u.")
    with pytest.raises(ValueError, match="test_batch cannot be read: .*unsigned bytes"):
        fetch_cifar10(tmp_path)


def test_missing_batch_is_named(tmp_path):
    write_cifar(tmp_path, 10, "binary")
    (tmp_path / "data_batch_4.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks data_batch_4\.bin:"):
        fetch_cifar10(tmp_path)
    assert len(fetch_cifar10(tmp_path, subset="test").images) == 3


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_truncated_cifar_archive_is_named(tmp_path, mode):
    write_cifar(tmp_path / "cifar-10-batches-bin", 10, "binary")
    archive = tmp_path / "home" / "cifar-10-binary.tar.gz"
    archive.parent.mkdir()
    pack(tmp_path / "cifar-10-batches-bin", archive, mode)
    archive.write_bytes(archive.read_bytes()[:40_000])
    with pytest.raises(ValueError, match=r"cifar-10-binary\.tar\.gz cannot be read"):
        fetch_cifar10(archive.parent)


def test_archive_without_the_files(tmp_path):
    (tmp_path / "empty").mkdir()
    pack(tmp_path / "empty", tmp_path / "cifar-100-python.tar.gz", "w:gz")
    with pytest.raises(FileNotFoundError, match=r"python\.tar\.gz lacks train, test"):
        fetch_cifar100(tmp_path)


@pytest.mark.parametrize("mode", [None, "w:xz"])
def test_cifar10_from_class_folders(tmp_path, mode):
    Image = pytest.importorskip("PIL.Image")
    home = tmp_path / "home"
    folder = (tmp_path if mode else home) / "cifar10-images"
    home.mkdir()
    for part, level in [("train", 50), ("test", 90)]:
        for k, name in enumerate(CIFAR10):
            (folder / part / name).mkdir(parents=True)
            image = Image.new("RGB", (32, 32), (level + k, level, level))
            image.save(folder / part / name / "0000.png")
    if mode:
        with tarfile.open(home / "cifar10-images.tar.xz", mode) as tar:
            for part in ("test", "train"):
                tar.add(folder / part, part)
    cifar = fetch_cifar10(home)
    assert cifar.n_train == 10
    assert cifar.target.tolist() == [*range(10), *range(10)]
    assert cifar.target_names.tolist() == list(CIFAR10)
    np.testing.assert_array_equal(cifar.images[:, 0, 0, 0], [*range(50, 60), *range(90, 100)])
    assert np.all(cifar.images[10:, 1:] == 90)
    assert np.all(fetch_cifar10(home, subset="test").images[:, 1:] == 90)
    assert fetch_cifar10(home, subset="train").n_train == 10


def test_cifar10_class_folders_must_be_its_classes(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    (tmp_path / "cifar10-images" / "test" / "lorry").mkdir(parents=True)
    Image.new("RGB", (32, 32)).save(tmp_path / "cifar10-images" / "test" / "lorry" / "0.png")
    with pytest.raises(ValueError, match=r"class folders \['lorry'\]"):
        fetch_cifar10(tmp_path, subset="test")


# --- make_imbalanced ------------------------------------------------------------------------

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
    matrix, labels = make_imbalanced(sparse.csr_matrix(X), Y.tolist(), random_state=0)
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
