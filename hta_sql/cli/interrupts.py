"""Ctrl-C and SIGTERM end a command at once, also in the middle of a query."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

from hta_sql.machine import remove_temporary

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

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
            with _cleaned_up():
                yield
        finally:
            signal.signal(signal.SIGINT, before)


@contextmanager
def _cleaned_up() -> Iterator[None]:
    """Let SIGTERM remove temporary folders before it ends the process; the store needs no cleaning.

    In a thread, which the interpreter's own handling of signals wakes up: the main one may be in the
    engine for minutes.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    threading.Thread(target=_end_when_told, args=(reader,), daemon=True).start()
    woken = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.set_wakeup_fd(woken)
        os.close(writer)


def _end_when_told(reader: int) -> None:
    while number := os.read(reader, 1):
        if number[0] == signal.SIGTERM:
            remove_temporary()
            os._exit(128 + signal.SIGTERM)
    os.close(reader)


def interruptible(store: TraceStore, ask: Callable[[], Answer]) -> Answer:
    """Ask in a thread: a signal is handled only where Python code runs, not in the engine."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - imports are the start-up cost

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask)
        try:
            return asked.result()
        except KeyboardInterrupt:
            store.interrupt()
            raise
