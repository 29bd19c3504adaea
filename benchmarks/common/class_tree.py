"""The class tree of Caltech-256.

G. Griffin, A. Holub, P. Perona, "Caltech-256 Object Category Dataset", Technical Report 7694,
California Institute of Technology, 2007.
"""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).with_name("caltech256_taxonomy.txt")


def caltech256_taxonomy() -> list[tuple[str, ...]]:
    """The path from the root to each category, in the order of their numbers, 1 to 256."""
    branch: list[str] = []
    paths: dict[int, tuple[str, ...]] = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        entry = line.strip()
        depth = (len(line) - len(line.lstrip())) // 2
        if entry[:1].isdigit():
            numbered = (leaf.split(".") for leaf in entry.split())
            paths.update({int(number): (*branch[:depth], leaf) for number, leaf in numbered})
        elif not entry.startswith("#"):
            branch[depth:] = [entry]
    return [paths[number] for number in sorted(paths)]
