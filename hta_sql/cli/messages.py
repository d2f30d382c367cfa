"""Messages of a command on stderr: notes, warnings, errors, progress."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from hta_sql.cli.terminal import terminal_of
from hta_sql.text import counted, printable

if TYPE_CHECKING:
    from hta_sql.ingestion.rank_job import RankResult

Progress = Callable[["RankResult", int, int], None]

_ROWS = {
    "snapshot_events": "allocator event",
    "snapshot_segments": "memory segment",
    "fr_entries": "operation",
    "et_nodes": "node",
}
"""Main table of files that are not traces ─▶ name of a row of that table."""


def note(text: str) -> None:
    """Print a message to stderr."""
    click.echo(_safe(text), err=True)


def show_error(text: str) -> None:
    """Print an error message, without the blank lines of engine messages."""
    lines = [line.expandtabs(4) for line in text.splitlines() if line.strip()]
    note("error: " + "\n".join(lines))


def _safe(text: str) -> str:
    """Escape control characters in names of files and kernels."""
    return "\n".join(map(printable, text.split("\n")))


class StderrHandler(logging.Handler):
    """Writes log records as ``warning: ...``.

    Looks up stderr for each record, because a progress bar replaces it.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        prefix = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        note(prefix + record.getMessage())


@contextmanager
def logged(*, verbose: bool) -> Iterator[None]:
    """Show the package's warnings, and with ``verbose`` its info messages, while a command runs."""
    logger = logging.getLogger("hta_sql")
    handler, level = StderrHandler(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if verbose else logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


@contextmanager
def rank_progress(*, lines: bool = True) -> Iterator[Progress]:
    """Show the progress of an ingest: a bar on a terminal, otherwise a line per rank.

    Args:
        lines: Whether to print these lines if there is no terminal.
    """
    with _bar("Reading traces") as update:
        if update is None:
            yield _line if lines else lambda *_: None
            return
        began, events = time.monotonic(), 0

        def ranks_read(result: RankResult, done: int, total: int) -> None:
            nonlocal events
            events += result.event_count
            rate = events / (time.monotonic() - began)
            update(done, total, f"{done}/{total} ranks, {rate:,.0f} events/s")

        yield ranks_read


@contextmanager
def name_progress(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """Show which of several names is being processed: a bar on a terminal, otherwise nothing.

    The yielded function is called before each name with (name, done, total). Without a terminal, a
    line for each name would flood a log.
    """
    with _bar(what) as update:
        if update is None:
            yield lambda *_: None
            return
        yield lambda name, done, total: update(done, total, name)


@contextmanager
def slow_progress(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """Show which part of a computation is running, from the first report until all parts are done.

    Nothing is shown without a terminal.
    """
    with ExitStack() as stack:
        bars: list[Callable[[int, int, str], None] | None] = []

        def update(name: str, done: int, total: int) -> None:
            if not bars:
                bars.append(stack.enter_context(_bar(what)))
            if bars[0]:
                bars[0](done, total, name)
            if done >= total:
                stack.close()  # remove the bar before the result is printed
                bars.clear()

        yield update


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """Show a bar with the remaining time; yields None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - imported only when needed
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[text]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    console = Console(file=terminal_of(sys.stderr))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None, text="")
        yield lambda done, total, text: bar.update(
            task, completed=done, total=total, text=printable(text)
        )


def _line(result: RankResult, done: int, total: int) -> None:
    note(
        f"[{done}/{total}] {result.job.run} rank {result.job.rank}: "
        f"{_content(result)} in {result.seconds:.2f} s"
    )


def _content(result: RankResult) -> str:
    """Return what a file contained: events of a trace, or rows of another file's main table."""
    rows = {file.table: file.rows for file in result.files}
    of_artifact = (counted(rows[table], noun) for table, noun in _ROWS.items() if table in rows)
    return next(of_artifact, counted(result.event_count, "event"))
