"""Worker process: hosts a safe store and runs its parent's queries, over a socket or two pipes.

A worker may crash, run out of memory or be killed without harm to the parent. The worker trusts its
parent's requests, which are pickled. The parent does not trust the worker's answers, which are
JSON, and Arrow IPC streams for tables.
"""

from __future__ import annotations

import faulthandler
import json
import os
import pickle
import queue
import signal
import socket
import struct
import sys
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from hta_sql.errors import HtaSqlError, QueryError
from hta_sql.library.objects import load_library
from hta_sql.machine import remove_temporary
from hta_sql.store.catalog.template import library_digest
from hta_sql.store.query.limits import bounded_process
from hta_sql.store.query.worker_store import HostedStore

LENGTH = struct.Struct(">Q")
NUMBER = struct.Struct(">q")
INTERRUPT = b"I"
ORPHAN_S = 5.0
"""Time [s] after a query's limit at which a worker ends itself, if its parent did not end it."""

MOST_DEPTH = 60
"""Maximum nesting depth of lists and structs in a table; Arrow streams allow 64 levels."""

FORK, WAIT, IMPORT = b"F", b"W", b"M"
LONGEST_MESSAGE = 256
RUNNING = -1_000
"""Reply of the fork server for a worker that is still running."""


class Worker:
    """Serves requests one at a time until the parent closes the pipe.

    Args:
        requests: Pipe from the parent.
        answers: Pipe to the parent.
    """

    def __init__(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        self._requests, self._answers = requests, answers
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._store: HostedStore | None = None
        self._nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open until the process ends

    def serve(self) -> None:
        """Open the store that the first request names, then serve requests."""
        path, options = pickle.loads(self._frame())  # noqa: S301 - from the trusted parent
        try:
            self._store = store = HostedStore(path, **options)
        except HtaSqlError as error:
            self._write(_failure(error))
            return
        threading.Thread(target=self._listen, daemon=True).start()
        with bounded_process(options["memory_limit"]):
            self._write({"ready": os.getpid()})
            while True:
                self._answer(store, *self._waiting.get())

    def _answer(self, store: HostedStore, seconds: float | None, what: str, given: Any) -> None:
        if seconds is not None:
            # This timer is implemented in C, so it also ends a worker while a call of the engine
            # blocks the Python interpreter.
            faulthandler.dump_traceback_later(seconds + ORPHAN_S, exit=True, file=self._nowhere)
        table = None
        try:
            if what == "sql":
                table = store.sql(**given).arrow()
                _check_depth(table)
                answer: dict[str, Any] = {"table": True}
            else:
                module, _, function = what.partition(":")
                answer = {"value": getattr(import_module(module), function)(store, **given)}
        except HtaSqlError as error:
            answer = _failure(error)
        except Exception as error:  # noqa: BLE001 - a query can make Python or Arrow raise anything
            answer = _failure(QueryError(f"{type(error).__name__}: {error}"))
        self._write(answer)
        if table is not None:
            with pa.ipc.new_stream(self._answers, table.schema) as stream:
                stream.write_table(table)
            self._answers.flush()
        faulthandler.cancel_dump_traceback_later()

    def _write(self, answer: dict[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self._answers.write(LENGTH.pack(len(content)) + content)
        self._answers.flush()

    def _listen(self) -> None:
        """Read requests while a query runs, to receive interrupts and detect the parent's end."""
        while content := self._frame():
            if content != INTERRUPT:
                self._waiting.put(pickle.loads(content))  # noqa: S301 - as above
            elif self._store:
                self._store.interrupt()
        remove_temporary()
        os._exit(0)

    def _frame(self) -> bytes:
        """Return the next request; empty if the parent has closed the pipe."""
        head = self._requests.read(LENGTH.size)
        return self._requests.read(*LENGTH.unpack(head)) if len(head) == LENGTH.size else b""


def _failure(error: HtaSqlError) -> dict[str, Any]:
    return {"error": type(error).__name__, "message": str(error)}


def _check_depth(table: pa.Table) -> None:
    """Raise if values are nested so deeply that Arrow would fail in the middle of a stream."""
    level = [table.schema.field(i).type for i in range(table.num_columns)]
    for _ in range(MOST_DEPTH):
        level = [kind.field(i).type for kind in level for i in range(kind.num_fields)]
        if not level:
            return
    raise QueryError(f"The result contains a value with more than {MOST_DEPTH} levels of nesting.")


def _harden() -> None:
    """Ignore the terminal's signals, disable core dumps, and create a process group.

    The group lets the parent lower the priority of all engine threads at once.
    """
    with suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setpgid"):
        with suppress(OSError):
            os.setpgid(0, 0)
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - unavailable on Windows

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _serve(requests: int, answers: int) -> None:
    with os.fdopen(requests, "rb") as reading, os.fdopen(answers, "wb") as writing:
        Worker(reading, writing).serve()


def _fork_workers(control: socket.socket) -> None:
    """Fork a worker at each request of the parent, to avoid Python's start-up time.

    This process has no threads and no engine. It reaps a worker only when the parent requests the
    exit status, so that a process ID is not reused while the parent may still signal it.
    """
    library_digest(load_library())  # cached here, so that each forked worker inherits it
    while True:
        message, files, *_ = socket.recv_fds(control, LONGEST_MESSAGE, 1)
        if not message:
            return
        if message[:1] == IMPORT:
            import_module(message[1:].decode())
            control.sendall(NUMBER.pack(0))
        elif message[:1] == WAIT:
            (process,) = NUMBER.unpack(message[1:])
            ended, status = os.waitpid(process, os.WNOHANG)
            control.sendall(NUMBER.pack(os.waitstatus_to_exitcode(status) if ended else RUNNING))
        elif process := os.fork():
            for file in files:
                os.close(file)
            control.sendall(NUMBER.pack(process))
        else:
            control.close()
            _harden()
            _serve(os.dup(files[0]), files[0])
            return


def main() -> None:
    """Serve one store on stdin and stdout, or fork workers for the socket at stdin."""
    _harden()
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    # Output printed by libraries must not get between the answers.
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    if sys.argv[-1] == "fork":
        os.close(answers)
        _fork_workers(socket.socket(fileno=requests))
    else:
        _serve(requests, answers)
