"""Class folders of images, decoded into one array."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.utils import Bunch
from sklearn.utils._param_validation import StrOptions

from .._checks.calls import validate_params

_SUFFIXES = (".jpeg", ".jpg", ".png", ".webp")


@validate_params(
    {
        "path": [str, os.PathLike],
        "image_size": [Integral, tuple, list, None],
        "resize": [StrOptions({"stretch", "crop"})],
        "memmap": [str, os.PathLike, None],
    }
)
def load_image_folder(
    path: str | os.PathLike[str],
    image_size: int | tuple[int, int] | None = None,
    *,
    resize: Literal["stretch", "crop"] = "stretch",
    memmap: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
) -> Bunch:
    """Load images that are sorted into one folder per class.

    The JPEG, PNG and WebP files `path/<class>/<image>` are read; hidden files, other files and
    deeper folders are ignored. Pixels are those that viewers show: images are turned as their
    metadata (EXIF) tell, and transparent pixels become white.

    Parameters
    ----------
    path : str or path-like
        Folder that holds the class folders, such as "images/train". Unpack an archive first:
        ``tarfile.open(archive).extractall(path, filter="data")``.
    image_size : int or (int, int), default=None
        Height and width of the result; one number for both. Images are resized bilinearly. None
        keeps the size, which must then be the same for all images.
    resize : {"stretch", "crop"}, default="stretch"
        Whether images of another aspect ratio are stretched, or the largest part in the middle with
        the ratio of `image_size` is resized.
    memmap : str or path-like, default=None
        A .npy file to write the images to, one by one, so that they need not fit in memory; the
        result is a memory map of it, and estimators read it batch by batch. None for memory.
    n_jobs : int, default=None
        Number of threads for decoding. None means 1 unless in a :obj:`joblib.parallel_config`
        context, which also takes `verbose`; -1 means all processors.

    Returns
    -------
    Bunch
        images : ndarray of shape (n_samples, 3, height, width), uint8
            RGB images, ordered by class and file name. ``images.reshape(len(images), -1)`` has one
            image per row.
        target : ndarray of shape (n_samples,), int64
            Index of the class of each image in `target_names`.
        target_names : ndarray of shape (n_classes,)
            Names of the class folders, sorted.
        filenames : ndarray of shape (n_samples,)
            Names of the files, relative to `path`.

    Raises
    ------
    FileNotFoundError
        If `path` holds no images in class folders.
    ValueError
        If a file cannot be decoded, or if image sizes differ and `image_size` is None.
    ImportError
        If Pillow is missing; the extra ``auxcst_sklearn[images]`` installs it.

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
    size = _height_width(image_size)
    files = sorted(file for file in Path(path).glob("*/*") if _is_image(file))
    if not files:
        raise FileNotFoundError(
            f"no images in {path}/<class>/, where files that end with {', '.join(_SUFFIXES)} are "
            "expected. If the class folders lie deeper, pass the folder that holds them; unpack an "
            "archive into a folder first."
        )
    shape = len(files), *_decode(files[0], size, resize).shape
    images: NDArray[np.uint8]
    if memmap is None:
        images = np.empty(shape, np.uint8)
    else:
        images = np.lib.format.open_memmap(memmap, "w+", np.uint8, shape)

    def store(i: int, file: Path) -> None:
        image = _decode(file, size, resize)
        if image.shape != shape[1:]:
            raise ValueError(
                f"image sizes differ: {file} is {image.shape[1]} x {image.shape[2]}, others are "
                f"{shape[2]} x {shape[3]} (height x width). Pass image_size= to resize them."
            )
        images[i] = image

    Parallel(n_jobs=n_jobs, require="sharedmem", batch_size=64)(
        delayed(store)(i, file) for i, file in enumerate(files)
    )
    classes, target = np.unique([file.parent.name for file in files], return_inverse=True)
    return Bunch(
        images=images,
        target=target.astype(np.int64),
        target_names=classes,
        filenames=np.array([file.relative_to(path).as_posix() for file in files]),
    )


def _is_image(file: Path) -> bool:
    """Whether a file is an image, and neither it nor its folder is hidden."""
    is_hidden = any(part.startswith(".") for part in file.parts[-2:])
    return file.is_file() and not is_hidden and file.suffix.lower() in _SUFFIXES


def _decode(file: Path, size: tuple[int, int] | None, resize: str) -> NDArray[np.uint8]:
    """Decode an image to RGB, channels first, as viewers show it."""
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise ImportError(
            "Reading images needs Pillow: pip install 'auxcst_sklearn[images]'"
        ) from error
    content = file.read_bytes()
    try:
        image = Image.open(io.BytesIO(content))
        image.load()
    except Exception as error:  # decoders raise many types without the name of the file
        raise ValueError(
            f"{file} cannot be read: {error}. If the file is truncated or corrupt, replace it by "
            "a fresh copy."
        ) from error
    with suppress(Exception):  # viewers ignore metadata that cannot be read, or written again
        ImageOps.exif_transpose(image, in_place=True)
    bits = content[24] if image.format == "PNG" else 8
    shown = _on_white(image, bits, file)
    if size is not None and resize == "crop":
        shown = ImageOps.fit(shown, size[::-1], Image.Resampling.BILINEAR)
    elif size is not None:
        shown = shown.resize(size[::-1], Image.Resampling.BILINEAR)
    return np.asarray(shown).transpose(2, 0, 1)


def _on_white(image: Any, bits: int, file: Path) -> Any:
    """An image in RGB, with white below transparency; an error for more than 8 bits."""
    from PIL import Image

    transparent = image.info.get("transparency")
    # Pillow would clip values above 255, or not find the transparent one.
    if image.mode.startswith(("I", "F")) or (bits > 8 and transparent is not None):
        raise ValueError(f"{file} has more than 8 bits a channel: convert it to 8 bits first.")
    if isinstance(transparent, int) and image.mode in ("1", "L") and transparent < 2**bits:
        image.info["transparency"] = transparent * 255 // (2**bits - 1)  # as Pillow scales pixels
    if image.mode != "RGB" or transparent is not None:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("RGB")


def _height_width(image_size: Any) -> tuple[int, int] | None:
    if image_size is None:
        return None
    sizes = [image_size] * 2 if np.ndim(image_size) == 0 else [*image_size]
    if len(sizes) != 2 or not all(isinstance(n, int | np.integer) and n > 0 for n in sizes):
        raise ValueError(
            "image_size should be a positive int, or two of them (height, width). "
            f"Got {image_size!r}."
        )
    return int(sizes[0]), int(sizes[1])
