"""The process around a computation: its threads, torch's modes and generator, Ctrl-C, its log."""

from __future__ import annotations

import logging
import math
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import context, current_process
from types import FrameType
from typing import Any

import torch
from torch import nn

from .distributed import processes

# Multiply-adds of a forward pass below which a second thread does not pay off.
FEWEST_MULTIPLICATIONS = 2e7

# Environment variable with the number of threads for large networks.
VARIABLE = "AUXCST_NUM_THREADS"

_DEVICE_TYPES = ("cpu", "cuda", "mps", "xpu")

# ------------------------------------------------------------------------------------- threads

# Whether this process was forked from one that had imported this module.
_forked = False


def _note_fork() -> None:
    global _forked  # noqa: PLW0603
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


@contextmanager
def thread_limit(multiplications: float = math.inf) -> Iterator[None]:
    """Limit workers of a parallel run, and passes too small for two threads, to one thread.

    The workers of joblib's threading and multiprocessing backends each see all cores, unlike those
    of loky. A forked one would also wait forever for the threads of its parent. Large passes use
    the number in the environment variable AUXCST_NUM_THREADS, except in forks.
    """
    before = torch.get_num_threads()
    wanted = _threads(multiplications, before)
    if wanted == before:
        yield
        return
    # Not with threadpoolctl: torch's own MKL ignores OpenMP once a number of threads has been set.
    # In both libraries the limit applies to the calling thread only.
    torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _threads(multiplications: float, usual: int) -> int:
    is_fork = _forked or isinstance(current_process(), getattr(context, "ForkProcess", ()))
    if multiplications < FEWEST_MULTIPLICATIONS or is_fork:
        return 1
    if named := os.environ.get(VARIABLE):
        if not (named.isdecimal() and int(named)):
            raise ValueError(
                f"The environment variable {VARIABLE}={named!r}; expected a positive integer, the "
                "number of threads of each fit."
            )
        return int(named)
    is_worker = not _is_main_thread() or current_process().daemon  # those of loky are neither
    return 1 if is_worker else usual


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def multiplications_per_row(module: nn.Module) -> float:
    """Multiply-adds of a forward pass; infinite with convolutions, which reuse each weight."""
    n_multiplications = 0.0
    for part in module.modules():
        for parameter in part.parameters(recurse=False):
            n_multiplications += math.inf if hasattr(part, "kernel_size") else parameter.numel()
    return n_multiplications


# --------------------------------------------------------------------------------------- torch


@contextmanager
def neutral_torch_modes() -> Iterator[None]:
    """Disable the caller's autocast, inference mode and no_grad.

    Only `precision` sets the arithmetic: losses, heads and costs would lose digits in half
    precision. A fit needs gradients.
    """
    autocasts = [kind for kind in _DEVICE_TYPES if torch.is_autocast_enabled(kind)]
    inference = torch.is_inference_mode_enabled()
    if not (autocasts or inference) and torch.is_grad_enabled():
        yield
        return
    with ExitStack() as stack:
        for kind in autocasts:
            # The cache of an inner autocast lasts as long as the outer one, with weights of earlier
            # steps.
            stack.enter_context(torch.autocast(kind, enabled=False, cache_enabled=False))
        if inference:
            stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        yield


_lock = threading.RLock()  # a user's module may fit another estimator when it is made


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Make torch's initialisers draw float32 from `seed`; restore the generator and the type."""
    with _lock, torch.random.fork_rng(devices=[]):
        dtype = torch.get_default_dtype()
        torch.default_generator.manual_seed(seed)
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


# -------------------------------------------------------------------------------------- Ctrl-C


def _interrupt_handler() -> Any:
    """The handler of SIGINT; None outside of the main thread, where none can be set."""
    return signal.getsignal(signal.SIGINT) if _is_main_thread() else None


class InterruptWatch:
    """Context that calls the previous handler of SIGINT, and records whether it interrupts.

    Callbacks end a training by a KeyboardInterrupt, too.
    """

    seen = False

    def __enter__(self) -> InterruptWatch:
        self._before = _interrupt_handler()
        if callable(self._before):
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        if callable(self._before):
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        try:
            self._before(number, frame)
        except KeyboardInterrupt:  # the user's own handler need not raise it
            self.seen = True
            raise


# ----------------------------------------------------------------------------------------- log

logger = logging.getLogger("auxcst_sklearn")
logger.addHandler(logging.NullHandler())


def reports(verbose: int | bool) -> bool:
    """Whether a line has any reader, and is worth computing."""
    return bool(verbose) or (logger.isEnabledFor(logging.INFO) and processes().rank == 0)


def report(line: str, verbose: int | bool) -> None:
    """Log a line at INFO, and print it with `verbose`."""
    if verbose:
        print(line, flush=True)
    if reports(verbose=False):
        logger.info(line)
