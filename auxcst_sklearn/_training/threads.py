"""How many threads the arithmetic of a fit or a prediction may use."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import context, current_process

import torch
from torch import nn

# Multiply-adds of a forward pass below which a second thread costs more than it brings.
FEWEST_MULTIPLICATIONS = 2e7

# Whether this process is a fork of one that had imported this module, by whatever means.
_forked = False


def _note_fork() -> None:
    global _forked  # noqa: PLW0603
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


@contextmanager
def thread_limit(multiplications: float = math.inf) -> Iterator[None]:
    """Limit workers of a parallel run, and passes too small for two threads, to one thread.

    The workers of joblib's threading and multiprocessing backends each see all cores, unlike
    those of loky. A forked one would also wait for ever for the threads of its parent.
    """
    before = torch.get_num_threads()
    if before == 1 or not (multiplications < FEWEST_MULTIPLICATIONS or _is_worker()):
        yield
        return
    # Not by threadpoolctl: torch's own MKL ignores OpenMP once a number of threads has been
    # set. In both libraries the limit is the calling thread's own.
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def multiplications_per_row(module: nn.Module) -> float:
    """Multiply-adds of a forward pass; of convolutions, which use each weight often, no end."""
    parameters = list(module.parameters())
    if any(parameter.dim() > 2 for parameter in parameters):
        return math.inf
    return float(sum(parameter.numel() for parameter in parameters))


def _is_worker() -> bool:
    """Whether this is a second thread, a daemonic process or a fork; workers of loky are none."""
    process = current_process()
    fork_process = getattr(context, "ForkProcess", ())  # Windows has none
    return (
        threading.current_thread() is not threading.main_thread()
        or process.daemon
        or _forked
        or isinstance(process, fork_process)
    )
