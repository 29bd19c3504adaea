"""Warnings at the line of the user's code that called the package."""

from __future__ import annotations

import sys
import warnings

# Libraries between the user's code and the place of a warning.
_BETWEEN = {"auxcst_sklearn", "contextlib", "joblib", "skorch", "sklearn", "torch"}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the user's line, whatever calls of the package lie in between."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
