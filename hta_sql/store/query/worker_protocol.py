"""Protocol with a worker process: sends requests, reads answers, describes how a worker ended."""

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
"""Maximum size of a JSON answer [bytes]."""


class AnswerTooLargeError(QueryError):
    """A table exceeded its size limit and was not read to the end, so the pipe is unusable."""


class WorkerDiedError(Exception):
    """A worker ended or wrote invalid data before its answer was complete."""


def request_of(request: object) -> bytes:
    """Serialize a request for a worker.

    Raises:
        ParameterError: A value cannot be pickled.
    """
    try:
        content = pickle.dumps(request)
    except Exception as error:  # pickling a caller's class may raise anything
        raise ParameterError(f"A parameter cannot be sent to the engine: {error}") from error
    return LENGTH.pack(len(content)) + content


def send(process: Process, frame: bytes) -> None:
    """Send a request to a worker.

    Raises:
        WorkerDiedError: The worker has ended.
    """
    try:
        rest = memoryview(frame)
        while rest:
            rest = rest[process.requests.write(rest) :]
        process.requests.flush()
    except OSError as error:
        raise WorkerDiedError from error


def interrupt(process: Process) -> None:
    """Request that a worker interrupt its query, unless its request pipe is full."""
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
    """Read an answer: a value or a table.

    Args:
        process: The worker.
        most_bytes: Maximum size of a table [bytes].

    Raises:
        HtaSqlError: The error that the worker reports.
        WorkerDiedError: The worker ended before its answer was complete.
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
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    source = _Bounded(pipe, most_bytes)
    try:
        with pa.ipc.open_stream(pa.PythonFile(source, mode="r")) as stream:
            table = stream.read_all()
        # The bytes come from a process whose memory a query may have corrupted.
        table.validate(full=True)
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        if source.is_exhausted:
            raise AnswerTooLargeError(
                f"The result is larger than {most_bytes >> 20:,} MiB, the limit for a query. "
                "Aggregate in SQL, add a LIMIT, or open the store with a larger memory_limit."
            ) from error
        raise WorkerDiedError from error
    return table


class _Bounded:
    """A pipe from which at most a given number of bytes can be read."""

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
        """Keep the pipe open for the next answer."""


def end_of(status: int | None) -> str:
    """Describe how a worker ended: ``with SIGSEGV (the engine crashed)``."""
    if status is None:
        return "without a response"
    if status >= 0:
        return f"with exit code {status}"
    with suppress(ValueError):
        name = signal.Signals(-status).name
        killed = name == "SIGKILL"
        return f"with {name} " + ("(killed from outside)" if killed else "(the engine crashed)")
    return f"with signal {-status}"
