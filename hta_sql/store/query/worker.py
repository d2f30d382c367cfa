"""A worker process: hosts a safe store and runs its parent's queries, one at a time.

A worker may crash, run out of memory or be killed without harm to the parent. A frame is a length
and that many bytes. A request is one frame, which is pickled. An answer, which the parent does not
trust, is two frames: JSON, and an Arrow IPC stream that is empty unless the answer is a table.
"""

from __future__ import annotations

import faulthandler
import json
import os
import pickle
import threading
import time
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hta_sql.errors import HtaSqlError
from hta_sql.library.sql_files import query_sql
from hta_sql.machine import remove_temporary
from hta_sql.store.query.limits import bounded_process, in_time
from hta_sql.store.query.trace_store import TraceStore
from hta_sql.store.query.worker_process import LENGTH

if TYPE_CHECKING:
    import pyarrow as pa

Request = tuple[float | None, float | None, str, dict[str, Any]]
"""Time limit [s], what is left of it [s], ``sql`` or ``module:function``, and arguments."""

ORPHAN_S = 5.0
"""Time [s] after a query's limit at which a worker ends itself, if its parent did not end it."""

_PARENT_S = 0.5
"""Interval [s] at which a worker checks that its parent lives."""


class HostedStore(TraceStore):
    """A safe store that runs its queries in this process, which another process watches."""

    _isolated = False


def serve() -> None:
    """Serve one store on stdin and stdout until the parent closes the pipe, or ends."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):  # output of libraries must not get between the answers
        os.dup2(nothing, standard)
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - unavailable on Windows

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    path, options = _next(requests)
    try:
        # Each request has its own time limit.
        store = HostedStore(path, **{**options, "limits": replace(options["limits"], seconds=None)})
    except HtaSqlError as error:
        _write(answers, _failure(error))
        return
    with suppress(HtaSqlError):  # a query that needs the catalog raises the error again
        # Loads the catalog and Arrow, which would count as memory of the first query.
        _size_of(store.sql(query_sql("engine", "database")).arrow())
    with bounded_process(options["memory_limit"]):
        _write(answers, {})
        while True:
            _answer(store, answers, _next(requests))


def _end_with(parent: int) -> None:
    """End this process soon after its parent; a query may take long to read from the pipe."""
    while os.getppid() == parent:
        time.sleep(_PARENT_S)
    _end()


def _end() -> None:
    remove_temporary()
    os._exit(0)


def _next(requests: IO[bytes]) -> Any:
    """Return the next request; end this process if the parent has closed the pipe."""
    head = requests.read(LENGTH.size)
    if len(head) < LENGTH.size:
        _end()
    return pickle.loads(requests.read(*LENGTH.unpack(head)))  # noqa: S301 - from the trusted parent


def _answer(store: HostedStore, answers: IO[bytes], request: Request) -> None:
    seconds, left, what, given = request
    if left is not None:
        # This timer is implemented in C, so it also ends a worker while a call of the engine
        # blocks the Python interpreter.
        file = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open until the timer ends
        faulthandler.dump_traceback_later(left + ORPHAN_S, exit=True, file=file)
    table = None
    try:
        with in_time(store, left, seconds):
            if what == "sql":
                table, answer = store.sql(**given).arrow(), {}
                size = _size_of(table)
            else:
                module, _, function = what.partition(":")
                answer = {"value": getattr(import_module(module), function)(store, **given)}
    except Exception as error:  # noqa: BLE001 - a query can make Python or Arrow raise anything
        table, answer = None, _failure(error)
    faulthandler.cancel_dump_traceback_later()
    if table is None:
        _write(answers, answer)
        if "FATAL Error" in answer.get("message", ""):
            _end()  # the engine refuses all further queries
    else:
        _write(answers, answer, size)
        _stream(table, answers)
        answers.flush()


def _failure(error: Exception) -> dict[str, Any]:
    if isinstance(error, HtaSqlError):
        return {"error": type(error).__name__, "message": str(error)}
    return {"error": "QueryError", "message": f"{type(error).__name__}: {error}"}


def _write(answers: IO[bytes], answer: dict[str, Any], size: int = 0) -> None:
    """Write an answer, and the length of the table that follows."""
    content = json.dumps(answer).encode()
    answers.write(LENGTH.pack(len(content)) + content + LENGTH.pack(size))
    answers.flush()


def _size_of(table: pa.Table) -> int:
    """Return the length of a table's stream; raises if Arrow cannot write the table."""
    import pyarrow as pa  # noqa: PLC0415 - imported with the first table

    counted = pa.MockOutputStream()
    _stream(table, counted)
    return int(counted.size())


def _stream(table: pa.Table, sink: Any) -> None:
    import pyarrow as pa  # noqa: PLC0415 - as above

    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
