"""Lines of progress and results: logged, and with `verbose` printed."""

from __future__ import annotations

import logging

from .distributed import processes

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
