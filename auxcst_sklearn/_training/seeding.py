"""Random initial weights that do not change torch's global generator."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_lock = threading.Lock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Make torch's initialisers draw from `seed`, and restore the global generator."""
    with _lock, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
