"""How many threads the arithmetic of a fit or a prediction may use."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from multiprocessing import current_process

import torch
from threadpoolctl import ThreadpoolController
from torch import nn

# Multiply-adds of a forward pass below which a second thread costs more than it brings.
FEWEST_MULTIPLICATIONS = 2e7


def thread_limit(module: nn.Module, n_rows: int) -> AbstractContextManager:
    """Limit to one thread what others do beside it, and what is too small for two.

    The workers of joblib's threading and multiprocessing backends each see all cores, unlike
    those of loky. The limit holds for the calling thread only, as OpenMP keeps it.
    """
    if torch.get_num_threads() == 1 or not (_is_worker() or _is_small(module, n_rows)):
        return nullcontext()
    return _openmp().limit(limits=1)


def _is_worker() -> bool:
    return threading.current_thread() is not threading.main_thread() or current_process().daemon


def _is_small(module: nn.Module, n_rows: int) -> bool:
    parameters = list(module.parameters())
    convolutions = any(parameter.dim() > 2 for parameter in parameters)  # used many times a row
    n_parameters = sum(parameter.numel() for parameter in parameters)
    return not convolutions and n_parameters * n_rows < FEWEST_MULTIPLICATIONS


@cache
def _openmp() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="openmp")
