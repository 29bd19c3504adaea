"""The modes of torch during a computation, and its random numbers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import torch

from ..modules._layers import SEEDING

_DEVICE_TYPES = ("cpu", "cuda", "mps", "xpu")


class _DeterministicKernels:
    """The same kernels of cuDNN in each run, without which no seed reproduces convolutions.

    torch has one flag for all threads. The first of several fits and predictions that overlap sets
    it, and the last one restores what the caller had.
    """

    def __init__(self) -> None:
        self.lock, self.n_users, self.before = threading.Lock(), 0, (False, False)

    def __enter__(self) -> None:
        flags = torch.backends.cudnn
        with self.lock:
            if self.n_users == 0:
                self.before = flags.deterministic, flags.benchmark
                flags.deterministic, flags.benchmark = True, False
            self.n_users += 1

    def __exit__(self, *error: object) -> None:
        flags = torch.backends.cudnn
        with self.lock:
            self.n_users -= 1
            if self.n_users == 0:
                flags.deterministic, flags.benchmark = self.before


_DETERMINISTIC = _DeterministicKernels()


@contextmanager
def neutral_torch_modes() -> Iterator[None]:
    """Disable the caller's autocast, inference mode and no_grad.

    Only `precision` sets the arithmetic: losses, heads and costs would lose digits in half
    precision. A fit needs gradients. Meanwhile all threads use deterministic kernels of cuDNN.
    """
    with _DETERMINISTIC, _neutral_modes():
        yield


@contextmanager
def _neutral_modes() -> Iterator[None]:
    autocasts = [*filter(torch.is_autocast_enabled, _DEVICE_TYPES)]
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


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Make torch's initialisers draw float32 from `seed`; restore the generator and the type."""
    with SEEDING, torch.random.fork_rng(devices=[]):
        dtype = torch.get_default_dtype()
        torch.default_generator.manual_seed(seed)
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


def draw_seed(rng: np.random.RandomState) -> int:
    """Draw a seed."""
    return int(rng.randint(np.iinfo(np.int32).max))
