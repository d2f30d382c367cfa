"""A worker process as its parent sees it: pipes, time limit, answers, and how it ended."""

from __future__ import annotations

import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from hta_sql import errors
from hta_sql.errors import HtaSqlError, ParameterError, QueryError, StoreError
from hta_sql.machine import remove_left_by_dead, resident_bytes
from hta_sql.store.query.limits import too_long

LENGTH = struct.Struct(">Q")
"""Length of a frame [bytes], before the frame."""

GRACE_S = 0.5
"""Time [s] that an interrupted query has to end before its worker is killed."""

OPEN_S = 60.0
"""Time limit for a worker to open its store [s]."""

LONGEST_JSON = 64 << 20
"""Maximum size of a JSON answer [bytes]."""

_END_S = 1.0
"""Time that an idle worker has to end by itself [s]."""

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from hta_sql.store.query.worker import serve; serve()"
)


class AnswerTooLargeError(QueryError):
    """An answer exceeds its size limit, and was not read."""


class WorkerProcess:
    """A worker process, which is started again if it has ended.

    Args:
        setup: Location and options of the store, pickled.
        most_bytes: Maximum size of a table [bytes].

    Attributes:
        is_ready: Whether the process that was started last has opened the store.
    """

    def __init__(self, setup: bytes, most_bytes: int) -> None:
        self._setup, self._most_bytes = setup, most_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._reason: HtaSqlError | None = None
        self._base = 0
        self._requests = 0
        self.is_ready = False

    @property
    def pid(self) -> int | None:
        """Process ID; None if no process was started."""
        return self._process.pid if self._process else None

    def is_alive(self) -> bool:
        """Return whether a process was started, is running, and was not stopped."""
        return self._process is not None and self._reason is None and self._process.poll() is None

    def grown_bytes(self) -> int:
        """Return by how much the resident memory has grown since the process was ready [bytes]."""
        return resident_bytes(self.pid or 0) - self._base if self.is_ready else 0

    def start(self) -> None:
        """Start a new process without waiting until it has opened the store.

        Raises:
            StoreError: The system starts no process.
        """
        self.close()
        self._process, self.is_ready, self._reason = _python(), False, None
        with suppress(OSError):  # if it ended already, the first answer is missing
            self._send(self._setup)

    def make_ready(self) -> float:
        """Wait until the process has opened the store; return how long that took [s].

        Raises:
            HtaSqlError: The process cannot open the store, or has ended.
        """
        began = time.monotonic()
        if not self.is_alive():
            self.start()
        if not self.is_ready:
            with self._ended_after(OPEN_S, OPEN_S):
                self._answer()
            self._base, self.is_ready = resident_bytes(self.pid or 0), True
        return time.monotonic() - began

    def ask(self, request: bytes, seconds: float | None, left: float | None) -> Any:
        """Send a request; return its answer: a table, or a JSON value.

        Args:
            request: The request, pickled.
            seconds: Time limit of the request, for the error message [s].
            left: Time after which the process interrupts the query [s]; it is killed soon after.

        Raises:
            HtaSqlError: The worker reports this error, exceeded the time limit, or ended.
        """
        try:
            self._send(request)
        except OSError as error:
            if self._reason:
                raise self._reason from error
            self.make_ready()  # it was killed between two requests
            with suppress(OSError):
                self._send(request)
        with self._ended_after(None if left is None else left + GRACE_S, seconds):
            return self._answer()

    @contextmanager
    def _ended_after(self, left: float | None, seconds: float | None) -> Iterator[None]:
        """Kill the process if a block takes longer than ``left``."""
        if left is None or seconds is None:
            yield
            return
        self._requests += 1
        timer = threading.Timer(left, self._time_out, [self._requests, seconds])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self._requests += 1

    def _time_out(self, request: int, seconds: float) -> None:
        if request == self._requests:
            self.end(too_long(seconds))

    def end(self, reason: HtaSqlError) -> None:
        """Kill the process; its request raises this error."""
        self._reason = reason
        if process := self._process:
            process.kill()

    def _send(self, frame: bytes) -> None:
        if self._process:
            pipe = cast("IO[bytes]", self._process.stdin)
            pipe.write(LENGTH.pack(len(frame)) + frame)
            pipe.flush()

    def _answer(self) -> Any:
        process = cast("subprocess.Popen[bytes]", self._process)
        try:
            return answer_of(cast("IO[bytes]", process.stdout), self._most_bytes)
        except AnswerTooLargeError:
            process.kill()  # the rest of the answer is still in the pipe
            process.wait()
            raise
        except EOFError as error:
            process.kill()
            status = process.wait()
            remove_left_by_dead()
            raise self._reason or QueryError(
                f"The worker process of this query ended {_described(status)}. The store is unharmed. "
                "Try a simpler query; if an ordinary query fails, report it."
            ) from error

    def close(self) -> None:
        """End the process: an idle one removes its temporary files, another one is killed."""
        if process := self._process:
            with process:  # closes the pipes
                with suppress(OSError):
                    cast("IO[bytes]", process.stdin).close()
                try:
                    process.wait(_END_S)
                except subprocess.TimeoutExpired:
                    process.kill()
            self._process, self.is_ready = None, False

    def forget(self) -> None:
        """Drop the process in the child of a fork, because it belongs to the parent."""
        if self._process:
            self._process.returncode = 0
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):
                    cast("IO[bytes]", pipe).close()


def pickled(request: object) -> bytes:
    """Serialize a request for a worker.

    Raises:
        ParameterError: A value cannot be pickled.
    """
    try:
        return pickle.dumps(request)
    except Exception as error:  # pickling a caller's class may raise anything
        raise ParameterError(f"A parameter cannot be sent to the engine: {error}") from error


def answer_of(pipe: IO[bytes], most_bytes: int) -> Any:
    """Read an answer, whose bytes come from a process that a query may have corrupted.

    Args:
        pipe: Pipe from the worker.
        most_bytes: Maximum size of a table [bytes].

    Returns:
        A table, or a JSON value.

    Raises:
        HtaSqlError: The error that the worker reports.
        AnswerTooLargeError: The table is too large, and was not read.
        EOFError: The answer is incomplete or invalid.
    """
    import pyarrow as pa  # noqa: PLC0415 - imported with the first answer

    try:
        answer = json.loads(_read(pipe, _length(pipe, LONGEST_JSON)))
        content = _read(pipe, _length(pipe, most_bytes))
        error, value = answer.get("error"), answer.get("value")
        if content:
            value = pa.ipc.open_stream(content).read_all()
            value.validate(full=True)
    except AnswerTooLargeError:
        raise
    except (OSError, ValueError, AttributeError, RecursionError, pa.ArrowException) as invalid:
        raise EOFError from invalid
    if error:
        kind = getattr(errors, str(error), None)
        is_ours = isinstance(kind, type) and issubclass(kind, HtaSqlError)
        raise (kind if is_ours and kind else QueryError)(str(answer.get("message")))
    return value


def _length(pipe: IO[bytes], most: int) -> int:
    (size,) = LENGTH.unpack(_read(pipe, LENGTH.size))
    if size > most:
        raise AnswerTooLargeError(
            f"The result is larger than {most >> 20:,} MiB, the limit for a query. Aggregate in SQL, "
            "add a LIMIT, or open the store with a larger memory_limit."
        )
    return int(size)


def _read(pipe: IO[bytes], size: int) -> bytes:
    content = pipe.read(size)
    if len(content) < size:
        raise EOFError
    return content


def _python() -> subprocess.Popen[bytes]:
    """Start a worker with the import path of this process, without the current folder."""
    path = [entry or str(Path.cwd()) for entry in sys.path]
    try:
        return subprocess.Popen(  # noqa: S603 - a fixed command
            [sys.executable, "-I", "-c", _BOOT, json.dumps(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # NumPy would start a thread per core.
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C in a terminal is for the parent
        )
    except OSError as error:
        raise StoreError(f"No worker process for queries can be started: {error}") from error


def _described(status: int) -> str:
    """Describe how a process ended: ``with SIGSEGV``."""
    with suppress(ValueError):
        if status < 0:
            return f"with {signal.Signals(-status).name}"
    return f"with exit status {status}"
