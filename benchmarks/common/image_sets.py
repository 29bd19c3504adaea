"""MNIST, CIFAR-10 and CIFAR-100 with their published split, and imbalanced variants.

MNIST is read from its original IDX files, CIFAR from images in class folders, which may lie in an
archive: ``cifar10-images/{train,test}/CLASS/IMAGE`` and
``cifar100-images/cifar100/{train,test}/CLASS/IMAGE``.
"""

from __future__ import annotations

import gzip
import math
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state

from benchmarks.common.image_folders import load_image_folder


class ImageSet(NamedTuple):
    """Images as bytes, (n, C, H, W), the first `n_train` for training, and their classes."""

    images: NDArray[np.uint8]
    target: NDArray[np.int64]
    names: list[str]
    n_train: int

    def scaled_rows(self) -> NDArray[np.float32]:
        """A row per image; the range of the training part becomes [0, 1], which clips the rest."""
        lowest, highest = self.images[: self.n_train].min(), self.images[: self.n_train].max()
        rows = self.images.reshape(len(self.images), -1).astype(np.float32)
        rows -= lowest
        rows /= max(highest - lowest, 1)
        return np.clip(rows, 0, 1, out=rows)


def load_mnist(data_home: Path) -> ImageSet:
    """Read ``train-images-idx3-ubyte`` and so on, also with ``.gz``, here or in ``mnist/``."""
    images, labels = (
        [_read_idx(data_home, f"{part}-{kind}-ubyte") for part in ("train", "t10k")]
        for kind in ("images-idx3", "labels-idx1")
    )
    for pixels, digits in zip(images, labels):
        if len(pixels) != len(digits):
            raise ValueError(f"{data_home} has {len(pixels)} images and {len(digits)} labels.")
    return ImageSet(
        np.concatenate(images)[:, np.newaxis],
        np.concatenate(labels).astype(np.int64),
        list("0123456789"),
        len(images[0]),
    )


def _read_idx(data_home: Path, name: str) -> NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes: magic number, big-endian shape, values."""
    places = [folder / name for folder in (data_home, data_home / "mnist")]
    files = [path for place in places for path in (place, Path(f"{place}.gz")) if path.is_file()]
    if not files:
        raise FileNotFoundError(f"{data_home} lacks {name}, a file of MNIST.")
    with (gzip.open if files[0].suffix == ".gz" else open)(files[0], "rb") as stream:
        content = stream.read()
    n_axes = 3 if "idx3" in name else 1
    shape = np.frombuffer(content[4 : 4 + 4 * n_axes], ">u4").tolist()
    if content[:4] != bytes([0, 0, 8, n_axes]) or len(content) != 4 + 4 * n_axes + math.prod(shape):
        raise ValueError(f"{files[0]} is no whole IDX file of unsigned bytes; replace it.")
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def load_cifar10(data_home: Path) -> ImageSet:
    """Read ``cifar10-images``; the numbers of its classes follow the alphabet."""
    return _load_cifar(data_home, "cifar10", top="", n_classes=10)


def load_cifar100(data_home: Path) -> ImageSet:
    """Read ``cifar100-images``; the numbers of its classes follow the alphabet."""
    return _load_cifar(data_home, "cifar100", top="cifar100/", n_classes=100)


def _load_cifar(data_home: Path, name: str, top: str, n_classes: int) -> ImageSet:
    train, test = load_parts(data_home, name, top)
    names = train.target_names.tolist()
    if len(names) != n_classes or names != test.target_names.tolist():
        raise ValueError(
            f"{data_home}/{name}-images has {len(names)} classes to train on and "
            f"{len(test.target_names)} to test on; expected the same {n_classes}."
        )
    return ImageSet(
        np.concatenate([train.images, test.images]),
        np.concatenate([train.target, test.target]),
        names,
        len(train.target),
    )


def load_parts(
    data_home: Path, name: str, top: str, image_size: int | None = None
) -> tuple[Bunch, Bunch]:
    """Training and test images of the folder `name`-images or the archive `name`-images.tar.xz."""
    folder = data_home / f"{name}-images"
    with TemporaryDirectory() as unpacked:
        if not folder.is_dir():
            with tarfile.open(data_home / f"{name}-images.tar.xz") as archive:
                archive.extractall(unpacked, filter="data")
            folder = Path(unpacked)
        train, test = (
            load_image_folder(folder / top / part, image_size) for part in ("train", "test")
        )
    return train, test


IMAGE_SETS: dict[str, Callable[[Path], ImageSet]] = {
    "mnist": load_mnist,
    "cifar10": load_cifar10,
    "cifar100": load_cifar100,
}


def thin_out(y: NDArray, random_state: int) -> NDArray[np.intp]:
    """The rows that are left where 40 % of the classes, at random, lose 70 % of their rows."""
    rng = check_random_state(random_state)
    classes, codes = np.unique(y, return_inverse=True)
    keep = np.ones(len(y), dtype=bool)
    for k in rng.choice(len(classes), round(0.4 * len(classes)), replace=False):
        rows = np.flatnonzero(codes == k)
        n_removed = min(round(0.7 * len(rows)), len(rows) - 1)
        keep[rng.choice(rows, n_removed, replace=False)] = False
    return np.flatnonzero(keep)
