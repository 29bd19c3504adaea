"""Class trees that ship with the package as indented text."""

from __future__ import annotations

from importlib.resources import files


def read_taxonomy(name: str) -> list[tuple[str, ...]]:
    """Read the path from the root to each class, in the order of the class numbers."""
    text = (files("auxcst_sklearn.datasets") / "data" / name).read_text(encoding="utf-8")
    branch: list[str] = []
    paths: dict[int, tuple[str, ...]] = {}
    for line in text.splitlines():
        entry = line.strip()
        depth = (len(line) - len(line.lstrip())) // 2
        if entry[:1].isdigit():
            numbered = (leaf.split(".") for leaf in entry.split())
            paths.update({int(number): (*branch[:depth], leaf) for number, leaf in numbered})
        elif not entry.startswith("#"):
            branch[depth:] = [entry]
    return [paths[number] for number in sorted(paths)]


def caltech256_taxonomy() -> list[tuple[str, ...]]:
    """Return the class tree of Caltech-256: the path from the root to each category.

    Returns
    -------
    list of 256 tuples of str
        Paths in the order of the category numbers 1 to 256. Background clutter, the folder number
        257, is not part of the tree.

    References
    ----------
    G. Griffin, A. Holub, P. Perona, "Caltech-256 Object Category Dataset", Technical Report
    7694, California Institute of Technology, 2007.

    Examples
    --------
    >>> from auxcst_sklearn.costs import tree_distance_cost_matrix
    >>> from auxcst_sklearn.datasets import caltech256_taxonomy
    >>> paths = caltech256_taxonomy()
    >>> paths[3]
    ('inanimate', 'sports', 'baseball', 'baseball-bat')
    >>> tree_distance_cost_matrix(paths)[3, [4, 217]]  # baseball-glove, tennis-racket
    array([2., 4.])
    """
    return read_taxonomy("caltech256_taxonomy.txt")
