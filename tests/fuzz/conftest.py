"""How many inputs are tried: few in `make test`, FUZZ times as many in `make fuzz`."""

import os

import torch
from hypothesis import HealthCheck, settings

FUZZ = int(os.environ.get("FUZZ", "1"))

torch.set_num_threads(1)


def examples(n):
    """Settings of a test that tries n inputs in `make test`."""
    return settings(
        max_examples=n * FUZZ,
        deadline=None,
        derandomize=FUZZ == 1,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
