"""Starts worker processes: by a fork server on Linux, elsewhere each as a Python of its own."""

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
"""Time to wait for the end of a worker that was killed [s]."""


class Process(ABC):
    """A worker process: its pipes and its end.

    Attributes:
        pid: Number of the process.
        requests: Pipe to it.
        answers: Pipe from it.
    """

    pid: int
    requests: IO[bytes]
    answers: IO[bytes]
    _status: int | None = None
    _socket: socket.socket | None = None

    @abstractmethod
    def status(self) -> int | None:
        """Return its exit status, negative for a signal; None while it runs."""

    @abstractmethod
    def has_ended(self) -> bool:
        """Return whether it has ended, at once."""

    @abstractmethod
    def forget(self) -> None:
        """Let go of it in the child of a fork: it belongs to the parent."""

    def kill(self) -> None:
        """End it at once; nothing if it has ended and was waited for."""
        if self._status is None:
            with suppress(OSError):
                os.kill(self.pid, getattr(signal, "SIGKILL", signal.SIGTERM))

    def wait(self, seconds: float = _END_S) -> int | None:
        """Wait for its end; None if it still runs after that time."""
        until, pause = time.monotonic() + seconds, 0.001
        while (status := self.status()) is None and time.monotonic() < until:
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        return status

    def abandon(self) -> None:
        """Kill it, and let whoever waits for its answer go on at once: its end may take seconds."""
        self.kill()
        if self._socket:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close what leads to it, which ends a worker that listens."""
        for pipe in (self.requests, self.answers, self._socket):
            with suppress(OSError):
                if pipe:
                    pipe.close()

    def _talk_over(self, ours: socket.socket) -> None:
        self._socket = ours
        self.requests = cast("IO[bytes]", ours.makefile("wb", 0))
        self.answers = ours.makefile("rb")


class Spawned(Process):
    """A worker as a child of this process."""

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
        """Return its exit status; None while it runs."""
        self._status = self._child.poll()
        return self._status

    def has_ended(self) -> bool:
        """Return whether it has ended, at once."""
        return self.status() is not None

    def forget(self) -> None:
        """Let go of it in the child of a fork."""
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
        """Return its exit status; None while it runs."""
        if self._status is None:
            try:
                status = self._server.ask(b"W" + self.pid.to_bytes(_NUMBER_BYTES, "big"))
            except OSError:  # the server has gone, and its children with it are nobody's
                status = -signal.SIGKILL if _is_at_end(self.answers) else _RUNNING
            self._status = None if status == _RUNNING else status
        return self._status

    def has_ended(self) -> bool:
        """Return whether it has ended, at once: the server may be busy with a fork."""
        return self._status is not None or _is_at_end(self.answers)

    def forget(self) -> None:
        """Let go of it in the child of a fork."""
        self.close()


_RUNNING = -1_000


class ForkServer:
    """A Python that has everything imported and forks workers: they save 0.5 s of start and imports."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control, other = socket.socketpair()
        with other:
            self._child = _python("fork", other.fileno(), subprocess.DEVNULL)

    def ask(self, message: bytes, files: list[int] | None = None) -> int:
        """Send a request and return the number that it is answered with.

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
        """End it; workers that it has forked end with their pipes."""
        self._control.close()
        self._child.kill()  # it holds nothing that it would have to tidy up
        self._child.wait()

    def forget(self) -> None:
        """Let go of it in the child of a fork."""
        self._control.close()
        self._child.returncode = 0


class Processes:
    """Starts workers, with a fork server where the system allows it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: ForkServer | None = None

    def start(self) -> Process:
        """Start a worker.

        Raises:
            StoreError: No Python can be started.
        """
        try:
            # Elsewhere system libraries do not survive a fork without exec.
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
        """Have workers that are started from now on import a module before they are asked."""
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
        """Let go of the server in the child of a fork."""
        self._lock = threading.Lock()
        if self._server:
            self._server.forget()
        self._server = None


def _python(mode: str, stdin: int, stdout: int) -> subprocess.Popen[bytes]:
    """Start a Python that imports from where this one does, and not from the current folder."""
    if not sys.executable:
        raise StoreError("No worker process for queries can be started: sys.executable is not set.")
    path = [entry or str(Path.cwd()) for entry in sys.path]
    command = [sys.executable, "-I", "-c", _BOOT, json.dumps(path), mode]
    # Neither starts a thread then: a process that forks must have none.
    environment = os.environ | {
        "OPENBLAS_NUM_THREADS": "1",
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
    }
    return subprocess.Popen(  # noqa: S603 - our own command
        command, stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL, env=environment
    )


def _is_at_end(pipe: IO[bytes]) -> bool:
    """Whether the other end of a pipe is closed."""
    poll = select.poll()
    try:
        poll.register(pipe.fileno(), 0)
    except ValueError:  # we have closed ours
        return True
    return bool(poll.poll(0))
