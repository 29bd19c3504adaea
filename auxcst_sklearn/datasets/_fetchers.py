"""Fetchers of the data sets of the experiments, with their original split."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import get_data_home
from sklearn.utils import Bunch
from sklearn.utils._param_validation import StrOptions

from .._checks.decorators import validate_params
from ._class_tree import read_taxonomy
from ._image_folder import read_images
from ._readers import Raw, archives, download, read_cifar, read_mnist

_CIFAR10_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
_FETCH_PARAMETERS = {
    "data_home": [str, os.PathLike, None],
    "subset": [StrOptions({"train", "test", "all"})],
    "scaled": ["boolean"],
    "return_X_y": ["boolean"],
    "download_if_missing": ["boolean"],
}


@validate_params(_FETCH_PARAMETERS, prefer_skip_nested_validation=True)
def fetch_mnist(
    data_home: str | os.PathLike[str] | None = None,
    *,
    subset: str = "all",
    scaled: bool = False,
    return_X_y: bool = False,
    download_if_missing: bool = True,
) -> Bunch | tuple[NDArray[Any], NDArray[Any]]:
    """Load MNIST: 60,000 + 10,000 grey images of 28 x 28 pixels, the ten digits.

    Reads the original IDX files (`train-images-idx3-ubyte`, `train-labels-idx1-ubyte`,
    `t10k-images-idx3-ubyte`, `t10k-labels-idx1-ubyte`, each also with `.gz`) from `data_home`,
    `data_home/mnist` or `data_home/MNIST/raw`. Without the files, OpenML's `mnist_784` is
    downloaded.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the files, and of OpenML's cache. By default scikit-learn's,
        :func:`sklearn.datasets.get_data_home`.
    subset : {"train", "test", "all"}, default="all"
        Which part of the original split to load. "all" is the training part, then the test part.
    scaled : bool, default=False
        If True, float32 pixels in [0, 1] instead of uint8: the smallest and the largest pixel
        value of the training part become 0 and 1, and test pixels outside are clipped. For one
        range per pixel use :class:`sklearn.preprocessing.MinMaxScaler`.
    return_X_y : bool, default=False
        If True, return `(data, target)` instead of a Bunch.
    download_if_missing : bool, default=True
        If False, raise an error when the files are missing. Downloading needs pandas.

    Returns
    -------
    Bunch, or the tuple (data, target)
        data : ndarray of shape (n_samples, 784)
            One image per row.
        images : ndarray of shape (n_samples, 1, 28, 28)
            The same memory as images, channels first.
        target : ndarray of shape (n_samples,), int64
            The digits.
        target_names : ndarray of shape (10,)
            Names of the classes.
        n_train : int
            Number of training examples: the rows of `data` from here on are test examples.

    Raises
    ------
    OSError
        If the files are missing and cannot or shall not be downloaded.
    ValueError
        If a file is truncated or corrupt.

    References
    ----------
    Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to document
    recognition", Proceedings of the IEEE 86(11), 1998.

    Examples
    --------
    >>> from auxcst_sklearn.datasets import fetch_mnist
    >>> mnist = fetch_mnist(subset="train", scaled=True)  # doctest: +SKIP
    >>> mnist.data.shape  # doctest: +SKIP
    (60000, 784)

    Without the files, the error names them and their place:

    >>> fetch_mnist("empty", download_if_missing=False)
    Traceback (most recent call last):
    ...
    FileNotFoundError: MNIST is not in empty. Put train-images-idx3-ubyte.gz, ...
    """
    home, parts = _home(data_home), _parts(subset, scaled)
    raw = read_mnist(home, parts) or download("MNIST", home, download_if_missing)
    return _bunch(raw, subset, scaled, return_X_y, target_names=np.array(list("0123456789")))


@validate_params(_FETCH_PARAMETERS, prefer_skip_nested_validation=True)
def fetch_cifar10(
    data_home: str | os.PathLike[str] | None = None,
    *,
    subset: str = "all",
    scaled: bool = False,
    return_X_y: bool = False,
    download_if_missing: bool = True,
) -> Bunch | tuple[NDArray[Any], NDArray[Any]]:
    """Load CIFAR-10: 50,000 + 10,000 colour images of 32 x 32 pixels in ten classes.

    Reads the first of these that exists in `data_home`:

    - the binary version: `cifar-10-binary.tar.gz`, or its `.bin` files in `data_home` or in
      `data_home/cifar-10-batches-bin`;
    - the python version: `cifar-10-python.tar.gz`, or its batches in `data_home` or in
      `data_home/cifar-10-batches-py`. Pickles are read without running code in them;
    - class folders `train/<class>/<image>` and `test/<class>/<image>` in a folder `cifar10-images`,
      or in an archive of this name such as `cifar10-images.tar.xz`, see :func:`load_image_folder`.
      They are ordered by class.

    If none exists, OpenML's `CIFAR_10` is downloaded.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the files, and of OpenML's cache. By default scikit-learn's,
        :func:`sklearn.datasets.get_data_home`.
    subset : {"train", "test", "all"}, default="all"
        Which part of the original split to load. "all" is the training part, then the test part.
    scaled : bool, default=False
        If True, float32 pixels in [0, 1] instead of uint8, as in :func:`fetch_mnist`.
    return_X_y : bool, default=False
        If True, return `(data, target)` instead of a Bunch.
    download_if_missing : bool, default=True
        If False, raise an error when the files are missing. Downloading needs pandas and some
        gigabytes of memory.

    Returns
    -------
    Bunch, or the tuple (data, target)
        data : ndarray of shape (n_samples, 3072)
            One image per row: red, green, blue.
        images : ndarray of shape (n_samples, 3, 32, 32)
            The same memory as images, channels first.
        target : ndarray of shape (n_samples,), int64
            Index of the class of each image in `target_names`.
        target_names : ndarray of shape (10,)
            Names of the classes.
        n_train : int
            Number of training examples: the rows of `data` from here on are test examples.

    Raises
    ------
    OSError
        If the files are missing and cannot or shall not be downloaded.
    ValueError
        If a file is truncated or corrupt, or a pickle asks to run code.

    References
    ----------
    A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", Technical Report,
    University of Toronto, 2009.

    Examples
    --------
    >>> from auxcst_sklearn.datasets import fetch_cifar10
    >>> cifar10 = fetch_cifar10(subset="test")  # doctest: +SKIP
    >>> cifar10.images.shape  # doctest: +SKIP
    (10000, 3, 32, 32)

    Without the files, the error names them and their place:

    >>> fetch_cifar10("empty", download_if_missing=False)
    Traceback (most recent call last):
    ...
    FileNotFoundError: CIFAR-10 is not in empty. Put cifar-10-binary.tar.gz or ...
    """
    home, parts = _home(data_home), _parts(subset, scaled)
    raw = (
        read_cifar(home, parts, n_classes=10)
        or _read_cifar10_images(home, parts)
        or download("CIFAR-10", home, download_if_missing)
    )
    return _bunch(raw, subset, scaled, return_X_y, target_names=np.array(_CIFAR10_CLASSES))


@validate_params(_FETCH_PARAMETERS, prefer_skip_nested_validation=True)
def fetch_cifar100(
    data_home: str | os.PathLike[str] | None = None,
    *,
    subset: str = "all",
    scaled: bool = False,
    return_X_y: bool = False,
    download_if_missing: bool = True,
) -> Bunch | tuple[NDArray[Any], NDArray[Any]]:
    """Load CIFAR-100: 50,000 + 10,000 colour images of 32 x 32 pixels in 100 classes.

    Reads from `data_home` the binary version (`cifar-100-binary.tar.gz`, or its `.bin` files there
    or in `cifar-100-binary`) or the python version (`cifar-100-python.tar.gz`, or its files there
    or in `cifar-100-python`). Pickles are read without running code in them. Otherwise a data set
    of that name is downloaded from OpenML; one in another order raises an error.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the files. By default scikit-learn's,
        :func:`sklearn.datasets.get_data_home`.
    subset : {"train", "test", "all"}, default="all"
        Which part of the original split to load. "all" is the training part, then the test part.
    scaled : bool, default=False
        If True, float32 pixels in [0, 1] instead of uint8, as in :func:`fetch_mnist`.
    return_X_y : bool, default=False
        If True, return `(data, target)` instead of a Bunch.
    download_if_missing : bool, default=True
        If False, raise an error if the files are missing, instead of downloading.

    Returns
    -------
    Bunch, or the tuple (data, target)
        data : ndarray of shape (n_samples, 3072)
            One image per row: red, green, blue.
        images : ndarray of shape (n_samples, 3, 32, 32)
            The same memory as images, channels first.
        target : ndarray of shape (n_samples,), int64
            Index of the class of each image in `target_names`.
        target_names : ndarray of shape (100,)
            Names of the classes.
        n_train : int
            Number of training examples: the rows of `data` from here on are test examples.
        coarse_target : ndarray of shape (n_samples,), int64
            Index of the superclass of each image in `coarse_target_names`.
        coarse_target_names : ndarray of shape (20,)
            Names of the superclasses.
        paths : list of 100 str
            `superclass/class` of each class, for
            :func:`~auxcst_sklearn.costs.tree_distance_cost_matrix`.

    Raises
    ------
    OSError
        If the files are missing and cannot be downloaded.
    ValueError
        If a file is truncated or corrupt, or a pickle asks to run code.

    References
    ----------
    A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", Technical Report,
    University of Toronto, 2009.

    Examples
    --------
    >>> from auxcst_sklearn.costs import tree_distance_cost_matrix
    >>> from auxcst_sklearn.datasets import fetch_cifar100
    >>> cifar100 = fetch_cifar100(subset="train")  # doctest: +SKIP
    >>> tree_distance_cost_matrix(cifar100.paths).shape  # doctest: +SKIP
    (100, 100)

    Without the files, the error names them and their place:

    >>> fetch_cifar100("empty", download_if_missing=False)
    Traceback (most recent call last):
    ...
    FileNotFoundError: CIFAR-100 is not in empty. Put cifar-100-binary.tar.gz or ...
    """
    home = _home(data_home)
    paths = read_taxonomy("cifar100_taxonomy.txt")
    coarse_names, superclass = np.unique([path[0] for path in paths], return_inverse=True)
    raw = read_cifar(
        home, _parts(subset, scaled), n_classes=100, superclass=superclass
    ) or download("CIFAR-100", home, download_if_missing)
    return _bunch(
        raw,
        subset,
        scaled,
        return_X_y,
        superclass=superclass,
        target_names=np.array([path[1] for path in paths]),
        coarse_target_names=coarse_names,
        paths=["/".join(path) for path in paths],
    )


def _home(data_home: str | os.PathLike[str] | None) -> Path:
    return Path(get_data_home() if data_home is None else data_home).expanduser()


def _parts(subset: str, scaled: bool) -> tuple[str, ...]:
    """The parts to read: scaling the test part needs the range of the training part."""
    if subset == "all" or (subset == "test" and scaled):
        return "train", "test"
    return (subset,)


def _read_cifar10_images(home: Path, parts: tuple[str, ...]) -> Raw | None:
    folder = home / "cifar10-images"
    places = [folder] if folder.is_dir() else archives(home, folder.name)
    if not places:
        return None
    images, target, classes, names = read_images(places[0], parts)
    if tuple(classes) != _CIFAR10_CLASSES:
        raise ValueError(
            f"{places[0]} has the class folders {classes.tolist()}; those of CIFAR-10 are "
            f"{list(_CIFAR10_CLASSES)}."
        )
    return images, target, sum(name.startswith("train/") for name in names)


def _bunch(
    raw: Raw,
    subset: str,
    scaled: bool,
    return_X_y: bool,
    superclass: NDArray[Any] | None = None,
    **names: Any,
) -> Bunch | tuple[NDArray[Any], NDArray[Any]]:
    """Select the subset, scale it and return it as a Bunch."""
    pixels, target, n_train = raw
    train = pixels[:n_train]
    rows = {"train": slice(n_train), "test": slice(n_train, None), "all": slice(None)}[subset]
    target = target[rows]
    images = _scale(pixels[rows], train.min(), train.max()) if scaled else pixels[rows]
    data = images.reshape(len(images), -1)
    if return_X_y:
        return data, target
    n_train = 0 if subset == "test" else n_train
    bunch = Bunch(data=data, images=images, target=target, n_train=n_train, **names)
    if superclass is not None:
        bunch.coarse_target = superclass[target]
    return bunch


def _scale(images: NDArray[Any], lowest: np.uint8, highest: np.uint8) -> NDArray[np.float32]:
    images = images.astype(np.float32)
    images -= lowest
    images /= max(highest - lowest, 1)
    return np.clip(images, 0, 1, out=images)
