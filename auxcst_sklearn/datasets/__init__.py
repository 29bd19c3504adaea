"""Rows that need not fit in memory, and images in class folders."""

from ._image_folder import load_image_folder
from ._memmap import to_memmap

__all__ = ["load_image_folder", "to_memmap"]
__dir__ = __all__.copy  # without imported names
