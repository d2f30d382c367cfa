"""Stores that commands open, and traces that they read into a temporary store for themselves."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hta_sql.store import STORE_NAME
from hta_sql.store.manifest import MANIFEST

if TYPE_CHECKING:
    from hta_sql.store.trace_store import TraceStore


@contextmanager
def opened_or_read(traces: str) -> Iterator[tuple[TraceStore, bool]]:
    """Open the store, or the one inside the folder of traces, else read the traces.

    Yields:
        The store, and whether it was made for this; such a one is gone afterwards.
    """
    import hta_sql  # noqa: PLC0415 - imports are the start-up cost

    folder = Path(traces)
    for store in (folder, folder / STORE_NAME):
        if (store / MANIFEST).exists():
            with hta_sql.TraceStore(store) as opened:
                yield opened, False
            return
    with (
        tempfile.TemporaryDirectory(prefix="hta_sql_") as temporary,
        hta_sql.ingest(traces, temporary) as opened,
    ):
        yield opened, True
