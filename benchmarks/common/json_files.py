"""Results as JSON: written in one piece, laid out so that a diff shows what changed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

# No string of JSON holds a line break or an unescaped quote, so this matches whole lists alone.
_NUMBERS = re.compile(r'\[\n([^\[\]{}"]*)\n\s*\]')


def to_json(content: Any) -> str:
    """A line per value, in the order of the content; a list of numbers takes one line."""
    text = json.dumps(content, indent=1, allow_nan=False)
    return _NUMBERS.sub(lambda numbers: f"[{' '.join(numbers[1].split())}]", text) + "\n"


def write_json(path: Path, content: Any) -> None:
    """Write a file in one piece: it is there complete, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text(to_json(content))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
