"""What a saved result must say about how it came about."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("auxcst_sklearn", "torch", "skorch", "scikit-learn", "numpy", "scipy")


def provenance(*optional: str) -> dict[str, Any]:
    """Command, versions and kind of machine; `optional` packages are named if installed."""
    command = [Path(sys.argv[0]).name, *sys.argv[1:]]
    versions = {"python": platform.python_version(), **{p: version(p) for p in PACKAGES}}
    for package in optional:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return {
        "command": "python " + " ".join(map(shlex.quote, command)),
        "versions": versions,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }
