"""Random start weights that leave torch's global generator alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_lock = threading.Lock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let torch's initialisers draw from `seed`, and leave the global generator as it was."""
    with _lock, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
