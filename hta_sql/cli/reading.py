"""Opens stores for commands, and ingests traces into a temporary store."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hta_sql.cli.messages import logged, note, rank_progress, slow_progress
from hta_sql.cli.verifying import verifies
from hta_sql.machine import temporary_folder
from hta_sql.store import STORE_NAME
from hta_sql.store.disk.manifest import MANIFEST, SHARDS
from hta_sql.text import first_of

if TYPE_CHECKING:
    from hta_sql.errors import HtaSqlError
    from hta_sql.store.query.trace_store import TraceStore


@contextmanager
def opened_or_read(
    traces: str,
    analyses: Sequence[Path] | None = None,
    memory_limit: str | None = None,
    on_failure: Callable[[HtaSqlError], None] | None = None,
) -> Iterator[tuple[TraceStore, bool]]:
    """Open a store, or the store inside a folder of traces; if there is none, ingest the traces.

    Args:
        traces: A store, a folder of traces or a trace.
        analyses: Folders of user analyses; None: those of the environment.
        memory_limit: Memory of the engine; None: its default.
        on_failure: Called if some files cannot be ingested, while the others are in the store. If
            None, the failure is raised.

    Yields:
        The store, and whether it is temporary; a temporary store is deleted afterwards.
    """
    import hta_sql  # noqa: PLC0415 - lazy, to start faster

    folder = Path(traces)
    opening = partial(
        hta_sql.TraceStore, analyses=analyses, memory_limit=memory_limit, verify=verifies()
    )
    for store in (folder, folder / STORE_NAME):
        # Opening a store reports unpublished shards.
        if (store / MANIFEST).exists() or (store / SHARDS).is_dir():
            with opening(store) as opened, _reporting(opened):
                yield opened, False
            return
    with temporary_folder() as temporary:
        try:
            with rank_progress(lines=False) as progress:
                hta_sql.ingest(
                    traces, temporary, memory_limit=memory_limit, progress=progress
                ).close()
        except hta_sql.TraceError as error:
            if on_failure is None or not Path(temporary, MANIFEST).exists():
                raise
            on_failure(error)
        with opening(temporary) as opened, _reporting(opened):
            yield opened, True


@contextmanager
def open_to_query(
    path: Path, analyses: Sequence[Path] | None = None, memory_limit: str | None = None
) -> Iterator[TraceStore]:
    """Open a store. If the path holds traces instead, ingest them into a temporary store first.

    Args:
        path: A store, a folder of traces or a trace.
        analyses: Folders of user analyses; None: those of the environment.
        memory_limit: Memory of the engine; None: its default.
    """
    import hta_sql  # noqa: PLC0415

    with ExitStack() as opened:
        if path.exists():
            with logged(verbose=False):
                store, is_new = opened.enter_context(
                    opened_or_read(str(path), analyses, memory_limit)
                )
            if is_new:
                note(f"note: {path} was ingested temporarily; {_ingest_command(path)}")
        else:
            store = opened.enter_context(
                hta_sql.TraceStore(
                    path, analyses=analyses, memory_limit=memory_limit, verify=verifies()
                )
            )
            opened.enter_context(_reporting(store))
        with logged(verbose=False):
            yield store


def _ingest_command(path: Path) -> str:
    """Return the command that stores traces permanently, and the location of that store."""
    from hta_sql.store.disk.run_names import default_run_name  # noqa: PLC0415

    command = f"hta-sql ingest {shlex.quote(str(path))}"
    if path.is_dir():
        return f"to store it permanently in {path / STORE_NAME}: {command}"
    return f"to store it permanently: {command} -o {default_run_name(str(path))}.store"


@contextmanager
def _reporting(store: TraceStore) -> Iterator[None]:
    """Show the progress of computations in a store."""
    with slow_progress("Computing") as progress:
        store.report_progress(progress)
        yield


def chosen_run(
    opened: ExitStack, stores: dict[Path, TraceStore], given: tuple[Path, str | None]
) -> tuple[TraceStore, str]:
    """Return the store and the run of a ``STORE:RUN``; each store is opened only once.

    Raises:
        UsageError: There is no such run, or there are several and none is named.
    """
    path, run = given
    store = opened_once(opened, stores, path)
    return store, run_in(store, path, run)


def opened_once(opened: ExitStack, stores: dict[Path, TraceStore], path: Path) -> TraceStore:
    """Open a store, or return it if it is open already."""
    if path not in stores:
        stores[path] = opened.enter_context(open_to_query(path))
    return stores[path]


def run_in(store: TraceStore, path: Path, run: str | None) -> str:
    """Return the name of the given run, or of the only run if none is given.

    Raises:
        UsageError: There is no such run, or there are several and none is named.
    """
    runs: list[str] = store.runs()
    if run is None and len(runs) == 1:
        return runs[0]
    if run not in runs:
        wanted = f"has no run {run!r}" if run else "has several runs"
        there = first_of([f"{path}:{name}" for name in runs], 20)
        raise click.UsageError(f"{path} {wanted}; specify one: {there}")
    return run
