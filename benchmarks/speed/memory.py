"""Memory and seconds of a part of a process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace


def anonymous_mib() -> float:
    """Memory of this process that is no file."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


@contextmanager
def measured() -> Iterator[SimpleNamespace]:
    """Peak of the anonymous memory above that at the start, and seconds."""
    found, done = SimpleNamespace(mib=0.0), threading.Event()
    before, start, cpu = anonymous_mib(), time.perf_counter(), time.process_time()

    def watch() -> None:
        while not done.wait(0.005):
            found.mib = max(found.mib, anonymous_mib() - before)

    thread = threading.Thread(target=watch)
    thread.start()
    yield found
    found.seconds, found.cpu = time.perf_counter() - start, time.process_time() - cpu
    done.set()
    thread.join()
