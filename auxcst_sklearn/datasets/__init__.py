"""Rows that need not fit in memory."""

from ._memmap import to_memmap

__all__ = ["to_memmap"]
__dir__ = __all__.copy  # without imported names
