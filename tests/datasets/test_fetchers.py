import gzip
import struct
import tarfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import get_data_home

from auxcst_sklearn.datasets import fetch_cifar10, fetch_cifar100, fetch_mnist
from auxcst_sklearn.datasets._class_tree import read_taxonomy

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
    ("header", "message"),
    [((2, 2, 2), "holds 9 values or more, its header says"), ((2**31,) * 3, "holds 52428800 val")],
)
def test_a_small_file_takes_no_more_memory_than_it_and_its_header_say(tmp_path, header, message):
    write_mnist(tmp_path)
    content = bytes([0, 0, 8, 3]) + struct.pack(">3I", *header) + bytes(50 * 2**20)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(content, 1))
    del content

    tracemalloc.start()
    with pytest.raises(ValueError, match=message):
        fetch_mnist(tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < (2**20 if header[0] == 2 else 200 * 2**20)


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
        (fetch_cifar100, "cifar-100-binary.tar.gz"),
    ],
)
def test_missing_files_without_download(tmp_path, fetch, file):
    with pytest.raises(OSError, match=f"is not in {tmp_path}. Put {file}"):
        fetch(tmp_path, download_if_missing=False)


def test_data_home_defaults_to_that_of_scikit_learn(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    images, _ = write_mnist(Path(get_data_home()))
    np.testing.assert_array_equal(fetch_mnist().images[:, 0], images)


def test_rejects_unknown_subset(tmp_path):
    with pytest.raises(ValueError, match="'subset' parameter of fetch_mnist"):
        fetch_mnist(tmp_path, subset="validation")


# --- CIFAR as images -----------------------------------------------------------------------

CIFAR100 = [name for _, name in read_taxonomy("cifar100_taxonomy.txt")]


def write_images(folder, classes, suffix, parts=("train", "test")):
    """An image for each class and part; the red of the first pixel is the number of the class."""
    Image = pytest.importorskip("PIL.Image")
    for part in parts:
        for k, name in enumerate(classes):
            (folder / part / name).mkdir(parents=True)
            image = Image.new("RGB", (32, 32), (k, 50 if part == "train" else 90, 0))
            image.save(folder / part / name / f"0000{suffix}", lossless=True)


@pytest.mark.filterwarnings("ignore:.*Is it complete")
@pytest.mark.parametrize("layout", ["folder", "short folder", "archive", "archive of a folder"])
@pytest.mark.parametrize(
    ("fetch", "classes", "suffix"),
    [(fetch_cifar10, CIFAR10, ".png"), (fetch_cifar100, CIFAR100, ".webp")],
)
def test_cifar_from_class_folders(tmp_path, fetch, classes, suffix, layout):
    short = f"cifar{len(classes)}"
    if layout.endswith("folder") and "archive" not in layout:
        write_images(
            tmp_path / (short if "short" in layout else f"{short}-images"), classes, suffix
        )
    else:
        write_images(tmp_path / "made", classes, suffix)
        with tarfile.open(tmp_path / f"{short}-images.tar.xz", "w:xz") as tar:
            for part in ("test", "train"):
                inside = f"{short}/{part}" if "of a folder" in layout else part
                tar.add(tmp_path / "made" / part, inside)

    cifar = fetch(tmp_path)

    n = len(classes)
    assert cifar.n_train == n
    assert cifar.target.tolist() == [*range(n), *range(n)]
    assert cifar.target_names.tolist() == list(classes)
    np.testing.assert_array_equal(cifar.images[:, 0, 0, 0], [*range(n), *range(n)])
    np.testing.assert_array_equal(cifar.images[:, 1, 0, 0], [50] * n + [90] * n)
    assert np.all(fetch(tmp_path, subset="test").images[:, 1] == 90)
    assert fetch(tmp_path, subset="train").n_train == n


def test_names_of_trees_as_on_the_page_of_the_authors(tmp_path):
    classes = [name.removesuffix("_tree") for name in CIFAR100]
    write_images(tmp_path / "cifar100", classes, ".webp", ["test"])
    with pytest.warns(UserWarning, match="Is it complete"):
        cifar = fetch_cifar100(tmp_path, subset="test")
    assert classes[47] == "maple"
    assert cifar.target_names[47] == "maple_tree"
    assert (cifar.target[47], cifar.coarse_target_names[cifar.coarse_target[47]]) == (47, "trees")


def test_images_that_are_missing_are_counted(tmp_path):
    write_images(tmp_path / "cifar10-images", CIFAR10, ".png", ["test"])
    message = "has 10 images for test, 1 to 1 in a class; .* published with 10,000, 1,000 in each"
    with pytest.warns(UserWarning, match=message):
        fetch_cifar10(tmp_path, subset="test")


def test_class_folders_must_be_the_classes(tmp_path):
    write_images(tmp_path / "cifar10-images", ["lorry", *CIFAR10[:-1]], ".png", ["test"])
    with pytest.raises(ValueError, match=r"class folders \['airplane'.*in \['lorry', 'truck'\]"):
        fetch_cifar10(tmp_path, subset="test")
