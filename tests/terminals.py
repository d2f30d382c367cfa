"""Pseudo-terminals, and characters that control terminals."""

from __future__ import annotations

import os
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def terminal() -> Iterator[tuple[int, Callable[[], str]]]:
    """Open a pseudo-terminal; yield its descriptor and a function that closes it.

    The function returns everything that was written to the terminal.
    """
    ours, theirs = os.openpty()
    tty.setraw(theirs)  # newlines arrive as they are written
    parts: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:  # the other end is closed
            pass

    thread = threading.Thread(target=read)
    thread.start()

    def printed() -> str:
        os.close(theirs)
        thread.join()
        os.close(ours)
        return b"".join(parts).decode()

    yield theirs, printed


def acting(text: str) -> set[str]:
    """Return the characters in a string that control a terminal or are invisible."""
    return {c for c in text if not (c.isprintable() or c in "\n\t")}
