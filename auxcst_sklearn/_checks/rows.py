"""Objects with an index, such as X, y and costs, whose rows belong together by position."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np


def check_row_order(**named: Any) -> None:
    """Raise an error for two objects whose index has the same label at different positions.

    Rows belong together by position, as everywhere in scikit-learn, so that this is a sign of
    rows that do not. A default index 0 .. n-1, as of a new DataFrame, is a sign only where the
    other one holds the same labels.
    """
    indexed = {name: rows for name, rows in named.items() if hasattr(rows, "iloc")}
    for (name, rows), (other_name, other_rows) in combinations(indexed.items(), 2):
        own, other = rows.index, other_rows.index
        if len(own) != len(other) or own.equals(other):
            continue
        a, b = np.split(own.append(other).factorize()[0], 2)
        moved = (a != b) & np.isin(b, a)
        same = np.isin(b, a).all() and np.isin(a, b).all()
        if not moved.any() or (not same and any(_is_default(index) for index in (own, other))):
            continue
        row = int(moved.argmax())
        place = int((a == b[row]).argmax())
        raise ValueError(
            f"The index of {other_name} has labels of that of {name} "
            f"{'in another order' if same else 'at other positions'}: "
            f"{other[[row]].tolist()[0]!r} is row {row} of {other_name}, but row {place} of "
            f"{name}. Expected the same rows in the same order: select them by "
            f"{other_name}.loc[{name}.index]; or, if rows belong together by position, pass "
            f"{other_name}.to_numpy(), or {other_name}.set_axis({name}.index) to keep columns."
        )


def _is_default(index: Any) -> bool:
    return np.array_equal(index, np.arange(len(index)))
