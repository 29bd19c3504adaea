"""A file of finished runs, one line of JSON for each, to which later runs are added.

A line has a result and what differs from the line before it: of what determines the result (the
identity), and of the versions and the machine, which are no part of the identity. Neither is what
is None, so that parameters can be added. A line that was cut off by an interruption is left out,
and so is any but the last of one identity. Numbers of a result have six digits.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.common.engine import Result, key
from benchmarks.common.json_files import from_json
from benchmarks.common.provenance import provenance

Identity = dict[str, Any]
ORIGIN = ("versions", "machine")


class Ledger:
    """The finished runs of a file, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: dict[str, tuple[Identity, Result]] = {}
        self._last: dict[str, Any] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            with suppress(json.JSONDecodeError):
                self._take(from_json(line))

    def __contains__(self, identity: Identity) -> bool:
        return known_by(identity) in self.runs

    def get(self, identity: Identity) -> Result:
        """The result of a run, empty if it is not finished."""
        return self.runs.get(known_by(identity), ({}, {}))[1]

    def add(self, identity: Identity, result: Result) -> None:
        """Write a line at the end of the file."""
        run = identity | {name: provenance()[name] for name in ORIGIN}
        changed = {
            name: value
            for name, value in (dict.fromkeys(self._last) | run).items()
            if value != self._last.get(name)
        }
        text = json.dumps(result, allow_nan=False)
        result = json.loads(text, parse_float=lambda number: float(f"{float(number):.6g}"))
        line = json.dumps({**changed, "result": result})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        cut_off = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
        with self.path.open("a") as file:
            file.write("\n" * cut_off + line + "\n")
        self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        result = line.pop("result")
        self._last |= line
        identity = {
            name: value
            for name, value in self._last.items()
            if value is not None and name not in ORIGIN
        }
        self.runs[key(identity)] = identity, result


def known_by(identity: Identity) -> str:
    return key({name: value for name, value in identity.items() if value is not None})
