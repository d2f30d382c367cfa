"""The lock of a store at a URL: an object that only one writer can create.

Object storage does not release the lock of a process that dies. Therefore the holder rewrites the
object every BEAT_S seconds. A waiting process takes over the lock if it sees no change for STALE_S
seconds by its own clock. Clocks of different machines are never compared.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hta_sql.errors import StoreError
from hta_sql.store.disk.folder import RemoteFolder

log = logging.getLogger(__name__)

BEAT_S = 10.0
STALE_S = 45.0
"""Time without renewal after which a lock is stale [s].

Four missed renewals are tolerated, and it is shorter than the default lock timeout of 60 s.
"""

SETTLE_S = 1.0
"""Delay after taking over a stale lock [s].

If two processes take it over at once, both check again after this delay.
"""

POLL_S = 0.5


@contextmanager
def remote_lock(folder: RemoteFolder, timeout_s: float, name: str) -> Iterator[None]:
    """Acquire the lock of a store at a URL, waiting while another process holds it.

    Raises:
        StoreError: Another ingest still held the lock after the timeout.
    """
    lock = _RemoteLock(folder, name)
    lock.acquire(timeout_s)
    try:
        with lock.kept():
            yield
    finally:
        lock.release()


class _RemoteLock:
    """One attempt to acquire a lock."""

    def __init__(self, folder: RemoteFolder, name: str) -> None:
        self._folder = folder
        self._name = name
        self._token = uuid.uuid4().hex
        self._beats = 0

    def acquire(self, timeout_s: float) -> None:
        """Create the lock object, waiting while a live lock of another process exists."""
        started = time.monotonic()
        seen, since = b"", started
        while not self._create():
            now = time.monotonic()
            current = self._read()
            if current != seen:
                if not seen and current and timeout_s:
                    log.warning(
                        "Another ingest (%s) is writing to %s; waiting up to %g s for it to finish.",
                        _holder(current),
                        self._folder.root,
                        timeout_s,
                    )
                seen, since = current, now
            elif current and now - since >= STALE_S and self._taken_over(current):
                return
            if now - started >= timeout_s:
                raise StoreError(self._still_busy(current, timeout_s))
            time.sleep(min(POLL_S, max(0.0, timeout_s - (now - started))))

    def _create(self) -> bool:
        return self._folder.create(self._name, self._content())

    def _taken_over(self, stale: bytes) -> bool:
        """Replace a stale lock; return whether this process holds it. The last writer wins."""
        if self._read() != stale:
            return False
        log.warning(
            "The lock on %s was left behind by %s, which has not renewed it for %g s; taking it over.",
            self._folder.root,
            _holder(stale),
            STALE_S,
        )
        self._folder.replace(self._name, self._content())
        time.sleep(SETTLE_S)
        return self._is_mine()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Renew the lock in a background thread while it is held."""
        done = threading.Event()
        thread = threading.Thread(target=self._renew, args=(done.wait,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _renew(self, wait: Callable[[float], bool]) -> None:
        while not wait(BEAT_S):
            try:
                if not self._is_mine():
                    log.error(
                        "The lock on %s was taken over while this ingest was not responding. Its "
                        "results may overwrite those of the other ingest: ingest again.",
                        self._folder.root,
                    )
                    return
                self._beats += 1
                self._folder.replace(self._name, self._content())
            except OSError as error:
                log.warning("The lock on %s could not be renewed: %s", self._folder.root, error)

    def release(self) -> None:
        """Delete the lock object, unless another process has taken it over."""
        try:
            if self._is_mine():
                self._folder.remove([self._name])
        except OSError as error:
            log.warning("The lock on %s could not be removed: %s", self._folder.root, error)

    def _is_mine(self) -> bool:
        return self._token.encode() in self._read()

    def _read(self) -> bytes:
        try:
            return self._folder.read(self._name)
        except FileNotFoundError:
            return b""

    def _content(self) -> bytes:
        holder = f"process {os.getpid()} on {socket.gethostname()}"
        return json.dumps({"holder": holder, "token": self._token, "beats": self._beats}).encode()

    def _still_busy(self, current: bytes, timeout_s: float) -> str:
        waited = f" after {timeout_s:g} s" if timeout_s else ""
        return (
            f"Another ingest ({_holder(current)}) is still writing to {self._folder.root!r}{waited}. "
            f"Wait until it finishes, or increase lock_timeout: the lock of a process that died expires "
            f"{STALE_S:g} s after its last renewal. If you are certain that no process is "
            f"writing to the store, delete {self._folder.path(self._name)}."
        )


def _holder(content: bytes) -> str:
    try:
        return str(json.loads(content)["holder"])
    except (ValueError, KeyError, TypeError):
        return "a process"
