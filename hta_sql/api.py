"""The two ways in: ingest traces into a store, open a store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hta_sql.ingestion import RankResult
    from hta_sql.store import TraceStore


def ingest(
    traces: str | os.PathLike[str] | Iterable[str] | Mapping[int, str],
    store: str | os.PathLike[str],
    *,
    run: str | None = None,
    ranks: Iterable[int] | None = None,
    jobs: int | None = None,
    force: bool = False,
    strict: bool = False,
    rank_regex: str | None = None,
    kernel_classes: str | os.PathLike[str] | None = None,
    memory_limit: str | None = None,
    executor: Executor | None = None,
    progress: Callable[[RankResult, int, int], None] | None = None,
) -> TraceStore:
    """Read Kineto traces into a store, once, and open it.

    Unchanged files that the store already holds are skipped. Nothing of an
    ingest is visible to readers before all of it is.

    Args:
        traces: A trace file, a folder (searched recursively), a glob, a list of these,
            or ``{rank: path}``; ``.json``, ``.json.gz`` or ``.json.zst``, local or any
            fsspec URL.
        store: Folder of the store; made where missing, else added to.
        run: Name of the run; default: the name of the folder or file.
        ranks: Read only these ranks.
        jobs: Processes; default: the cores that this process may use.
        force: Read unchanged files again.
        strict: Refuse a trace with anything broken in it; default: keep what is whole, repair
            what can be repaired, and list both in the table ``quarantine``.
        rank_regex: Finds the rank in file names; its first group is the rank.
        kernel_classes: CSV with rules that go before the built-in ones
            (priority, regex, class, collective, vendor).
        memory_limit: Memory of each process's engine, for example ``"1GiB"``.
        executor: Any ``concurrent.futures.Executor`` to run the ranks on.
        progress: Called after each rank with (result, ranks done, ranks to do).

    Returns:
        The store, opened.

    Raises:
        TraceNotFoundError: No traces there.
        TraceError: Some traces could not be read; the others are in the store.
        RankError: A wanted rank is not among the traces.
        ParameterError: A bad run name, regex or number of jobs.
        StoreError: Another ingest is writing the store.
    """
    from hta_sql.catalog import build_catalog  # noqa: PLC0415 - imports are the start-up cost
    from hta_sql.ingestion import ingest_traces  # noqa: PLC0415
    from hta_sql.store import TraceStore  # noqa: PLC0415

    folder = Path(store)
    source = os.fspath(traces) if isinstance(traces, os.PathLike) else traces
    try:
        report = ingest_traces(
            source,
            folder,
            run=run,
            ranks=ranks,
            jobs=jobs,
            force=force,
            strict=strict,
            rank_regex=rank_regex,
            kernel_classes=os.fspath(kernel_classes) if kernel_classes else None,
            memory_limit=memory_limit,
            executor=executor,
            progress=progress,
        )
    finally:
        # Also after a partial failure: what could be read is there to be used.
        if (folder / "manifest.json").exists():
            build_catalog(folder)
    opened = TraceStore(folder)
    opened.ingested = report
    return opened


def open_store(store: str | os.PathLike[str], **options: object) -> TraceStore:
    """Open a store for reading; see :class:`hta_sql.TraceStore`."""
    from hta_sql.store import TraceStore  # noqa: PLC0415

    return TraceStore(store, **options)  # type: ignore[arg-type]
