"""Runs a command in a fork, so that a crash or an endless query ends with an error message.

A fork before the engine is loaded takes 2 ms; a worker process would need Python's start-up time.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from hta_sql.cli.messages import show_error
from hta_sql.machine import remove_left_by_dead, remove_temporary

GRACE_S = 1.0
"""Time for an interrupted query to end by itself before its process is killed [s]."""

TWICE_S = 0.2
"""Delay before Ctrl-C is passed on to the fork [s]; a terminal sends it to the fork as well."""

_SECONDS = struct.Struct("d")
_ENDED = -1.0


class Supervision:
    """Notifies the parent of this fork when a query starts and ends.

    Args:
        pipe: Pipe to the parent.
    """

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Let the parent kill this process if a block exceeds its time limit and does not end."""
        os.write(self._pipe, _SECONDS.pack(seconds))
        try:
            yield
        finally:
            os.write(self._pipe, _SECONDS.pack(_ENDED))


def supervised(work: Callable[[Supervision | None], int]) -> int:
    """Run a function in a fork (or in this process if fork is unavailable); return its exit code.

    Returns in the fork only; the parent exits with the exit code of the fork.
    """
    if not hasattr(os, "fork"):
        return work(None)
    deadlines, telling = os.pipe()
    living, alive = os.pipe()
    gc.freeze()  # otherwise the fork's first garbage collection would copy every page
    child = os.fork()
    if child:
        os.close(telling)
        os.close(living)
        code = _watched(child, deadlines)
        sys.stderr.flush()
        os._exit(code)  # skips cleanup, which is not needed and takes 10 ms
    os.close(deadlines)
    os.close(alive)
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - unavailable on Windows

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.Thread(target=_end_with_parent, args=(living,), daemon=True).start()
    return work(Supervision(telling))


def _end_with_parent(living: int) -> None:
    os.read(living, 1)
    remove_temporary()
    os._exit(1)


def _watched(child: int, deadlines: int) -> int:
    """Wait for a fork to end; kill it if its query takes too long."""
    with _passed_on(child):
        seconds, until = 0.0, None
        while True:
            left = None if until is None else max(until - time.monotonic(), 0)
            if not select.select([deadlines], [], [], left)[0]:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                remove_left_by_dead()
                show_error(
                    f"Interrupted after {seconds:g} s. Request fewer runs, ranks or steps, or "
                    "allow more time: --timeout."
                )
                return 1
            message = os.read(deadlines, _SECONDS.size)
            if not message:
                break
            (seconds,) = _SECONDS.unpack(message)
            until = None if seconds == _ENDED else time.monotonic() + seconds + GRACE_S
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        remove_left_by_dead()
        show_error(
            f"The query process was terminated by {_name(-status)}. The store is unharmed. Try a simpler "
            "query; if an ordinary query fails, report it."
        )
        return 1
    return status


@contextmanager
def _passed_on(child: int) -> Iterator[None]:
    """Forward Ctrl-C and SIGTERM to a fork, which handles them like a command."""

    def pass_on(number: int) -> None:
        with suppress(OSError):
            os.kill(child, number)

    handlers = {
        signal.SIGTERM: lambda *_: pass_on(signal.SIGTERM),
        signal.SIGINT: lambda *_: signal.setitimer(signal.ITIMER_REAL, TWICE_S),
        signal.SIGALRM: lambda *_: pass_on(signal.SIGINT),
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
