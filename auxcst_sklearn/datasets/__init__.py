"""Data sets of the experiments and their imbalanced variants; memory maps, and drift of columns."""

from ._class_tree import caltech256_taxonomy
from ._drift import column_drift
from ._fetchers import fetch_cifar10, fetch_cifar100, fetch_mnist
from ._image_folder import load_image_folder
from ._imbalance import make_imbalanced
from ._memmap import to_memmap

__all__ = [
    "caltech256_taxonomy",
    "column_drift",
    "fetch_cifar10",
    "fetch_cifar100",
    "fetch_mnist",
    "load_image_folder",
    "make_imbalanced",
    "to_memmap",
]
