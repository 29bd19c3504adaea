"""Rows that need not fit in memory, and images in class folders."""

from ._image_folder import load_image_folder
from ._memmap import to_memmap

__all__ = ["load_image_folder", "to_memmap"]


def __dir__() -> list[str]:
    return __all__
