"""Runs a command in a fork of this process: a crash or an endless query ends in an error message.

A fork before the engine is loaded takes 2 ms; a worker process would take Python's start.
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
"""Time in which an interrupted query may end by itself before its process is killed [s]."""

TWICE_S = 0.2
"""A terminal sends Ctrl-C to the fork as well; what else sends it is passed on after this time [s]."""

_SECONDS = struct.Struct("d")
_ENDED = -1.0


class Supervision:
    """Tells the parent of this fork when a query begins and ends.

    Args:
        pipe: Where the parent listens.
    """

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Have the parent kill this process if a block takes longer, and does not end by itself."""
        os.write(self._pipe, _SECONDS.pack(seconds))
        try:
            yield
        finally:
            os.write(self._pipe, _SECONDS.pack(_ENDED))


def supervised(work: Callable[[Supervision | None], int]) -> int:
    """Do some work in a fork and return its exit code; here, if the system has no fork.

    This returns in the fork only. The parent ends with the code of the fork.
    """
    if not hasattr(os, "fork"):
        return work(None)
    told, telling = os.pipe()
    living, alive = os.pipe()
    gc.freeze()  # else the fork's first collection would copy every page
    child = os.fork()
    if child:
        os.close(telling)
        os.close(living)
        code = _watched(child, told)
        sys.stderr.flush()
        os._exit(code)  # nothing is left to be tidied up, which would take 10 ms
    os.close(told)
    os.close(alive)
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not on Windows

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.Thread(target=_end_with_parent, args=(living,), daemon=True).start()
    return work(Supervision(telling))


def _end_with_parent(living: int) -> None:
    os.read(living, 1)
    remove_temporary()
    os._exit(1)


def _watched(child: int, told: int) -> int:
    """Wait for the end of a fork; kill it when its query takes too long."""
    with _passed_on(child):
        seconds, until = 0.0, None
        while True:
            left = None if until is None else max(until - time.monotonic(), 0)
            if not select.select([told], [], [], left)[0]:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                remove_left_by_dead()
                show_error(
                    f"Interrupted after {seconds:g} s. Ask for fewer runs, ranks or steps, or give it "
                    "longer: --timeout."
                )
                return 1
            message = os.read(told, _SECONDS.size)
            if not message:
                break
            (seconds,) = _SECONDS.unpack(message)
            until = None if seconds == _ENDED else time.monotonic() + seconds + GRACE_S
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        remove_left_by_dead()
        show_error(
            f"The process of this query ended by {_name(-status)}. Ask a simpler query, or report it "
            "if it is an ordinary one. The store is unharmed."
        )
        return 1
    return status


@contextmanager
def _passed_on(child: int) -> Iterator[None]:
    """Pass Ctrl-C and SIGTERM on to a fork, which ends by them as a command does."""

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
