"""Caltech-101 with its classes as leaves of the tree of Caltech-256."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.image_sets import load_parts

TREE = Path(__file__).with_name("caltech101_classes.csv")


class Caltech101(NamedTuple):
    """Images as bytes, the first `n_train` for training; the path in the tree of each class."""

    images: NDArray[np.uint8]
    target: NDArray[np.int64]
    paths: list[str]
    n_train: int


def read_tree(*, in_caltech256: bool) -> dict[str, str]:
    """Path of each class in the tree, of all or of those that Caltech-256 has, too."""
    with TREE.open(newline="") as file:
        return {
            row["class"]: f"{row['path']}/{row['class']}"
            for row in csv.DictReader(file)
            if row["in_caltech256"] == "1" or not in_caltech256
        }


def load_caltech101(dataset: str, data_home: Path, *, image_size: int) -> Caltech101:
    """Read ``caltech101/{train,test}/CLASS/image.jpg`` in an archive or folder of `data_home`."""
    tree = read_tree(in_caltech256=dataset.endswith("-39"))
    names = list(tree)
    images, target = [], []
    for part in load_parts(data_home, "caltech101", "caltech101/", image_size):
        kept = np.isin(part.target_names, names)[part.target]
        number = np.array([names.index(n) if n in tree else -1 for n in part.target_names])
        images.append(part.images[kept])
        target.append(number[part.target[kept]])
    return Caltech101(
        np.concatenate(images), np.concatenate(target), list(tree.values()), len(target[0])
    )
