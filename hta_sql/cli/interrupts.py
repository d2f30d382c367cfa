"""Ctrl-C ends a command at once, also in the middle of a query."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from hta_sql.store.trace_store import TraceStore

Answer = TypeVar("Answer")


class Interrupts:
    """Remembers that Ctrl-C was pressed: the engine hides it in an error of its own."""

    def __init__(self) -> None:
        self.seen = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        signal.default_int_handler(number, frame)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch while a command runs; only a main thread gets signals."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self._handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def interruptible(store: TraceStore, ask: Callable[[], Answer]) -> Answer:
    """Ask in a thread: a signal is handled only where Python code runs, not in the engine."""
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask)
        try:
            return asked.result()
        except KeyboardInterrupt:
            store.interrupt()
            raise
