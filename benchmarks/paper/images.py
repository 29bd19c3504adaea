"""Images whose classes are leaves of a tree: Caltech-256, and CIFAR-10 where it is not at hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.utils import resample
from torch.nn.functional import interpolate

from benchmarks.common.class_tree import caltech256_taxonomy
from benchmarks.common.image_folders import load_image_folder
from benchmarks.common.image_sets import load_cifar10

CIFAR10_BRANCHES = {
    "airplane": "vehicle/air",
    "automobile": "vehicle/land",
    "bird": "animal/bird",
    "cat": "animal/mammal/carnivore",
    "deer": "animal/mammal/hoofed",
    "dog": "animal/mammal/carnivore",
    "frog": "animal/amphibian",
    "horse": "animal/mammal/hoofed",
    "ship": "vehicle/water",
    "truck": "vehicle/land",
}
CLUTTER = 257


class Images(NamedTuple):
    """Images as bytes, their classes, and the path in the tree of each class.

    The first `n_train` are for training, all others for testing; None where each seed draws its
    own split.
    """

    images: NDArray[np.uint8]
    target: NDArray[np.int64]
    paths: list[str]
    n_train: int | None

    def resized(self, rows: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
        """Copy some images, with this many pixels on each side."""
        images = self.images[rows]
        if images.shape[2:] == (size, size):
            return images
        return interpolate(torch.from_numpy(images), size=(size, size), mode="bilinear").numpy()


def load_images(dataset: str, data_home: Path, *, folder: Path | None, image_size: int) -> Images:
    """Load CIFAR-10 from `data_home`, or Caltech-256 from its own folder."""
    if dataset == "caltech256":
        return load_caltech256(folder, image_size)
    cifar10 = load_cifar10(data_home)
    paths = [f"{CIFAR10_BRANCHES[name]}/{name}" for name in cifar10.names]
    return Images(cifar10.images, cifar10.target, paths, cifar10.n_train)


def load_caltech256(folder: Path, image_size: int) -> Images:
    """Load the categories that are there, without the folder of clutter.

    Some folders are spelt unlike their category in the class tree, so the number counts.
    """
    check_caltech256(folder)
    with parallel_config(n_jobs=-1, verbose=1):
        bunch = load_image_folder(folder, image_size)
    number = np.array([int(name[:3]) for name in bunch.target_names])
    kept = number < CLUTTER
    n_images = int(kept[bunch.target].sum())  # clutter comes last, so that a view will do
    taxonomy = caltech256_taxonomy()
    paths = ["/".join(taxonomy[i - 1]) for i in number[kept]]
    print(f"{folder} holds {n_images} images of {len(paths)} of the 256 categories.")
    return Images(bunch.images[:n_images], bunch.target[:n_images], paths, None)


def check_caltech256(folder: Path) -> None:
    """Raise an error with what was expected where, before anything is decoded."""
    expected = (
        "expected the folder of Caltech-256, with images 001.ak47/001_0001.jpg ... "
        "256.toad/256_0108.jpg in it"
    )
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder; {expected}.")
    names = sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name[0] != ".")
    strange = [name for name in names if not _is_category(name)]
    if strange or not names:
        found = f"class folders {strange[:5]}" if strange else "no class folders"
        raise FileNotFoundError(f"{folder} has {found}; {expected}.")


def _is_category(name: str) -> bool:
    return re.match(r"\d{3}\.", name) is not None and 1 <= int(name[:3]) <= CLUTTER


def draw_rows(
    data: Images, train_size: int | None, test_size: int | None, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw rows to train and to test on by the seed, with the shares of the classes kept."""
    seeds = np.random.SeedSequence(seed).generate_state(2)
    rows = np.arange(len(data.target))
    train = _choose(rows[: data.n_train], data.target, train_size, "--train-size", seeds[0])
    if data.n_train is None:
        rest = np.setdiff1d(rows, train)
    else:
        rest = rows[data.n_train :]
    if not len(rest):
        raise ValueError(
            f"All {len(rows)} images are for training, and none is left to test on; use a smaller "
            "--train-size."
        )
    n_classes = len(np.unique(data.target[train]))
    if n_classes < len(data.paths):
        raise ValueError(
            f"--train-size {train_size} leaves some of the {len(data.paths)} classes without an "
            "image; use a larger one."
        )
    return train, _choose(rest, data.target, test_size, "--test-size", seeds[1])


def _choose(
    rows: NDArray[np.int64], y: NDArray[np.int64], size: int | None, option: str, seed: int
) -> NDArray[np.int64]:
    if size is None:
        return rows
    if not 0 < size <= len(rows):
        raise ValueError(
            f"{option} is {size}; expected 1 to {len(rows)}, the number of images to draw from."
        )
    return resample(rows, replace=False, n_samples=size, stratify=y[rows], random_state=seed)
