"""Readers of the original files of MNIST and CIFAR, with checks of their content.

A reader returns ``(images, target, n_train)``, training part first, or None if its files are
missing, so that callers can try one source after the other. Images are uint8, channels first.
"""

from __future__ import annotations

import gzip
import io
import math
import pickle
import struct
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml

Parts = tuple[str, ...]
Raw = tuple[NDArray[np.uint8], NDArray[np.int64], int]


@contextmanager
def naming_file(path: Path | str) -> Iterator[None]:
    """Name the file in any error of its content: decoders raise many types without a name."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # errors of the operating system already name the file
        raise ValueError(
            f"{path} cannot be read: {error}. If the file is truncated or corrupt, replace it by "
            "a fresh copy."
        ) from error


# --- archives -------------------------------------------------------------------------------


@contextmanager
def opened_archive(
    path: Path,
) -> Iterator[tuple[list[PurePosixPath], Callable[[PurePosixPath], bytes]]]:
    """Yield the names of the files in a tar archive of any compression, and a reader function."""
    with ExitStack() as stack:
        with naming_file(path):
            tar = stack.enter_context(tarfile.open(path))
            members = tar.getmembers()
            _check_end(path, tar, members)
        files = {PurePosixPath(member.name): member for member in members if member.isfile()}

        def read(name: PurePosixPath) -> bytes:
            with naming_file(path):
                return tar.extractfile(files[name]).read()  # type: ignore[union-attr]  # a file

        yield list(files), read


def _check_end(path: Path, tar: tarfile.TarFile, members: list[tarfile.TarInfo]) -> None:
    # tarfile accepts an archive that is truncated inside a header. Decompression detects
    # truncation, so only an uncompressed archive is checked for the closing block of zeros.
    if members and isinstance(tar.fileobj, io.BufferedReader):
        last = members[-1]
        blocks = math.ceil(last.size / tarfile.BLOCKSIZE) if last.isreg() else 0
        if path.stat().st_size < last.offset_data + (blocks + 1) * tarfile.BLOCKSIZE:
            raise tarfile.ReadError("the end of the archive is missing")


def archives(home: Path, stem: str) -> list[Path]:
    """Find an archive under any of its usual suffixes."""
    suffixes = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
    return [path for suffix in suffixes if (path := home / (stem + suffix)).is_file()]


# --- MNIST ----------------------------------------------------------------------------------

_MNIST_STEMS = {"train": ("train-images", "train-labels"), "test": ("t10k-images", "t10k-labels")}


def read_mnist(home: Path, parts: Parts) -> Raw | None:
    """Read the IDX files of the given parts, compressed or not."""
    kinds = [(stem, ndim) for part in parts for stem, ndim in zip(_MNIST_STEMS[part], (3, 1))]
    found = {kind: path for kind in kinds if (path := _find_idx(home, *kind))}
    if not found:
        return None
    _check_complete(home, [f"{kind[0]}-idx{kind[1]}-ubyte" for kind in kinds if kind not in found])
    paths = list(found.values())
    batches = {}
    for part, image_path, label_path in zip(parts, paths[::2], paths[1::2]):
        images = _read_idx(image_path, 3)[:, np.newaxis]
        labels = _read_idx(label_path, 1)[:, np.newaxis]
        with naming_file(label_path):
            _check_labels(labels, len(images), n_classes=10)
        batches[part] = [(images, labels)]
    return _join(batches)


def _find_idx(home: Path, stem: str, ndim: int) -> Path | None:
    names = [f"{stem}{sep}idx{ndim}-ubyte{suffix}" for sep in "-." for suffix in ("", ".gz")]
    folders = (home, home / "mnist", home / "MNIST" / "raw")
    paths = (folder / name for folder in folders for name in names)
    return next((path for path in paths if path.is_file()), None)


def _read_idx(path: Path, ndim: int) -> NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes: magic number, big-endian shape, values."""
    with naming_file(path), (gzip.open if path.suffix == ".gz" else open)(path, "rb") as stream:
        magic, expected = stream.read(4), bytes([0, 0, 8, ndim])
        if magic != expected:
            raise ValueError(f"it starts with {magic.hex()}, an IDX file with {expected.hex()}")
        shape = struct.unpack(f">{ndim}I", stream.read(4 * ndim))
        size = math.prod(shape)
        values = np.frombuffer(_read_at_most(stream, size + 1), np.uint8)
        if len(values) != size:
            found = f"{len(values)} values{' or more' if len(values) > size else ''}"
            raise ValueError(f"it holds {found}, its header says {shape}")
        return values.reshape(shape)


def _read_at_most(stream: io.BufferedIOBase, size: int) -> bytes:
    """Read in steps, so that neither a decompression bomb nor a false header fills memory."""
    content = bytearray()
    while step := stream.read(min(size - len(content), 2**24)):
        content += step
    return bytes(content)


# --- CIFAR ----------------------------------------------------------------------------------

_PIXELS = (3, 32, 32)
_LABEL_NAMES = {10: ("labels",), 100: ("coarse_labels", "fine_labels")}
_FILES = {
    10: {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]},
    100: {"train": ["train"], "test": ["test"]},
}


class _Version(NamedTuple):
    """One of the two downloads of a data set: its archive, the folder inside, the file format."""

    archive: str
    folder: str
    suffix: str
    parse: Callable[[bytes, Sequence[str]], tuple[NDArray[Any], NDArray[Any]]]


def read_cifar(
    home: Path, parts: Parts, n_classes: int, superclass: NDArray[Any] | None = None
) -> Raw | None:
    """Read the binary or the python version, as loose files or in the original archive."""
    for version in _VERSIONS[n_classes]:
        names = {part: [f + version.suffix for f in _FILES[n_classes][part]] for part in parts}
        wanted = sum(names.values(), [])
        for place in (home, home / version.folder, *archives(home, version.archive)):
            batches = {}
            for name, content in _contents(place, wanted):
                with naming_file(place / name):
                    labels, pixels = version.parse(content, _LABEL_NAMES[n_classes])
                    _check_labels(labels, len(pixels), n_classes, superclass)
                    batches[name] = pixels.reshape(-1, *_PIXELS), labels
            if batches or place.is_file():
                _check_complete(place, [name for name in wanted if name not in batches])
                return _join({part: [batches[n] for n in names[part]] for part in parts})
    return None


def _contents(place: Path, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of those files that are in a folder or anywhere in an archive."""
    if place.is_file():
        with opened_archive(place) as (members, read):
            for member in members:
                if member.name in names:
                    yield member.name, read(member)
    else:
        for name in names:
            if (place / name).is_file():
                yield name, (place / name).read_bytes()


def _parse_binary(content: bytes, label_names: Sequence[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Split records of one byte per label and 3072 bytes of pixels."""
    n_labels = len(label_names)
    size = n_labels + math.prod(_PIXELS)
    if not content or len(content) % size:
        raise ValueError(f"its {len(content)} bytes are no whole number of records of {size} bytes")
    records = np.frombuffer(content, np.uint8).reshape(-1, size)
    return records[:, :n_labels], records[:, n_labels:]


def _parse_python(content: bytes, label_names: Sequence[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Extract labels and pixels from a pickled dictionary, without running code in it."""
    batch = _ArrayUnpickler(io.BytesIO(content), encoding="bytes").load()
    batch = {_text(key): value for key, value in batch.items()} if isinstance(batch, dict) else {}
    if not {"data", *label_names} <= batch.keys():
        raise ValueError(f"it is no pickled dictionary with 'data' and {label_names}")
    labels = [_array(batch[name], "integers", "iu") for name in label_names]
    return np.column_stack(labels), _array(batch["data"], "unsigned bytes", "u", itemsize=1)


class _Inert:
    """Placeholder for objects of a pickle: stores their arguments, runs nothing."""

    state: Any = None

    def __init__(self, *args: Any) -> None:
        self.args = args

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _ArrayUnpickler(pickle.Unpickler):
    """Reads plain Python values and arrays; any other name in a pickle raises an error.

    Python 3 creates arrays with `_frombuffer` in protocol 5, and bytes with `encode` in protocol 2.
    """

    admitted = frozenset(
        [
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
            ("_codecs", "encode"),
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy.core.multiarray", "scalar"),
            ("numpy.core.numeric", "_frombuffer"),
        ]
    )

    def find_class(self, module: str, name: str) -> type[_Inert]:
        if (module.replace("numpy._core", "numpy.core"), name) not in self.admitted:
            raise pickle.UnpicklingError(
                f"it asks to run {module}.{name}, which no CIFAR file needs; nothing was run"
            )
        return _Inert


def _bytes(value: Any) -> bytes | bytearray:
    """Bytes, also as encoded in protocol 2: a string and the name of its encoding."""
    if isinstance(value, _Inert):
        encoded: bytes = value.args[0].encode("latin1")
        return encoded
    if not isinstance(value, (bytes, bytearray)):
        raise TypeError(f"it holds an object of type {type(value).__name__} instead of bytes")
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _bytes(value).decode("latin1")


def _array(value: Any, expected: str, kinds: str, itemsize: int | None = None) -> NDArray[Any]:
    """A list of numbers, or a pickled array of numbers, as an array."""
    if not isinstance(value, _Inert):
        return np.array([_array(v, expected, kinds) if isinstance(v, _Inert) else v for v in value])
    if value.state is not None:  # of _reconstruct
        _, shape, dtype, fortran_order, content = value.state
    elif len(value.args) == 4:  # of _frombuffer
        content, dtype, shape, order = value.args
        fortran_order = _text(order) == "F"
    else:  # of scalar
        (dtype, content), shape, fortran_order = value.args, (), False
    kind = np.dtype(_text(dtype.state[1]) + _text(dtype.args[0]))
    if kind.kind not in kinds or itemsize not in (None, kind.itemsize):
        raise ValueError(f"it holds numbers of type {kind} instead of {expected}")
    numbers = np.frombuffer(_bytes(content), kind)
    shaped: NDArray[Any] = numbers.reshape(shape, order="F" if fortran_order else "C")
    return shaped


_VERSIONS = {
    10: [
        _Version("cifar-10-binary", "cifar-10-batches-bin", ".bin", _parse_binary),
        _Version("cifar-10-python", "cifar-10-batches-py", "", _parse_python),
    ],
    100: [
        _Version("cifar-100-binary", "cifar-100-binary", ".bin", _parse_binary),
        _Version("cifar-100-python", "cifar-100-python", "", _parse_python),
    ],
}


# --- missing files ---------------------------------------------------------------------------

_CIFAR_PAGE = "https://www.cs.toronto.edu/~kriz/cifar.html"
_REMEDIES = {
    "MNIST": "train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz "
    "and t10k-labels-idx1-ubyte.gz",
    "CIFAR-10": f"cifar-10-binary.tar.gz or cifar-10-python.tar.gz, from {_CIFAR_PAGE},",
    "CIFAR-100": f"cifar-100-binary.tar.gz or cifar-100-python.tar.gz, from {_CIFAR_PAGE},",
}
_MNIST_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
# Name on OpenML, shape of an image, number of training examples of each class.
_OPENML = {
    "MNIST": ("mnist_784", (1, 28, 28), _MNIST_COUNTS),
    "CIFAR-10": ("CIFAR_10", _PIXELS, [5000] * 10),
    "CIFAR-100": ("CIFAR-100", _PIXELS, [500] * 100),
}


def missing(data_set: str, home: Path) -> FileNotFoundError:
    return FileNotFoundError(f"{data_set} is not in {home}. Put {_REMEDIES[data_set]} there.")


def download(data_set: str, home: Path, allowed: bool) -> Raw:
    """Download both parts from OpenML."""
    if not allowed:
        raise missing(data_set, home)
    name, shape, train_counts = _OPENML[data_set]
    try:
        X, y = fetch_openml(name, version=1, data_home=home, return_X_y=True, as_frame=False)
    except (OSError, ValueError) as error:  # no network, or no such data set
        raise OSError(f"{missing(data_set, home)} Downloading failed: {error}") from error
    images, target = X.astype(np.uint8).reshape(-1, *shape), y.astype(np.int64)
    n_train = sum(train_counts)
    # The split is by position, so a copy in another order would mix training and test examples.
    same_order = np.array_equal(np.bincount(target[:n_train]), train_counts)
    if not same_order or not channels_first(images[:1000]):
        raise OSError(f"OpenML gives {data_set} in another order. {missing(data_set, home)}")
    return images, target, n_train


def channels_first(images: NDArray[np.uint8]) -> bool:
    """Whether images are (n, C, H, W) and not (n, H, W, C), judged by similarity of neighbours."""
    rows = images.reshape(len(images), -1).astype(np.int16)
    n_channels = images.shape[1]
    one, three = (np.abs(rows[:, gap:] - rows[:, :-gap]).mean() for gap in (1, n_channels))
    return n_channels == 1 or bool(one < three)


# --- checks ---------------------------------------------------------------------------------


def _check_complete(place: Path, lacking: Sequence[str]) -> None:
    if lacking:
        raise FileNotFoundError(
            f"{place} lacks {', '.join(lacking)}: put them beside the other files of the data set, "
            "or start from a fresh copy of it."
        )


def _check_labels(
    labels: NDArray[Any], n_images: int, n_classes: int, superclass: NDArray[Any] | None = None
) -> None:
    """Compare labels, one row per image with the class last, with images and known classes."""
    if len(labels) != n_images or n_images == 0:
        raise ValueError(f"it holds {len(labels)} labels for {n_images} images")
    if labels.min() < 0 or labels.max() >= n_classes:
        raise ValueError(f"its labels should lie between 0 and {n_classes - 1}")
    if superclass is not None and np.any(superclass[labels[:, 1]] != labels[:, 0]):
        raise ValueError("its coarse labels contradict its fine labels")


def _join(batches: dict[str, list[tuple[NDArray[Any], NDArray[Any]]]]) -> Raw:
    """Concatenate the batches (images, labels) of all parts."""
    images, labels = zip(*(batch for part in batches.values() for batch in part))
    n_train = sum(len(images) for images, _ in batches.get("train", []))
    return np.concatenate(images), np.concatenate(labels)[:, -1].astype(np.int64), n_train
