"""The original files of MNIST and CIFAR, with checks of their content.

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
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml

Raw = tuple[NDArray[np.uint8], NDArray[np.int64], int]
Batch = tuple[NDArray[np.uint8], NDArray[Any]]  # images, and a row of labels for each

_CIFAR_PAGE = "https://www.cs.toronto.edu/~kriz/cifar.html"
_FILES = {
    "MNIST": "train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz "
    "and t10k-labels-idx1-ubyte.gz",
    "CIFAR-10": f"cifar-10-binary.tar.gz or cifar-10-python.tar.gz, from {_CIFAR_PAGE},",
    "CIFAR-100": f"cifar-100-binary.tar.gz or cifar-100-python.tar.gz, from {_CIFAR_PAGE},",
}
_MNIST_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
# Name on OpenML, shape of an image, number of training samples of each class.
_OPENML = {
    "MNIST": ("mnist_784", (1, 28, 28), _MNIST_COUNTS),
    "CIFAR-10": ("CIFAR_10", (3, 32, 32), [5000] * 10),
    "CIFAR-100": ("CIFAR-100", (3, 32, 32), [500] * 100),
}


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


@contextmanager
def opened_archive(path: Path) -> Iterator[dict[PurePosixPath, Callable[[], bytes]]]:
    """Functions that read the files of a tar archive of any compression, by name, in its order."""
    with ExitStack() as stack:
        with naming_file(path):
            tar = stack.enter_context(tarfile.open(path))
            members = tar.getmembers()
            # tarfile accepts an archive that is truncated inside a header. Decompression notices;
            # an uncompressed archive is checked for the closing block of zeros.
            if members and isinstance(tar.fileobj, io.BufferedReader):
                content = -(-members[-1].size // 512) * 512 if members[-1].isreg() else 0
                if path.stat().st_size < members[-1].offset_data + content + 512:
                    raise tarfile.ReadError("the end of the archive is missing")

        def read(member: tarfile.TarInfo) -> bytes:
            with naming_file(path):
                return tar.extractfile(member).read()  # type: ignore[union-attr]  # a file

        files = (member for member in members if member.isfile())
        yield {PurePosixPath(member.name): partial(read, member) for member in files}


def archives(home: Path, stem: str) -> list[Path]:
    """Find an archive under any of its usual suffixes."""
    suffixes = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
    return [path for suffix in suffixes if (path := home / (stem + suffix)).is_file()]


def read_mnist(home: Path, parts: Sequence[str]) -> Raw | None:
    """Read the IDX files of the given parts, compressed or not."""
    stems = [{"train": "train", "test": "t10k"}[part] for part in parts]
    names = [f"{stem}-{kind}" for stem in stems for kind in ("images-idx3", "labels-idx1")]
    paths = {name: path for name in names if (path := _find_idx(home, f"{name}-ubyte"))}
    if not paths:
        return None
    _check_complete(home, [f"{name}-ubyte" for name in names if name not in paths])
    batches = []
    for stem in stems:
        images, labels = (_read_idx(paths[name]) for name in names if name.startswith(stem))
        with naming_file(paths[f"{stem}-labels-idx1"]):
            _check_labels(labels[:, np.newaxis], len(images), n_classes=10)
        batches.append((images[:, np.newaxis], labels[:, np.newaxis]))
    return _join({part: [batch] for part, batch in zip(parts, batches)})


def _find_idx(home: Path, name: str) -> Path | None:
    folders = (home, home / "mnist", home / "MNIST" / "raw")
    forms = (f"{form}{end}" for form in (name, name.replace("-idx", ".idx")) for end in ("", ".gz"))
    paths = (folder / form for form in forms for folder in folders)
    return next((path for path in paths if path.is_file()), None)


def _read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes: magic number, big-endian shape, values."""
    ndim = 3 if "idx3" in path.name else 1
    with naming_file(path), (gzip.open if path.suffix == ".gz" else open)(path, "rb") as stream:
        magic, expected = stream.read(4), bytes([0, 0, 8, ndim])
        if magic != expected:
            raise ValueError(f"it starts with {magic.hex()}, an IDX file with {expected.hex()}")
        shape = struct.unpack(f">{ndim}I", stream.read(4 * ndim))
        size, content = math.prod(shape), bytearray()
        # In steps, so that neither a decompression bomb nor a false header fills memory.
        while step := stream.read(min(size + 1 - len(content), 2**24)):
            content += step
        if len(content) != size:
            found = f"{len(content)} values{' or more' if len(content) > size else ''}"
            raise ValueError(f"it holds {found}, its header says {shape}")
        return np.frombuffer(content, np.uint8).reshape(shape)


_BATCHES = {
    10: {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]},
    100: {"train": ["train"], "test": ["test"]},
}
_LABELS = {10: ["labels"], 100: ["coarse_labels", "fine_labels"]}


def read_cifar(
    home: Path, parts: Sequence[str], n_classes: int, superclass: NDArray[Any] | None = None
) -> Raw | None:
    """Read the binary or the python version, as loose files or in the original archive."""
    for kind, suffix, parse in (("binary", ".bin", _parse_binary), ("python", "", _parse_python)):
        names = {part: [name + suffix for name in _BATCHES[n_classes][part]] for part in parts}
        stem = f"cifar-{n_classes}-{kind}"
        folder = stem if n_classes == 100 else f"cifar-10-batches-{suffix[1:] or 'py'}"
        for place in (home, home / folder, *archives(home, stem)):
            batches = {}
            for name, content in _contents(place, sum(names.values(), [])):
                with naming_file(place / name):
                    pixels, labels = parse(content, _LABELS[n_classes])
                    _check_labels(labels, len(pixels), n_classes, superclass)
                    batches[name] = pixels.reshape(-1, 3, 32, 32), labels
            if batches or place.is_file():
                _check_complete(place, [n for n in sum(names.values(), []) if n not in batches])
                return _join({part: [batches[n] for n in names[part]] for part in parts})
    return None


def _contents(place: Path, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of those files that are in a folder or anywhere in an archive."""
    if place.is_file():
        with opened_archive(place) as files:
            yield from ((file.name, read()) for file, read in files.items() if file.name in names)
    else:
        yield from ((n, (place / n).read_bytes()) for n in names if (place / n).is_file())


def _parse_binary(content: bytes, label_names: Sequence[str]) -> Batch:
    """Split records of one byte per label and 3072 bytes of pixels."""
    n_labels, size = len(label_names), len(label_names) + 3072
    if not content or len(content) % size:
        raise ValueError(f"its {len(content)} bytes are no whole number of records of {size} bytes")
    records = np.frombuffer(content, np.uint8).reshape(-1, size)
    return records[:, n_labels:], records[:, :n_labels]


def _parse_python(content: bytes, label_names: Sequence[str]) -> Batch:
    """Extract pixels and labels from a pickled dictionary, without running code in it."""
    batch = _ArrayUnpickler(io.BytesIO(content), encoding="latin1").load()
    batch = batch if isinstance(batch, dict) else {}
    batch = {key.decode() if isinstance(key, bytes) else key: batch[key] for key in batch}
    if not {"data", *label_names} <= batch.keys():
        raise ValueError(f"it is no pickled dictionary with 'data' and {label_names}")
    pixels, *labels = (_array(batch[name]) for name in ("data", *label_names))
    if pixels.dtype != np.uint8:
        raise ValueError(f"it holds pixels of type {pixels.dtype} instead of unsigned bytes")
    return pixels, np.column_stack(labels)


class _Pickled:
    """An array or a type of numbers in a pickle: arguments and state; nothing is run."""

    state: Any = None

    def __init__(self, *args: Any) -> None:
        self.args = args

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _numbers(content: Any, dtype: Any, shape: Any, order: Any = "C") -> NDArray[Any]:
    """An array of integers from bytes, which Python 2 pickled as a string."""
    kind = np.dtype(dtype.state[1] + dtype.args[0])
    if kind.kind not in "iu":
        raise ValueError(f"it holds {kind} instead of integers or unsigned bytes")
    raw = content.encode("latin1") if isinstance(content, str) else content
    numbers: NDArray[Any] = np.frombuffer(raw, kind).reshape(shape, order=order)
    return numbers


def _array(value: Any) -> NDArray[Any]:
    """A pickled array, or a list of numbers, as an array."""
    if not isinstance(value, _Pickled):
        return np.array(value)
    _, shape, dtype, is_fortran, content = value.state
    return _numbers(content, dtype, shape, "F" if is_fortran else "C")


class _ArrayUnpickler(pickle.Unpickler):
    """Reads plain Python values and arrays; any other name in a pickle raises an error."""

    admitted: dict[str, Any] = {
        "numpy.ndarray": _Pickled,
        "numpy.dtype": _Pickled,
        "numpy.core.multiarray._reconstruct": _Pickled,
        "numpy.core.multiarray.scalar": lambda dtype, content: _numbers(content, dtype, ()),
        "numpy.core.numeric._frombuffer": _numbers,  # of Python 3, protocol 5
        "_codecs.encode": lambda text, _: text.encode("latin1"),  # of Python 3, protocol 2
    }

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if (known := full.replace("numpy._core", "numpy.core")) not in self.admitted:
            raise pickle.UnpicklingError(
                f"it asks to run {full}, which no CIFAR file needs; nothing was run"
            )
        return self.admitted[known]


def download(data_set: str, home: Path, allowed: bool) -> Raw:
    """Download both parts from OpenML."""
    missing = f"{data_set} is not in {home}. Put {_FILES[data_set]} there."
    if not allowed:
        raise FileNotFoundError(missing)
    name, shape, train_counts = _OPENML[data_set]
    try:
        X, y = fetch_openml(name, version=1, data_home=home, return_X_y=True, as_frame=False)
    except (OSError, ValueError) as error:  # no network, or no such data set
        raise OSError(f"{missing} Downloading failed: {error}") from error
    images, target = X.astype(np.uint8).reshape(-1, *shape), y.astype(np.int64)
    n_train = sum(train_counts)
    # The split is by position, so a copy in another order would mix training and test samples.
    same_order = np.array_equal(np.bincount(target[:n_train]), train_counts)
    if not same_order or not channels_first(images[:1000]):
        raise OSError(f"OpenML gives {data_set} in another order. {missing}")
    return images, target, n_train


def channels_first(images: NDArray[np.uint8]) -> bool:
    """Whether images are (n, C, H, W) and not (n, H, W, C), judged by similarity of neighbours."""
    rows = images.reshape(len(images), -1).astype(np.int16)
    n_channels = images.shape[1]
    one, three = (np.abs(rows[:, gap:] - rows[:, :-gap]).mean() for gap in (1, n_channels))
    return n_channels == 1 or bool(one < three)


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
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= n_classes:
        raise ValueError(f"its labels should be integers between 0 and {n_classes - 1}")
    if superclass is not None and np.any(superclass[labels[:, 1]] != labels[:, 0]):
        raise ValueError("its coarse labels contradict its fine labels")


def _join(batches: dict[str, list[Batch]]) -> Raw:
    """Concatenate the batches of all parts."""
    images, labels = zip(*(batch for part in batches.values() for batch in part))
    n_train = sum(len(images) for images, _ in batches.get("train", []))
    return np.concatenate(images), np.concatenate(labels)[:, -1].astype(np.int64), n_train
