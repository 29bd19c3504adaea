"""The threads of numpy's, scipy's and scikit-learn's libraries; those of torch are its modes."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _libraries(user_api: str) -> ThreadpoolController:
    """The libraries of a kind that are loaded; finding them takes 1 ms."""
    return ThreadpoolController().select(user_api=user_api)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit the algebra of a few numbers to one thread: several only wait for each other.

    The number is one for all threads, so that only the main thread changes and restores it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    return _libraries("blas").limit(limits=1) if is_main else nullcontext()


def one_openmp_thread() -> AbstractContextManager[Any]:
    """Limit computations of scikit-learn to one thread."""
    return _libraries("openmp").limit(limits=1)
