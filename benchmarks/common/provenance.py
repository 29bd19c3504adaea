"""How a saved result came about: command, versions and kind of machine."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.common.folders import ROOT

PACKAGES = ("auxcst_sklearn", "torch", "skorch", "scikit-learn", "numpy", "scipy")


def provenance(*optional: str) -> dict[str, Any]:
    """Command, versions and kind of machine; `optional` packages are named if installed."""
    versions = {"python": platform.python_version(), **{p: version(p) for p in PACKAGES}}
    for package in optional:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return {
        "command": " ".join([program(), *map(argument, sys.argv[1:])]),
        "versions": versions,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def argument(text: str) -> str:
    """An argument as in a shell; only the name of a path that is one of this machine."""
    return shlex.quote(Path(text).name if Path(text).is_absolute() else text)


def program() -> str:
    """How this program is started from the root of the repository."""
    path = Path(sys.argv[0])
    if path.is_relative_to(ROOT / "benchmarks"):
        return "python -m " + ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return f"python {path.name}"
