"""Results as JSON: written in one piece, laid out so that a diff shows what changed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

# Names in stored results of 0.1.0 and of checkouts of 0.2.0, and what they are called now.
FORMER_NAMES = {'"ours: pool': '"ours: ensemble', '"head_input": "pool"': '"head_input": "mean"'}


def from_json(text: str) -> Any:
    """Results with the names of today."""
    for former, name in FORMER_NAMES.items():
        text = text.replace(former, name)
    return json.loads(text)


def to_json(content: dict[str, Any]) -> str:
    """A line per value, and one per record in a list of records."""
    lines = [f" {json.dumps(name)}: {_value(value)}" for name, value in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _value(value: Any) -> str:
    if isinstance(value, list) and any(isinstance(record, dict) for record in value):
        return "[\n" + ",\n".join(f"  {_value(record)}" for record in value) + "\n ]"
    return json.dumps(value, allow_nan=False)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a file in one piece: it is there complete, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text(to_json(content))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
