"""Tensors of rows, and the memory of the device that they are computed on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


def densify(X: Any) -> Tensor:
    """Rows as a dense tensor, which shares the memory of an array where it can."""
    if isinstance(X, Tensor):
        return X
    return as_tensor(X) if isinstance(X, np.ndarray) else torch.from_numpy(X.toarray())


def as_tensor(array: NDArray[Any]) -> Tensor:
    """Share the memory of an array, unless its strides are unsupported or it is read-only."""
    return torch.from_numpy(array if is_shareable(array) else array.copy())


def is_shareable(array: NDArray[Any]) -> bool:
    """Whether a tensor can share the memory of an array."""
    return bool(array.flags.writeable and min(array.strides) >= 0)


def is_gpu(device: str) -> bool:
    """Whether a device is a GPU, whose sizes differ from those of a CPU."""
    return torch.device(device).type == "cuda"


def free_memory(device: str) -> int | None:
    """Bytes that a GPU has left, with those that torch keeps for later; None of other devices."""
    if not is_gpu(device):
        return None
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0] + kept)


def has_room(device: str, n_bytes: int) -> bool:
    """Whether a training set fits on a device, together with a network and its batches."""
    free = free_memory(device)
    return free is None or n_bytes <= free / 2


def to_device(x: Tensor, device: str) -> Tensor:
    """Copy rows to the device; to a GPU asynchronously from pinned memory."""
    if is_gpu(device):
        return x.pin_memory().to(device, non_blocking=True)
    return x.to(device)


class _Largest(TorchFunctionMode):
    """Notes the size of the largest tensor that a thread computes; views of weights are none."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.weights = {p.untyped_storage().data_ptr() for p in module.parameters()}
        self.nbytes = 0

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Compute a function, and note the size of its output."""
        output = function(*args, **(kwargs or {}))
        if isinstance(output, Tensor) and output.untyped_storage().data_ptr() not in self.weights:
            self.nbytes = max(self.nbytes, output.nbytes)
        return output


@torch.no_grad()
def largest_output(module: nn.Module, x: Tensor) -> int:
    """Bytes of the largest output of any layer for one of some samples, in evaluation mode."""
    with _Largest(module) as largest:
        module.eval()(x.unsqueeze(0))
    return -(-max(largest.nbytes, x.nbytes) // len(x))


def multiplications_per_row(module: nn.Module) -> float:
    """Multiply-adds of a forward pass; infinite with convolutions, which reuse each weight."""
    n_multiplications = 0.0
    for layer in module.modules():
        for parameter in layer.parameters(recurse=False):
            n_multiplications += math.inf if hasattr(layer, "kernel_size") else parameter.numel()
    return n_multiplications
