"""Class folders of images, on disk or in a tar archive, decoded into one array."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from numbers import Integral
from pathlib import Path, PurePosixPath
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
        "subset": [str, None],
        "image_size": [Integral, tuple, list, None],
        "resize": [StrOptions({"stretch", "crop"})],
        "background": [str],
        "memmap": [str, os.PathLike, None],
    }
)
def load_image_folder(
    path: str | os.PathLike[str],
    image_size: int | tuple[int, int] | None = None,
    *,
    subset: str | None = None,
    resize: Literal["stretch", "crop"] = "stretch",
    background: str = "white",
    memmap: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Bunch:
    """Load images that are sorted into one folder per class.

    The JPEG, PNG and WebP files `path/<class>/<image>`, or `path/<subset>/<class>/<image>`, are
    read; hidden files, other files and deeper folders are ignored. Pixels are those that viewers
    show: images are turned as their metadata (EXIF) tell, and a ground is laid below transparency.

    Parameters
    ----------
    path : str or path-like
        Folder, or tar archive of any compression, which need not be unpacked.
    image_size : int or (int, int), default=None
        Height and width of the result; one number for both. Images are resized bilinearly. None
        keeps the size, which must then be the same for all images.
    subset : str, default=None
        Folder inside `path` that holds the class folders, such as "train".
    resize : {"stretch", "crop"}, default="stretch"
        Whether images of another aspect ratio are stretched, or the largest part in the middle with
        the ratio of `image_size` is resized.
    background : str, default="white"
        Color below transparent pixels, such as "black" or "#808080"; see :mod:`PIL.ImageColor`.
    memmap : str or path-like, default=None
        A .npy file to write the images to, one by one, so that they need not fit in memory; the
        result is a memory map of it, and estimators read it batch by batch. None for memory.
    n_jobs : int, default=None
        Number of threads for decoding. None means 1 unless in a :obj:`joblib.parallel_config`
        context, -1 means all processors.
    verbose : int, default=0
        Progress messages, as in :class:`joblib.Parallel`.

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
        If a file cannot be decoded, if image sizes differ and `image_size` is None, or if
        `background` is no color.
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
    size, ground = _height_width(image_size), _ground(background)
    decode = partial(_decode, size=size, resize=resize, ground=ground)
    path, root = Path(path), PurePosixPath(subset or "")
    with _opened(path, root) as files:
        stored = [name for name in files if _is_image(name, root)]
        if not stored:
            raise FileNotFoundError(
                f"no images in {path / root}/<class>/, where files that end with "
                f"{', '.join(_SUFFIXES)} are expected. If the class folders lie deeper, name "
                "the folder that holds them with subset=."
            )
        names = sorted(stored)
        row = {name: i for i, name in enumerate(names)}
        of_image = (3, *size) if size else decode(path / stored[0], files[stored[0]]()).shape
        shape = (len(names), *of_image)
        images: NDArray[np.uint8]
        if memmap is None:
            images = np.empty(shape, np.uint8)
        else:
            images = np.lib.format.open_memmap(memmap, "w+", np.uint8, shape)

        def store(name: PurePosixPath, content: bytes) -> None:
            image = decode(path / name, content)
            if image.shape != of_image:
                raise ValueError(
                    f"image sizes differ: {path / name} is {image.shape[1]} x {image.shape[2]}, "
                    f"others are {of_image[1]} x {of_image[2]} (height x width). Pass image_size= "
                    "to resize them."
                )
            images[row[name]] = image

        # In stored order, so that a compressed archive is read once, sequentially.
        Parallel(n_jobs=n_jobs, require="sharedmem", batch_size=64, verbose=verbose)(
            delayed(store)(name, files[name]()) for name in stored
        )
    classes, target = np.unique([name.parent.name for name in names], return_inverse=True)
    return Bunch(
        data=images.reshape(len(images), -1),
        images=images,
        target=target.astype(np.int64),
        target_names=classes,
        filenames=np.array([str(name) for name in names]),
    )


@contextmanager
def _opened(path: Path, root: PurePosixPath) -> Iterator[dict[PurePosixPath, Callable[[], bytes]]]:
    """Functions that read the files of a folder or an archive, by name."""
    if path.is_dir():
        files = [file for file in (path / root).glob("*/*") if file.is_file()]
        yield {PurePosixPath(file.relative_to(path).as_posix()): file.read_bytes for file in files}
    else:
        with _opened_archive(path) as archived:
            yield archived


@contextmanager
def _naming_file(path: Path | str) -> Iterator[None]:
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
def _opened_archive(path: Path) -> Iterator[dict[PurePosixPath, Callable[[], bytes]]]:
    """Functions that read the files of a tar archive of any compression, by name, in its order."""
    with ExitStack() as stack:
        with _naming_file(path):
            tar = stack.enter_context(tarfile.open(path))
            members = tar.getmembers()
            # tarfile accepts an archive that is truncated inside a header. Decompression notices;
            # an uncompressed archive is checked for the closing block of zeros.
            if members and isinstance(tar.fileobj, io.BufferedReader):
                content = -(-members[-1].size // 512) * 512 if members[-1].isreg() else 0
                if path.stat().st_size < members[-1].offset_data + content + 512:
                    raise tarfile.ReadError("the end of the archive is missing")

        def read(member: tarfile.TarInfo) -> bytes:
            with _naming_file(path):
                return tar.extractfile(member).read()  # type: ignore[union-attr]  # a file

        files = (member for member in members if member.isfile())
        yield {PurePosixPath(member.name): partial(read, member) for member in files}


def _is_image(name: PurePosixPath, root: PurePosixPath) -> bool:
    """Whether a file is root/class/image, and neither of both is hidden."""
    is_inside = name.parent.parent == root and name.parent.name != ""
    is_hidden = any(part.startswith(".") for part in name.parts[-2:])
    return is_inside and not is_hidden and name.suffix.lower() in _SUFFIXES


def _decode(
    name: Path, content: bytes, size: tuple[int, int] | None, resize: str, ground: tuple[int, ...]
) -> NDArray[np.uint8]:
    """Decode an image to RGB, channels first, as viewers show it on a ground."""
    from PIL import Image, ImageOps

    with _naming_file(name), Image.open(io.BytesIO(content)) as image:
        image.load()
        with suppress(Exception):  # viewers ignore metadata that cannot be read, or written again
            ImageOps.exif_transpose(image, in_place=True)
    transparent = image.info.get("transparency")
    bits = content[24] if image.format == "PNG" else 8
    # Pillow would clip values above 255, or not find the transparent one.
    if image.mode.startswith(("I", "F")) or (bits > 8 and transparent is not None):
        raise ValueError(f"{name} has more than 8 bits a channel: convert it to 8 bits first.")
    if isinstance(transparent, int) and image.mode in ("1", "L") and transparent < 2**bits:
        image.info["transparency"] = transparent * 255 // (2**bits - 1)  # as Pillow scales pixels
    if image.mode != "RGB" or transparent is not None:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, ground), image)
    image = image.convert("RGB")
    if size is not None and resize == "crop":
        image = ImageOps.fit(image, size[::-1], Image.Resampling.BILINEAR)
    elif size is not None:
        image = image.resize(size[::-1], Image.Resampling.BILINEAR)
    return np.asarray(image).transpose(2, 0, 1)


def _height_width(image_size: Any) -> tuple[int, int] | None:
    if image_size is None:
        return None
    sizes = [image_size] * 2 if np.ndim(image_size) == 0 else [*image_size]
    if len(sizes) != 2 or not all(
        isinstance(size, int | np.integer) and size > 0 for size in sizes
    ):
        raise ValueError(
            "image_size should be a positive int, or two of them (height, width). "
            f"Got {image_size!r}."
        )
    return int(sizes[0]), int(sizes[1])


def _ground(background: str) -> tuple[int, ...]:
    """Red, green, blue and opacity of a color; the first that needs Pillow."""
    try:
        from PIL import ImageColor

        return (*ImageColor.getrgb(background)[:3], 255)
    except ImportError as error:
        raise ImportError(
            "Reading images needs Pillow: pip install 'auxcst_sklearn[images]'"
        ) from error
    except ValueError as error:
        raise ValueError(
            f"background={background!r}; expected a color that PIL.ImageColor reads, such as "
            "'white' or '#808080'."
        ) from error
