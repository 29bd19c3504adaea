"""scikit-learn's array API dispatch, disabled where all arrays become numpy arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sklearn import config_context, get_config


@contextmanager
def numpy_arrays() -> Iterator[None]:
    """Make scikit-learn's checks return numpy arrays, whatever its ``array_api_dispatch``."""
    if not get_config()["array_api_dispatch"]:
        yield
        return
    with config_context(array_api_dispatch=False):
        yield
