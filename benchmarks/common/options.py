"""The command line: the options that several benchmarks have."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.common.provenance import program

DATA_HOME = Path("data")

SHARED: dict[str, dict[str, Any]] = {
    "data_home": {"type": Path, "help": "folder of the data sets"},
    "seeds": {"type": int, "nargs": "+", "help": "each draws data, costs and random states"},
    "n_seeds": {"type": int, "help": "number of seeds"},
    "n_jobs": {"type": int, "help": "processes, one thread each"},
    "out": {"type": Path, "help": "file or folder of the results"},
}


def make_parser(doc: str, **shared: Any) -> argparse.ArgumentParser:
    """Make a parser with the first line of a docstring, and shared options with these defaults."""
    parser = argparse.ArgumentParser(
        prog=program(),
        description=doc.splitlines()[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for name, default in shared.items():
        parser.add_argument(f"--{name.replace('_', '-')}", default=default, **SHARED[name])
    return parser
