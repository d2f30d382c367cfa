"""Starts worker processes: with a fork server on Linux, as separate Python processes elsewhere."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from hta_sql.errors import StoreError

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from hta_sql.store.query.worker import main; main()"
)
_NUMBER_BYTES = 8
_END_S = 5.0
"""Time to wait for a killed worker to end [s]."""


class Process(ABC):
    """A worker process: its pipes and exit status.

    Attributes:
        pid: Process ID.
        requests: Pipe to the worker.
        answers: Pipe from the worker.
    """

    pid: int
    requests: IO[bytes]
    answers: IO[bytes]
    _status: int | None = None
    _socket: socket.socket | None = None

    @abstractmethod
    def status(self) -> int | None:
        """Return the exit status (negative for a signal), or None while the process runs."""

    @abstractmethod
    def has_ended(self) -> bool:
        """Return whether the process has ended, without waiting."""

    @abstractmethod
    def forget(self) -> None:
        """Drop the handle in the child of a fork, because the process belongs to the parent."""

    def kill(self) -> None:
        """Kill the process, unless it was already reaped."""
        if self._status is None:
            with suppress(OSError):
                os.kill(self.pid, getattr(signal, "SIGKILL", signal.SIGTERM))

    def wait(self, seconds: float = _END_S) -> int | None:
        """Wait for the process to end; return its exit status, or None if it still runs."""
        until, pause = time.monotonic() + seconds, 0.001
        while (status := self.status()) is None and time.monotonic() < until:
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        return status

    def abandon(self) -> None:
        """Kill the process and unblock readers of its answer at once; ending may take seconds."""
        self.kill()
        if self._socket:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the pipes, which ends a worker that waits for requests."""
        for pipe in (self.requests, self.answers, self._socket):
            with suppress(OSError):
                if pipe:
                    pipe.close()

    def _talk_over(self, ours: socket.socket) -> None:
        self._socket = ours
        self.requests = cast("IO[bytes]", ours.makefile("wb", 0))
        self.answers = ours.makefile("rb")


class Spawned(Process):
    """A worker as a direct child process."""

    def __init__(self) -> None:
        if os.name == "posix":
            ours, other = socket.socketpair()
            with other:
                self._child = _python("serve", other.fileno(), other.fileno())
            self._talk_over(ours)
        else:
            self._child = _python("serve", subprocess.PIPE, subprocess.PIPE)
            self.requests = cast("IO[bytes]", self._child.stdin)
            self.answers = cast("IO[bytes]", self._child.stdout)
        self.pid = self._child.pid

    def status(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        self._status = self._child.poll()
        return self._status

    def has_ended(self) -> bool:
        """Return whether the process has ended, without waiting."""
        return self.status() is not None

    def forget(self) -> None:
        """Drop the handle in the child of a fork."""
        self.close()
        self._child.returncode = 0


class Forked(Process):
    """A worker as a child of the fork server."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server
        ours, other = socket.socketpair()
        self._talk_over(ours)
        with other:
            try:
                self.pid = server.ask(b"F", [other.fileno()])
            except OSError:
                self.close()
                raise

    def status(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        if self._status is None:
            try:
                status = self._server.ask(b"W" + self.pid.to_bytes(_NUMBER_BYTES, "big"))
            except OSError:  # the server has died, so the status is unknown
                status = -signal.SIGKILL if _is_at_end(self.answers) else _RUNNING
            self._status = None if status == _RUNNING else status
        return self._status

    def has_ended(self) -> bool:
        """Return whether the process has ended, without waiting for a busy fork server."""
        return self._status is not None or _is_at_end(self.answers)

    def forget(self) -> None:
        """Drop the handle in the child of a fork."""
        self.close()


_RUNNING = -1_000


class ForkServer:
    """A Python process that forks workers after all imports, which saves 0.5 s per worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control, other = socket.socketpair()
        with other:
            self._child = _python("fork", other.fileno(), subprocess.DEVNULL)

    def ask(self, message: bytes, files: list[int] | None = None) -> int:
        """Send a request and return the number in its reply.

        Raises:
            OSError: The server has ended.
        """
        with self._lock:
            socket.send_fds(self._control, [message], files or [])
            answer = self._control.recv(_NUMBER_BYTES, socket.MSG_WAITALL)
        if len(answer) < _NUMBER_BYTES:
            raise ConnectionError
        return int.from_bytes(answer, "big", signed=True)

    def close(self) -> None:
        """End the server; its forked workers end when their pipes are closed."""
        self._control.close()
        self._child.kill()  # it has nothing to clean up
        self._child.wait()

    def forget(self) -> None:
        """Drop the handle in the child of a fork."""
        self._control.close()
        self._child.returncode = 0


class Processes:
    """Starts workers, through a fork server if the system supports it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: ForkServer | None = None

    def start(self) -> Process:
        """Start a worker.

        Raises:
            StoreError: No Python process can be started.
        """
        try:
            # On other systems, system libraries do not survive a fork without exec.
            if sys.platform != "linux":
                return Spawned()
            with self._lock:
                server = self._server = self._server or ForkServer()
            try:
                return Forked(server)
            except OSError:
                with self._lock:
                    if self._server is server:
                        server.close()
                        self._server = ForkServer()
                    server = self._server or ForkServer()
                return Forked(server)
        except OSError as error:
            raise StoreError(f"No worker process for queries can be started: {error}") from error

    def preload(self, module: str) -> None:
        """Import a module in the fork server, so that later workers start with it."""
        with self._lock:
            server = self._server
        if server:
            with suppress(OSError):
                server.ask(b"M" + module.encode())

    def close(self) -> None:
        """End the fork server."""
        with self._lock:
            server, self._server = self._server, None
        if server:
            server.close()

    def forget(self) -> None:
        """Drop the fork server in the child of a fork."""
        self._lock = threading.Lock()
        if self._server:
            self._server.forget()
        self._server = None


def _python(mode: str, stdin: int, stdout: int) -> subprocess.Popen[bytes]:
    """Start a Python process with the import path of this process, without the current folder."""
    if not sys.executable:
        raise StoreError("No worker process for queries can be started: sys.executable is not set.")
    path = [entry or str(Path.cwd()) for entry in sys.path]
    command = [sys.executable, "-I", "-c", _BOOT, json.dumps(path), mode]
    # Prevent these libraries from starting threads, because a forking process must have none.
    environment = os.environ | {
        "OPENBLAS_NUM_THREADS": "1",
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
    }
    return subprocess.Popen(  # noqa: S603 - a fixed command
        command, stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL, env=environment
    )


def _is_at_end(pipe: IO[bytes]) -> bool:
    """Return whether the other end of a pipe is closed."""
    poll = select.poll()
    try:
        poll.register(pipe.fileno(), 0)
    except ValueError:  # our end is closed
        return True
    return bool(poll.poll(0))
