"""Reports a full disk, or an exceeded quota or file size limit, while a store is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import duckdb

from hta_sql.errors import StoreError
from hta_sql.exhausted import disk_reason, disk_refusal
from hta_sql.store.disk.folder import StoreFolder


def is_disk_full(error: BaseException) -> bool:
    """Return whether an error reports a full disk, or an exceeded quota or file size limit."""
    return disk_refusal(error) is not None


@contextmanager
def reporting_full_disk(folder: StoreFolder, clean_up: Callable[[], object]) -> Iterator[None]:
    """If the disk is full, delete the partial write and raise an error that names the cause.

    Args:
        folder: The store that is written.
        clean_up: Deletes the files of the failed write.

    Raises:
        StoreError: The disk is full, or a quota or the file size limit is exceeded.
    """
    try:
        yield
    except (OSError, duckdb.Error) as error:
        number = disk_refusal(error)
        if number is None:
            raise
        clean_up()
        what, remedy = disk_reason(number)
        first = str(error).partition("\n")[0]
        raise StoreError(
            f"{what} while writing {folder.root!r}: {first}. The previous contents of the store are "
            f"intact. {remedy}, then ingest again."
        ) from error
