"""MNIST and CIFAR in the layout that the experiments read, and thinned out."""

import gzip
import struct
import tarfile

import numpy as np
import pytest

from benchmarks.common.image_sets import load_cifar10, load_cifar100, load_mnist, thin_out

# --- MNIST ------------------------------------------------------------------------------------


def idx(array):
    """Encode an array as the IDX format says: zeros, type 8, axes, sizes, bytes."""
    sizes = b"".join(struct.pack(">I", size) for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def write_mnist(folder, end="", n_train=7, n_test=4):
    """Write tiny files and return their images and labels, training part first."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    images = rng.integers(5, 200, (n_train + n_test, 5, 6), dtype=np.uint8)
    labels = rng.integers(0, 10, n_train + n_test, dtype=np.uint8)
    compress = gzip.compress if end else bytes
    for part, rows in [("train", slice(n_train)), ("t10k", slice(n_train, None))]:
        for kind, array in [("images-idx3", images), ("labels-idx1", labels)]:
            (folder / f"{part}-{kind}-ubyte{end}").write_bytes(compress(idx(array[rows])))
    return images, labels


@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize("folder", ["", "mnist"])
def test_mnist_reads_its_original_files(tmp_path, folder, end):
    images, labels = write_mnist(tmp_path / folder, end)

    mnist = load_mnist(tmp_path)

    np.testing.assert_array_equal(mnist.images, images[:, np.newaxis])
    np.testing.assert_array_equal(mnist.target, labels)
    assert (mnist.n_train, mnist.images.dtype, mnist.target.dtype) == (7, np.uint8, np.int64)


def test_rows_have_the_range_of_the_training_part(tmp_path):
    write_mnist(tmp_path)
    images = np.array([10, 60, 200, 110, 0, 10, 105, 255], np.uint8).reshape(4, 1, 2)
    for part, rows in [("train", slice(2)), ("t10k", slice(2, None))]:
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(idx(images[rows]))
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(idx(np.zeros(2, np.uint8)))

    rows = load_mnist(tmp_path).scaled_rows()

    assert rows.dtype == np.float32
    expected = [[0, 50 / 190], [1, 100 / 190], [0, 0], [0.5, 1]]
    np.testing.assert_allclose(rows, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "damage",
    [lambda c: b"\x00\x00\x0d\x03" + c[4:], lambda c: c[:-1], lambda c: c + b"\x00", lambda c: b""],
)
def test_a_damaged_file_is_named(tmp_path, damage):
    write_mnist(tmp_path)
    file = tmp_path / "train-images-idx3-ubyte"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ValueError, match="train-images-idx3-ubyte is no whole IDX file"):
        load_mnist(tmp_path)


def test_files_that_are_missing_or_do_not_fit(tmp_path):
    write_mnist(tmp_path)
    labels = tmp_path / "t10k-labels-idx1-ubyte"
    labels.write_bytes(idx(np.zeros(3, np.uint8)))
    with pytest.raises(ValueError, match="4 images and 3 labels"):
        load_mnist(tmp_path)
    labels.unlink()
    with pytest.raises(FileNotFoundError, match="lacks t10k-labels-idx1-ubyte"):
        load_mnist(tmp_path)


# --- CIFAR ------------------------------------------------------------------------------------

LAYOUT = {
    10: (load_cifar10, "cifar10-images", ""),
    100: (load_cifar100, "cifar100-images", "cifar100"),
}


def write_cifar(home, n_classes, parts=("train", "test")):
    """An image for each class and part; the red of its pixels is the number of the class."""
    Image = pytest.importorskip("PIL.Image")
    _, name, top = LAYOUT[n_classes]
    for part in parts:
        for k in range(n_classes):
            folder = home / name / top / part / f"class{k:02}"
            folder.mkdir(parents=True)
            pixel = (k, 50 if part == "train" else 90, 0)
            Image.new("RGB", (4, 4), pixel).save(folder / "0000.png")
    return home / name


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("n_classes", LAYOUT)
def test_cifar_from_class_folders(tmp_path, n_classes, packed):
    folder = write_cifar(tmp_path / "made" if packed else tmp_path, n_classes)
    if packed:
        with tarfile.open(tmp_path / f"{folder.name}.tar.xz", "w:xz") as tar:
            for entry in folder.iterdir():
                tar.add(entry, entry.name)

    cifar = LAYOUT[n_classes][0](tmp_path)

    numbers = [*range(n_classes)] * 2
    assert (cifar.n_train, cifar.target.tolist()) == (n_classes, numbers)
    assert cifar.names == [f"class{k:02}" for k in range(n_classes)]
    np.testing.assert_array_equal(cifar.images[:, 0, 0, 0], numbers)
    green = [50] * n_classes + [90] * n_classes
    np.testing.assert_array_equal(cifar.images[:, 1, 0, 0], green)


def test_a_class_that_is_missing_is_an_error(tmp_path):
    folder = write_cifar(tmp_path, 10)
    (folder / "test" / "class03" / "0000.png").unlink()
    with pytest.raises(ValueError, match="10 classes to train on and 9 to test on"):
        load_cifar10(tmp_path)


# --- fewer rows of some classes ---------------------------------------------------------------

Y = np.random.default_rng(0).permutation(np.repeat(np.arange(10), [10, 20, 30, 40, 50] * 2))


def test_two_fifths_of_the_classes_lose_rows():
    left = thin_out(Y, 0)

    kept = np.bincount(Y[left]) / np.bincount(Y)
    assert sorted(kept) == pytest.approx([0.3] * 4 + [1.0] * 6)
    assert np.all(np.diff(left) > 0)


def test_the_seed_draws_classes_and_rows():
    draws = [thin_out(Y, seed) for seed in range(20)]

    thinned = {tuple(np.flatnonzero(np.bincount(Y[d]) < np.bincount(Y))) for d in draws}
    assert len(thinned) > 10
    np.testing.assert_array_equal(thin_out(Y, 3), draws[3])


def test_each_class_keeps_a_row():
    assert set(thin_out(np.arange(5), 0)) == set(range(5))
