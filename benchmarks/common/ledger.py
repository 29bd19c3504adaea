"""A file of finished runs, one line of JSON for each, to which later runs are added.

A line has what determines the result (`identity`), the result, and the versions it was computed
with, which are no part of the identity, and neither is what is None in it, so that parameters can
be added. A line that was cut off by an interruption is left out, and so is any but the last of one
identity.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.common.engine import Result, key
from benchmarks.common.provenance import provenance


class Ledger:
    """The finished runs of a file, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: dict[str, Result] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            with suppress(json.JSONDecodeError):
                entry = json.loads(line)
                self.results[known_by(entry["identity"])] = entry["result"]

    def __contains__(self, identity: dict[str, Any]) -> bool:
        return known_by(identity) in self.results

    def get(self, identity: dict[str, Any]) -> Result:
        """The result of a run, empty if it is not finished."""
        return self.results.get(known_by(identity), {})

    def add(self, identity: dict[str, Any], result: Result) -> None:
        """Write a line at the end of the file."""
        origin = {name: provenance()[name] for name in ("versions", "machine")}
        entry = {"identity": identity, "result": result, **origin}
        line = json.dumps(entry, allow_nan=False)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        cut_off = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
        with self.path.open("a") as file:
            file.write("\n" * cut_off + line + "\n")
        self.results[known_by(identity)] = json.loads(line)["result"]


def known_by(identity: dict[str, Any]) -> str:
    return key({name: value for name, value in identity.items() if value is not None})
