"""Fetchers of the data sets of the experiments, with their original split."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import get_data_home
from sklearn.utils import Bunch
from sklearn.utils._param_validation import StrOptions

from .._checks.decorators import validate_params
from .._checks.docs import described_like
from .._checks.warn import warn
from ._class_tree import read_taxonomy
from ._image_folder import read_images
from ._readers import Raw, archives, download, read_cifar, read_mnist

_CIFAR10_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
_OPTIONS = {
    "data_home": [str, os.PathLike, None],
    "subset": [StrOptions({"train", "test", "all"})],
    **dict.fromkeys(("scaled", "return_X_y", "download_if_missing"), ["boolean"]),
}


@validate_params(_OPTIONS, prefer_skip_nested_validation=True)
def fetch_mnist(
    data_home: str | os.PathLike[str] | None = None,
    *,
    subset: str = "all",
    scaled: bool = False,
    return_X_y: bool = False,
    download_if_missing: bool = True,
) -> Bunch | tuple[NDArray[Any], NDArray[Any]]:
    """Load MNIST: 60,000 + 10,000 grey images of 28 x 28 pixels, the ten digits.

    Reads the original IDX files, `train-images-idx3-ubyte` and so on, also with `.gz`, from
    `data_home`, `data_home/mnist` or `data_home/MNIST/raw`; else downloads OpenML's `mnist_784`.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the files, and of OpenML's cache; None for that of scikit-learn,
        :func:`sklearn.datasets.get_data_home`.
    subset : {"train", "test", "all"}, default="all"
        Part of the original split; "all" is the training part, then the test part.
    scaled : bool, default=False
        Whether to scale the range of the training part to [0, 1], as float32, and clip the rest.
    return_X_y : bool, default=False
        Whether to return `(data, target)` instead of a Bunch.
    download_if_missing : bool, default=True
        Whether to download missing files from OpenML, which needs pandas.

    Returns
    -------
    Bunch, or the tuple (data, target)
        `data` of shape (n_samples, 784) and `images` of shape (n_samples, 1, 28, 28), which share
        their memory; the digits in `target`; `target_names`; the first `n_train` samples are the
        training part.

    Raises
    ------
    OSError, ValueError
        If files are missing and not downloaded, or corrupt.

    References
    ----------
    Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to document
    recognition", Proceedings of the IEEE 86(11), 1998.

    Examples
    --------
    >>> from auxcst_sklearn.datasets import fetch_mnist
    >>> fetch_mnist(subset="train").images.shape  # doctest: +SKIP
    (60000, 1, 28, 28)
    >>> fetch_mnist("empty", download_if_missing=False)
    Traceback (most recent call last):
    ...
    FileNotFoundError: MNIST is not in empty. Put train-images-idx3-ubyte.gz, ...
    """
    raw = _read("MNIST", data_home, subset, scaled, download_if_missing, read_mnist)
    return _bunch(raw, subset, scaled, return_X_y, target_names=np.array(list("0123456789")))


@described_like(fetch_mnist)
@validate_params(_OPTIONS, prefer_skip_nested_validation=True)
def fetch_cifar10(
    data_home: str | os.PathLike[str] | None = None,
    *,
    subset: str = "all",
    scaled: bool = False,
    return_X_y: bool = False,
    download_if_missing: bool = True,
) -> Bunch | tuple[NDArray[Any], NDArray[Any]]:
    """Load CIFAR-10: 50,000 + 10,000 colour images of 32 x 32 pixels in ten classes.

    Reads the first of these that is in `data_home`; else downloads OpenML's `CIFAR_10`:

    - the binary version: `cifar-10-binary.tar.gz`, or its files, also in `cifar-10-batches-bin`;
    - the python version: `cifar-10-python.tar.gz`, or its files, also in `cifar-10-batches-py`.
      Pickles are read without running code in them;
    - images `train/<class>/<image>` and `test/<class>/<image>`, in a folder `cifar10` or
      `cifar10-images`, or in an archive such as `cifar10-images.tar.xz`, ordered by class. A
      warning says if there are not as many as published.

    Parameters
    ----------
    As of :func:`fetch_mnist`.

    Returns
    -------
    Bunch, or the tuple (data, target)
        `data` of shape (n_samples, 3072) and `images` of shape (n_samples, 3, 32, 32), which share
        their memory; `target` indexes `target_names`; the first `n_train` samples are the training
        part.

    Raises
    ------
    OSError, ValueError
        If files are missing and not downloaded, or corrupt, or if a pickle asks to run code.

    References
    ----------
    A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", Technical Report,
    University of Toronto, 2009.

    Examples
    --------
    >>> from auxcst_sklearn.datasets import fetch_cifar10
    >>> fetch_cifar10(subset="test").images.shape  # doctest: +SKIP
    (10000, 3, 32, 32)
    >>> fetch_cifar10("empty", download_if_missing=False)
    Traceback (most recent call last):
    ...
    FileNotFoundError: CIFAR-10 is not in empty. Put cifar-10-binary.tar.gz or ...
    """
    readers = (partial(read_cifar, n_classes=10), partial(_read_images, classes=_CIFAR10_CLASSES))
    raw = _read("CIFAR-10", data_home, subset, scaled, download_if_missing, *readers)
    return _bunch(raw, subset, scaled, return_X_y, target_names=np.array(_CIFAR10_CLASSES))


@described_like(fetch_mnist)
@validate_params(_OPTIONS, prefer_skip_nested_validation=True)
def fetch_cifar100(
    data_home: str | os.PathLike[str] | None = None,
    *,
    subset: str = "all",
    scaled: bool = False,
    return_X_y: bool = False,
    download_if_missing: bool = True,
) -> Bunch | tuple[NDArray[Any], NDArray[Any]]:
    """Load CIFAR-100: 50,000 + 10,000 colour images of 32 x 32 pixels in 100 classes.

    Reads the binary or the python version, or folders of images, as :func:`fetch_cifar10` does:
    `cifar-100-binary.tar.gz` and so on, and `cifar100-images`. Else a data set of that name is
    downloaded from OpenML; one in another order raises an error.

    Parameters
    ----------
    As of :func:`fetch_mnist`.

    Returns
    -------
    Bunch, or the tuple (data, target)
        As of :func:`fetch_cifar10`. Also `coarse_target`, which indexes the 20 superclasses in
        `coarse_target_names`, and `paths`, the `superclass/class` of each of the 100 classes, for
        :func:`~auxcst_sklearn.costs.tree_distance_cost_matrix`.

    Raises
    ------
    OSError, ValueError
        If files are missing and not downloaded, or corrupt, or if a pickle asks to run code.

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
    >>> fetch_cifar100("empty", download_if_missing=False)
    Traceback (most recent call last):
    ...
    FileNotFoundError: CIFAR-100 is not in empty. Put cifar-100-binary.tar.gz or ...
    """
    coarse, classes = zip(*read_taxonomy("cifar100_taxonomy.txt"))
    coarse_names, superclass = np.unique(coarse, return_inverse=True)
    readers = (
        partial(read_cifar, n_classes=100, superclass=superclass),
        partial(_read_images, classes=classes),
    )
    raw = _read("CIFAR-100", data_home, subset, scaled, download_if_missing, *readers)
    bunch = _bunch(
        raw,
        subset,
        scaled,
        return_X_y,
        target_names=np.array(classes),
        coarse_target_names=coarse_names,
        paths=["/".join(path) for path in zip(coarse, classes)],
    )
    if isinstance(bunch, Bunch):
        bunch.coarse_target = superclass[bunch.target]
    return bunch


def _read(
    data_set: str,
    data_home: str | os.PathLike[str] | None,
    subset: str,
    scaled: bool,
    allowed: bool,
    *readers: Callable[[Path, Sequence[str]], Raw | None],
) -> Raw:
    """Read the first form of the data set that is there, or download it."""
    home = Path(get_data_home() if data_home is None else data_home).expanduser()
    # Scaling the test part needs the range of the training part.
    both = subset == "all" or (subset == "test" and scaled)
    for read in readers:
        if raw := read(home, ("train", "test") if both else (subset,)):
            return raw
    return download(data_set, home, allowed)


def _read_images(home: Path, parts: Sequence[str], classes: Sequence[str]) -> Raw | None:
    """Read CIFAR from class folders, on the disk or in an archive, and check their number."""
    stem = f"cifar{len(classes)}"
    stems = (f"{stem}-images", stem)
    folders = [home / name for name in stems if (home / name / parts[0]).is_dir()]
    places = [*folders, *(path for name in stems for path in archives(home, name))]
    if not places:
        return None
    images, names = read_images(places[0], parts, top=stem)
    # The authors' page has "maple" for the "maple_tree" of their files.
    label = {name.removesuffix("_tree"): k for k, name in enumerate(classes)}
    found = [name.parent.name.removesuffix("_tree") for name in names]
    if wrong := sorted({*found} ^ {*label}):
        raise ValueError(
            f"{places[0]} has the class folders {sorted({*found})}, which differ from CIFAR-"
            f"{len(classes)} in {wrong}."
        )
    target = np.array([label[name] for name in found])
    is_train = np.array([name.parts[-3] == "train" for name in names])
    for part, published in (("train", 50_000), ("test", 10_000)):
        counts = np.bincount(target[is_train == (part == "train")], minlength=len(classes))
        if part in parts and (counts != published // len(classes)).any():
            warn(
                f"{places[0]} has {counts.sum():,} images for {part}, {counts.min()} to "
                f"{counts.max()} in a class; CIFAR-{len(classes)} was published with "
                f"{published:,}, {published // len(classes):,} in each. Is it complete?"
            )
    return images, target, int(is_train.sum())


def _bunch(
    raw: Raw, subset: str, scaled: bool, return_X_y: bool, **names: Any
) -> Bunch | tuple[NDArray[Any], NDArray[Any]]:
    """Select the subset, scale it and return it as a Bunch."""
    pixels, target, n_train = raw
    rows = {"train": slice(n_train), "test": slice(n_train, None), "all": slice(None)}[subset]
    images: NDArray[Any] = pixels[rows]
    if scaled:
        lowest, highest = pixels[:n_train].min(), pixels[:n_train].max()
        images = images.astype(np.float32)
        images -= lowest
        images /= max(highest - lowest, 1)
        np.clip(images, 0, 1, out=images)
    data = images.reshape(len(images), -1)
    if return_X_y:
        return data, target[rows]
    n_train = 0 if subset == "test" else n_train
    return Bunch(data=data, images=images, target=target[rows], n_train=n_train, **names)
