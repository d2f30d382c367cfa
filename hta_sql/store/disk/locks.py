"""The lock of a store: one writer at a time. The system releases it if the process dies."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING

from hta_sql.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from hta_sql.store.disk.folder import StoreFolder

log = logging.getLogger(__name__)

LOCK_TIMEOUT_S = 60.0
"""Default time to wait for another ingest that is writing the store [s]."""

RANK_TIMEOUT_S = 60.0
"""Default time to wait for ranks of a run that have no trace yet [s].

Ranks record the same steps, so they differ by little. A network file system may show a new file to
other machines a minute late.
"""

LOCK = ".lock"
POLL_S = 0.05


@contextmanager
def store_lock(
    folder: StoreFolder, timeout_s: float = LOCK_TIMEOUT_S, name: str = LOCK
) -> Iterator[None]:
    """Acquire the lock of a store, waiting while another process holds it.

    At a URL, the lock is an object that is created exclusively and renewed; see ``remote_lock``.

    Raises:
        StoreError: Another ingest still held the lock after the timeout.
    """
    # The package imports the timeout from this module; lazy imports halve its import time.
    import socket  # noqa: PLC0415

    from hta_sql.store.disk.folder import RemoteFolder  # noqa: PLC0415
    from hta_sql.store.disk.remote_lock import remote_lock  # noqa: PLC0415
    from hta_sql.traces.writing import make_folder  # noqa: PLC0415

    if isinstance(folder, RemoteFolder):
        with remote_lock(folder, timeout_s, name):
            yield
        return
    # No locking on Windows: ingests of one store must not overlap there.
    if folder.local is None or not find_spec("fcntl"):
        yield
        return
    path = folder.local / name
    make_folder(path.parent)
    until = time.monotonic() + timeout_s
    while True:
        with path.open("a+") as file:
            _wait_for(folder, file, until, timeout_s)
            if not _is_at(path, file):
                continue  # deleted by its holder; another process may lock a new file
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
            yield
            return


def _wait_for(folder: StoreFolder, file: IO[str], until: float, timeout_s: float) -> None:
    import fcntl  # noqa: PLC0415 - available, see store_lock

    waiting = False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if time.monotonic() >= until:
                raise StoreError(_still_busy(folder, file, timeout_s)) from error
        else:
            return
        if not waiting:
            log.warning(
                "Another ingest (%s) is writing to %s; waiting up to %g s for it to finish.",
                _holder(file),
                folder.root,
                timeout_s,
            )
            waiting = True
        time.sleep(POLL_S)


def _is_at(path: Path, file: IO[str]) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    return False


def _holder(file: IO[str]) -> str:
    file.seek(0)
    return file.read(200) or "a process"


def _still_busy(folder: StoreFolder, file: IO[str], timeout_s: float) -> str:
    waited = f" after {timeout_s:g} s" if timeout_s else ""
    return (
        f"Another ingest ({_holder(file)}) is still writing to {folder.root!r}{waited}. Wait until it "
        "finishes, increase lock_timeout, or use another store."
    )
