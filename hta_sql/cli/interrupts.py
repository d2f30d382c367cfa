"""Makes Ctrl-C and SIGTERM end a command at once, even during a query."""

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
    """Records that Ctrl-C was pressed, because the engine replaces it with its own error.

    Args:
        is_process: Whether the process ends with the command.
    """

    def __init__(self, *, is_process: bool = False) -> None:
        self.seen = False
        self._is_process = is_process

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self.seen:  # the second one ends the process, see below
            self.seen = True
            signal.default_int_handler(number, frame)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Handle signals while a command runs; only the main thread receives them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self._handle)
        try:
            with _cleaned_up():
                yield
        finally:
            # An interrupted process ends with its exit code, even if Ctrl-C is pressed once more.
            ends = self.seen and self._is_process
            signal.signal(signal.SIGINT, signal.SIG_IGN if ends else before)


@contextmanager
def _cleaned_up() -> Iterator[None]:
    """At SIGTERM and a second Ctrl-C, remove temporary folders and end the process at once.

    The store needs no cleanup. A thread does this, notified through Python's signal wakeup
    descriptor, because the main thread may be in the engine for minutes. An exception of a second
    Ctrl-C would reach code that cleans up after the first one, in threads of the engine, too.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    threading.Thread(target=_exit_on_signals, args=(reader,), daemon=True).start()
    woken = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.set_wakeup_fd(woken)
        os.close(writer)


def _exit_on_signals(reader: int) -> None:
    interrupts = 0
    while number := os.read(reader, 1):
        interrupts += number[0] == signal.SIGINT
        if number[0] == signal.SIGTERM or interrupts > 1:
            remove_temporary()
            os._exit(128 + number[0])
    os.close(reader)


def interruptible(store: TraceStore, ask: Callable[[], Answer]) -> Answer:
    """Run a function in a thread, so that the main thread can handle signals during a query."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - lazy, to start faster

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask)
        try:
            return asked.result()
        except KeyboardInterrupt:
            store.interrupt()
            raise
