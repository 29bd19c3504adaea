"""Random initial weights that do not change torch's global generator."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

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
