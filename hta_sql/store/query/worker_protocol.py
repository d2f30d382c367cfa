"""Talks to one worker process: sends a request, reads its answer, and says how a worker ended."""

from __future__ import annotations

import json
import pickle
import select
import signal
import struct
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from hta_sql import errors
from hta_sql.errors import HtaSqlError, ParameterError, QueryError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from hta_sql.store.query.worker_processes import Process

LENGTH = struct.Struct(">Q")
INTERRUPT = b"I"
LONGEST_JSON = 64 << 20
"""Bytes of an answer that is no table, at most."""


class AnswerTooLargeError(QueryError):
    """A table was not read to its end: its pipe cannot be used any more."""


class WorkerDiedError(Exception):
    """A worker ended, or wrote what is no answer, before its answer was complete."""


def request_of(request: object) -> bytes:
    """Return a request as a worker reads it.

    Raises:
        ParameterError: A value cannot be sent to another process.
    """
    try:
        content = pickle.dumps(request)
    except Exception as error:  # whatever a class of the caller raises
        raise ParameterError(f"A parameter cannot be sent to the engine: {error}") from error
    return LENGTH.pack(len(content)) + content


def send(process: Process, frame: bytes) -> None:
    """Send a request to a worker.

    Raises:
        WorkerDiedError: It has ended.
    """
    try:
        rest = memoryview(frame)
        while rest:
            rest = rest[process.requests.write(rest) :]
        process.requests.flush()
    except OSError as error:
        raise WorkerDiedError from error


def interrupt(process: Process) -> None:
    """Have a worker interrupt its query, unless it does not even read requests any more."""
    frame = LENGTH.pack(len(INTERRUPT)) + INTERRUPT
    with suppress(OSError, ValueError):
        if sys.platform == "win32" or _has_room(process.requests):
            process.requests.write(frame)
            process.requests.flush()


def _has_room(pipe: IO[bytes]) -> bool:
    poll = select.poll()
    poll.register(pipe.fileno(), select.POLLOUT)
    return bool(poll.poll(0))


def answer_of(process: Process, most_bytes: int) -> Any:
    """Read an answer: a value, or a table.

    Args:
        process: The worker.
        most_bytes: Bytes of a table, at most.

    Raises:
        HtaSqlError: The error that the worker reports.
        WorkerDiedError: It ended before its answer was complete.
    """
    try:
        (size,) = LENGTH.unpack(process.answers.read(LENGTH.size))
        if size > LONGEST_JSON:
            raise WorkerDiedError
        answer = json.loads(process.answers.read(size))
    except (struct.error, ValueError, RecursionError, OSError) as error:
        raise WorkerDiedError from error
    if not isinstance(answer, dict):
        raise WorkerDiedError
    if "error" in answer:
        raise _error_of(answer)
    return _table_of(process.answers, most_bytes) if "table" in answer else answer.get("value")


def _error_of(answer: dict[str, Any]) -> HtaSqlError:
    kind = getattr(errors, str(answer["error"]), None)
    is_ours = isinstance(kind, type) and issubclass(kind, HtaSqlError)
    error: Callable[[str], HtaSqlError] = kind if is_ours and kind else QueryError
    return error(str(answer.get("message")))


def _table_of(pipe: IO[bytes], most_bytes: int) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - only where used

    source = _Bounded(pipe, most_bytes)
    try:
        with pa.ipc.open_stream(pa.PythonFile(source, mode="r")) as stream:
            table = stream.read_all()
        # The bytes come from a process that may have been corrupted by a query.
        table.validate(full=True)
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        if source.is_exhausted:
            raise AnswerTooLargeError(
                f"The answer has more than {most_bytes >> 20:,} MiB, which is what a query may use. "
                "Aggregate in SQL, add a LIMIT, or open the store with a larger memory_limit."
            ) from error
        raise WorkerDiedError from error
    return table


class _Bounded:
    """A pipe to read a number of bytes from."""

    closed = False

    def __init__(self, pipe: IO[bytes], most_bytes: int) -> None:
        self._pipe, self._left = pipe, most_bytes
        self.is_exhausted = False

    def read(self, size: int) -> bytes:
        self._left -= size
        self.is_exhausted = self._left < 0
        if self.is_exhausted:
            raise OSError
        return self._pipe.read(size)

    def close(self) -> None:
        """Leave the pipe open: the next answer comes through it."""


def end_of(status: int | None) -> str:
    """Describe how a worker ended: ``by SIGSEGV, a crash of the engine``."""
    if status is None:
        return "without an answer"
    if status >= 0:
        return f"with exit code {status}"
    with suppress(ValueError):
        name = signal.Signals(-status).name
        killed = name == "SIGKILL"
        return f"by {name}, " + ("killed from outside" if killed else "a crash of the engine")
    return f"by signal {-status}"
