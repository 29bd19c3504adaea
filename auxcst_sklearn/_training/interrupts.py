"""Ctrl-C: told from the KeyboardInterrupt with which callbacks end a training, or deferred."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class InterruptWatch:
    """Context that calls the previous handler of SIGINT, and records whether it interrupts."""

    seen = False

    def __enter__(self) -> InterruptWatch:
        self._before = _handler()
        if callable(self._before):
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        if callable(self._before):
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        try:
            self._before(number, frame)
        except KeyboardInterrupt:  # the user's own handler need not raise it
            self.seen = True
            raise


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer Ctrl-C to the end of the context."""
    before, signals = _handler(), []
    if not callable(before):
        yield
        return
    signal.signal(signal.SIGINT, lambda *signal: signals.append(signal))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if signals:
            signal.raise_signal(signal.SIGINT)


def _handler() -> Any:
    """The handler of SIGINT; None outside of the main thread, where none can be set."""
    is_main = threading.current_thread() is threading.main_thread()
    return signal.getsignal(signal.SIGINT) if is_main else None
