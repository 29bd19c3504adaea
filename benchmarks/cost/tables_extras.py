"""What `bench_tables` uses of packages that come with the extra `bench` alone."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load(module: str) -> Any:
    """Import a module when it is needed; the error names the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} is not installed or not complete ({error}); it comes with the extra "
            "'bench': pip install -e .[bench]"
        ) from error
