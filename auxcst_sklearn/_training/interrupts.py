"""Distinguishes Ctrl-C from the KeyboardInterrupt with which callbacks end a training."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class InterruptWatch:
    """Context that calls the previous handler of SIGINT, and records whether it interrupts."""

    seen = False

    def __enter__(self) -> InterruptWatch:
        # Signals arrive in the main thread, and only there can a handler be set.
        is_main = threading.current_thread() is threading.main_thread()
        self._before: Any = signal.getsignal(signal.SIGINT) if is_main else None
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
