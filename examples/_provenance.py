"""What a saved result must say about how it came about."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("auxcst_sklearn", "torch", "skorch", "scikit-learn", "numpy", "scipy")


def provenance() -> dict[str, Any]:
    """Command, versions and kind of machine."""
    command = [Path(sys.argv[0]).name, *sys.argv[1:]]
    return {
        "command": "python " + " ".join(map(shlex.quote, command)),
        "versions": {"python": platform.python_version(), **{p: version(p) for p in PACKAGES}},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }
