"""The files of CIFAR in all forms they are published in, and what may be wrong with them."""

import gzip
import os
import pickle
import struct
import tarfile

import numpy as np
import pytest

from auxcst_sklearn.datasets import fetch_cifar10, fetch_cifar100
from auxcst_sklearn.datasets._readers import channels_first

CIFAR10 = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
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


def write(file, content):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)


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


@pytest.mark.parametrize("protocol", range(2, 6))
@pytest.mark.parametrize("as_labels", [list, np.array, lambda labels: list(np.array(labels))])
@pytest.mark.parametrize("key", [str, str.encode])
def test_cifar_reads_pickles_of_python_3(tmp_path, protocol, as_labels, key):
    images, labels = write_cifar(tmp_path, 10, "python")
    pixels = np.asfortranarray(images[-3:].reshape(3, 3072)) if protocol == 4 else images[-3:]
    batch = {"data": pixels.reshape(3, 3072), "labels": as_labels(labels[-3:].tolist())}
    content = {key(name): value for name, value in batch.items()}
    (tmp_path / "test_batch").write_bytes(pickle.dumps(content, protocol))

    cifar = fetch_cifar10(tmp_path)

    np.testing.assert_array_equal(cifar.images, images)
    np.testing.assert_array_equal(cifar.target, labels)


class CallsSystem:
    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return os.system, (f"touch {self.file}",)


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_of_python_3_runs_nothing_and_the_error_names_what_it_asks_for(tmp_path, protocol):
    write_cifar(tmp_path, 10, "python")
    content = pickle.dumps({"data": CallsSystem(tmp_path / "made")}, protocol)
    (tmp_path / "test_batch").write_bytes(content)

    with pytest.raises(ValueError, match=rf"asks to run {os.system.__module__}\.system"):
        fetch_cifar10(tmp_path)
    assert not (tmp_path / "made").exists()


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


def test_channels_side_by_side_are_told_from_channels_first():
    rng = np.random.default_rng(0)
    shades = np.cumsum(rng.integers(-5, 6, (20, 3, 32, 32)), axis=3) + [[[60]], [[120]], [[180]]]
    images = shades.astype(np.uint8)

    assert channels_first(images)
    mixed = np.ascontiguousarray(images.transpose(0, 2, 3, 1)).reshape(20, 3, 32, 32)
    assert not channels_first(mixed)
