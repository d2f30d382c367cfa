"""A disk that is full while a store is written."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import duckdb

from hta_sql.errors import StoreError
from hta_sql.store.files import StoreFolder

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_disk_full(error: BaseException) -> bool:
    """Recognise a full disk, an exceeded quota or file size, by the system or by the engine."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    texts = [os.strerror(number) for number in _FULL]
    return isinstance(error, duckdb.Error) and any(text in str(error) for text in texts)


@contextmanager
def room_in(folder: StoreFolder, give_back: Callable[[], object]) -> Iterator[None]:
    """Turn a full disk into an error that says so, after giving back what was written.

    Raises:
        StoreError: The disk is full.
    """
    try:
        yield
    except (OSError, duckdb.Error) as error:
        if not is_disk_full(error):
            raise
        give_back()
        first = str(error).partition("\n")[0]
        raise StoreError(
            f"No space left to write {folder.root!r}: {first}. What the store held before is "
            "intact. Make room and ingest again."
        ) from error
