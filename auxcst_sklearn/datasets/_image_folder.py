"""Class folders of images, on disk or in a tar archive, decoded into one array."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._checks.decorators import validate_params
from ._readers import naming_file, opened_archive

_SUFFIXES = frozenset([".jpg", ".jpeg", ".png"])


@validate_params(
    {
        "path": [str, os.PathLike],
        "image_size": [Integral, tuple, list, None],
        "subset": [str, None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    },
    prefer_skip_nested_validation=True,
)
def load_image_folder(
    path: str | os.PathLike[str],
    image_size: int | tuple[int, int] | None = None,
    *,
    subset: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Bunch:
    """Load images that are sorted into one folder per class.

    The JPEG and PNG files `path/<class>/<image>`, or `path/<subset>/<class>/<image>`, are read;
    hidden files, other files and deeper folders are ignored. `path` is a folder or a tar archive
    of any compression, which need not be unpacked.

    Parameters
    ----------
    path : str or path-like
        Folder or tar archive.
    image_size : int or (int, int), default=None
        Height and width of the result; one number for both. Images are resized bilinearly, ignoring
        their aspect ratio. None keeps the size, which must then be the same for all images.
    subset : str, default=None
        Folder inside `path` that holds the class folders, e.g. `"train"`, or the top folder of
        an archive.
    n_jobs : int, default=None
        Number of threads for decoding. More threads help with photographs, not with tiny images.
        None means 1 unless in a :obj:`joblib.parallel_config` context, -1 means all processors.
    verbose : int, default=0
        If positive, show progress.

    Returns
    -------
    Bunch
        images : ndarray of shape (n_samples, 3, height, width), uint8
            RGB images, ordered by class and file name.
        data : ndarray of shape (n_samples, 3 * height * width), uint8
            The same memory, one image per row.
        target : ndarray of shape (n_samples,), int64
            Index of the class of each image in `target_names`.
        target_names : ndarray of shape (n_classes,)
            Names of the class folders, sorted.
        filenames : ndarray of shape (n_samples,)
            Names of the files, relative to `path`.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist or holds no images in class folders.
    ValueError
        If a file cannot be decoded, or image sizes differ and `image_size` is None.
    ImportError
        If Pillow is missing.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> from auxcst_sklearn.datasets import load_image_folder
    >>> with TemporaryDirectory() as folder:
    ...     for color in ["blue", "red"]:
    ...         Path(folder, color).mkdir()
    ...         Image.new("RGB", (8, 6), color).save(Path(folder, color, "plain.png"))
    ...     colors = load_image_folder(folder, image_size=4)
    >>> colors.images.shape
    (2, 3, 4, 4)
    >>> colors.target_names[colors.target].tolist()
    ['blue', 'red']
    """
    images, target, classes, names = read_images(
        Path(path), [subset or ""], _height_width(image_size), n_jobs=n_jobs, verbose=verbose
    )
    return Bunch(
        data=images.reshape(len(images), -1),
        images=images,
        target=target,
        target_names=classes,
        filenames=np.array(names),
    )


def read_images(
    path: Path,
    subsets: Sequence[str],
    size: tuple[int, int] | None = None,
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.str_], list[str]]:
    """Return images, class indices, class names and file names, subset after subset."""
    _pillow()
    roots = [PurePosixPath(subset) for subset in subsets]
    with _opened(path, roots) as (stored, source):
        stored = [name for name in stored if _is_image(name, roots)]
        _check_found(path, roots, stored)
        names = sorted(stored, key=lambda name: (roots.index(name.parent.parent), name))
        row = {name: i for i, name in enumerate(names)}
        height, width = size or _decode(path / stored[0], source(stored[0])).shape[1:]
        images = np.empty((len(names), 3, height, width), np.uint8)

        def store(name: PurePosixPath, file: Path | io.BytesIO) -> None:
            image = _decode(path / name, file, size)
            _check_shape(path / name, image.shape, images.shape[1:])
            images[row[name]] = image

        # In stored order, so that a compressed archive is read once, sequentially.
        Parallel(n_jobs=n_jobs, require="sharedmem", batch_size=64)(
            delayed(store)(name, source(name)) for name in _progress(stored, verbose)
        )
    classes, target = np.unique([name.parent.name for name in names], return_inverse=True)
    return images, target.astype(np.int64), classes, [str(name) for name in names]


@contextmanager
def _opened(
    path: Path, roots: Sequence[PurePosixPath]
) -> Iterator[tuple[list[Any], Callable[..., Any]]]:
    """Yield the names of the stored files, and a function that opens a name for Pillow."""
    if path.is_dir():
        files = [file for root in roots for file in (path / root).glob("*/*") if file.is_file()]
        yield [PurePosixPath(file.relative_to(path).as_posix()) for file in files], path.joinpath
    else:
        with opened_archive(path) as (names, read):
            yield names, lambda name: io.BytesIO(read(name))


def _is_image(name: PurePosixPath, roots: Sequence[PurePosixPath]) -> bool:
    return (
        name.parent.parent in roots
        and name.parent.name != ""
        and name.suffix.lower() in _SUFFIXES
        and not name.name.startswith(".")
        and not name.parent.name.startswith(".")
    )


def _check_found(
    path: Path, roots: Sequence[PurePosixPath], names: Sequence[PurePosixPath]
) -> None:
    for root in roots:
        if not any(name.parent.parent == root for name in names):
            raise FileNotFoundError(
                f"no images in {path / root}/<class>/, where files that end with "
                f"{', '.join(sorted(_SUFFIXES))} are expected. If the class folders lie deeper, "
                "name the folder that holds them with subset=."
            )


def _decode(
    name: Path, file: Path | io.BytesIO, size: tuple[int, int] | None = None
) -> NDArray[np.uint8]:
    """Decode an image to RGB, channels first."""
    Image = _pillow()
    with naming_file(name), Image.open(file) as image:
        image.load()
    if image.mode.startswith(("I", "F")):  # Pillow would clip values above 255
        raise ValueError(f"{name} has more than 8 bits a channel: convert it to 8 bits first.")
    image = image.convert("RGB")
    if size is not None:
        image = image.resize(size[::-1], Image.Resampling.BILINEAR)
    pixels: NDArray[np.uint8] = np.asarray(image).transpose(2, 0, 1)
    return pixels


def _check_shape(name: Path, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if shape != expected:
        raise ValueError(
            f"image sizes differ: {name} is {shape[1]} x {shape[2]}, others are "
            f"{expected[1]} x {expected[2]} (height x width). Pass image_size= to resize them."
        )


def _height_width(image_size: int | Sequence[int] | None) -> tuple[int, int] | None:
    if image_size is None:
        return None
    sizes = [image_size] * 2 if isinstance(image_size, int | np.integer) else list(image_size)
    if len(sizes) != 2 or not all(isinstance(s, int | np.integer) and s > 0 for s in sizes):
        raise ValueError(
            "image_size should be a positive int, or two of them (height, width). "
            f"Got {image_size!r}."
        )
    return int(sizes[0]), int(sizes[1])


def _progress(names: Sequence[PurePosixPath], verbose: int) -> Sequence[PurePosixPath]:
    if not verbose:
        return names
    from tqdm import tqdm  # comes with skorch

    shown: Sequence[PurePosixPath] = tqdm(names, desc="images", unit="")
    return shown


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "Reading images needs Pillow: pip install auxcst_sklearn[images]"
        ) from error
    return Image
