"""Checks that a module computes each row independently."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ._listener import Call
from ._tracing import Trace, describe

# Rounding differs between one row and several, relative to the largest value.
TOLERANCE = 1e-4


def check_rows_apart(
    module: nn.Module,
    shape: Sequence[int],
    calls: Collection[Call],
    dtype: torch.dtype = torch.float32,
) -> None:
    """Raise an error for a module whose output, or that of some calls, mixes rows.

    Sequence-first modules do, for example. Two rows of random numbers are run together and each
    alone, in evaluation mode. A module that cannot compute such rows, or draws random numbers, is
    not checked.
    """
    generator = torch.Generator().manual_seed(0)
    # Between 0 and 2, so that embeddings can use them as indices.
    x = (2 * torch.rand(2, *shape, generator=generator, dtype=torch.float32)).to(dtype)
    buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
    try:
        with torch.random.fork_rng(devices=[]):
            traces = [Trace(module, shape, rows) for rows in (x, x, x[:1], x[1:])]
    except ValueError:
        return
    finally:
        for buffer, before in buffers:
            buffer.copy_(before)
    for call in (None, *calls):
        outputs = [_output(trace, call) for trace in traces]
        if not all(isinstance(output, Tensor) for output in outputs):
            continue
        found, repeated, *expected = outputs
        if not _close(found, repeated):
            continue
        if len(found) != len(x) or not _close(found, torch.cat(expected)):
            where = "" if call is None else f" in {traces[0].name(call)!r}"
            raise ValueError(
                f"{type(module).__name__} mixes the rows of a batch{where}: two examples of shape "
                f"{tuple(shape)} give {describe(found)}, which differs from the results for each "
                "alone; expected a row per example that depends only on this example. Sequence "
                "modules need batch_first=True, or a transposition in their forward."
            )


def _output(trace: Trace, call: Call | None) -> Any:
    return trace.output if call is None else trace.calls.get(call)


def _close(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    scale = other[other.isfinite()].abs().max() if other.isfinite().any() else 0.0
    return torch.allclose(one, other, rtol=0, atol=TOLERANCE * float(scale), equal_nan=True)
