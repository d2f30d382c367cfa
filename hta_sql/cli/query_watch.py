"""Reports that this process died during a query, and kills it if the query exceeds its time limit.

A crash of the engine ends this process at once, and a call of the engine may block Python, so
another process does both. It is forked before the engine is loaded, which takes 2 ms.
"""

from __future__ import annotations

import os
import select
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hta_sql.cli.messages import show_error
from hta_sql.machine import remove_left_by_dead

GRACE_S = 1.0
"""Time for an interrupted query to end by itself before its process is killed [s]."""

SHOWN = 200
"""Number of characters of a query in the message about a crash."""

_SECONDS = struct.Struct("d")
_END = b"\0"


class QueryWatch:
    """Forks a process that watches this one; does nothing if the system cannot fork."""

    def __init__(self) -> None:
        self._pipe: int | None = None
        if not hasattr(os, "fork"):
            return
        with suppress(ImportError, ValueError, OSError):
            import resource  # noqa: PLC0415 - unavailable on Windows

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        reading, writing = os.pipe()
        watched = os.getpid()
        if os.fork():
            os.close(reading)
            self._pipe = writing
            return
        os.close(writing)
        with suppress(KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command
            _watch(reading, watched)
        os._exit(0)

    @contextmanager
    def during(self, query: str, seconds: float) -> Iterator[None]:
        """Watch this process while a query with a time limit runs.

        Args:
            query: The query.
            seconds: Its time limit [s].
        """
        if self._pipe is None:
            yield
            return
        shown = " ".join(query[:SHOWN].replace("\0", " ").split()).encode(errors="replace")
        os.write(self._pipe, _SECONDS.pack(seconds) + shown)
        try:
            yield
        finally:
            os.write(self._pipe, _END)


def _watch(pipe: int, watched: int) -> None:
    """Wait for a query to begin, and then for its end or its time limit."""
    begin = os.read(pipe, 1 << 16)
    if not begin:
        return  # the process ended without a query
    (seconds,) = _SECONDS.unpack(begin[: _SECONDS.size])
    query = begin[_SECONDS.size :]
    if query.endswith(_END):
        return  # the query was quicker than this process
    if not select.select([pipe], [], [], seconds + GRACE_S)[0]:
        os.kill(watched, signal.SIGKILL)
        os.read(pipe, 1)  # until the process has ended
        show_error(
            f"Interrupted after {seconds:g} s. Request fewer runs, ranks or steps, or allow more "
            "time: --timeout."
        )
    elif not os.read(pipe, 1):
        show_error(
            f"The process ended during this query: {query.decode(errors='replace')}. The store is "
            "unharmed. Try a simpler query; if an ordinary query fails, report it."
        )
    remove_left_by_dead()
