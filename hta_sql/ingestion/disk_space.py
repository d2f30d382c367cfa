"""A disk that is full while a store is written, a quota or a file size that is exceeded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import duckdb

from hta_sql.errors import StoreError
from hta_sql.exhausted import disk_reason, disk_refusal
from hta_sql.store.disk.folder import StoreFolder


def is_disk_full(error: BaseException) -> bool:
    """Recognise a full disk, an exceeded quota or file size, by the system or by the engine."""
    return disk_refusal(error) is not None


@contextmanager
def room_in(folder: StoreFolder, give_back: Callable[[], object]) -> Iterator[None]:
    """Turn a full disk into an error that says so, after giving back what was written.

    Raises:
        StoreError: The disk is full, or a quota or the limit of file sizes is exceeded.
    """
    try:
        yield
    except (OSError, duckdb.Error) as error:
        number = disk_refusal(error)
        if number is None:
            raise
        give_back()
        what, remedy = disk_reason(number)
        first = str(error).partition("\n")[0]
        raise StoreError(
            f"{what} to write {folder.root!r}: {first}. What the store held before is "
            f"intact. {remedy} and ingest again."
        ) from error
