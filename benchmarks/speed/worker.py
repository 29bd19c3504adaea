"""A process that holds one method and one case, and times what it is asked for.

It lives as long as its case, so that imports, data and the first, untimed fit stay outside of all
times, and methods can take turns.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.methods import METHODS, Case, draw

WARM_UP_ROWS = 2048


def timed(action: Callable[[], Any], at_least: float = 0.0) -> dict[str, float]:
    """CPU and wall seconds of an action, repeated until it has taken some time."""
    calls = 0
    wall, cpu = time.perf_counter(), time.process_time()
    while calls == 0 or time.perf_counter() - wall < at_least:
        action()
        calls += 1
    return {
        "cpu": (time.process_time() - cpu) / calls,
        "wall": (time.perf_counter() - wall) / calls,
    }


def peak_megabytes() -> float:
    """Largest resident memory that this process ever had."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage of Linux also counts the parent's, from before exec
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, kilobytes on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def serve(connection: Connection, name: str, case: Case) -> None:
    """Send {} when ready; then, for each 0, times and memory of a fit, for n those of n rows."""
    X, y, cost_matrix = draw(case)
    model = METHODS[name](case, cost_matrix).fit(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
    connection.send({})
    while True:
        n = connection.recv()
        if n == 0:
            model = METHODS[name](case, cost_matrix)
            times = timed(partial(model.fit, X, y))
        else:
            rows = X[np.arange(n) % len(X)]
            times = timed(partial(model.predict, rows), at_least=0.1)
        connection.send({**times, "peak_megabytes": peak_megabytes()})


class Worker:
    """The process of a method; as a context it lives until the end of it."""

    def __init__(self, name: str, case: Case, threads: int) -> None:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # which the new process inherits
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        # Not a daemon: our estimators would take it for a worker of a pool, and use one thread.
        self.process = context.Process(target=serve, args=(other, name, case))
        self.process.start()
        other.close()

    def answer(self) -> dict[str, float]:
        try:
            return self.connection.recv()
        except EOFError:
            sys.exit("A method failed; its error stands above.")

    def ask(self, n: int) -> dict[str, float]:
        self.connection.send(n)
        return self.answer()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        self.process.join()
