"""What a command tells the user, on stderr: notes, warnings, errors, progress."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from hta_sql.words import printable

if TYPE_CHECKING:
    from hta_sql.ingestion.rank import RankResult

Progress = Callable[["RankResult", int, int], None]


def note(text: str) -> None:
    """Say something that is not data."""
    click.echo(_safe(text), err=True)


def show_error(text: str) -> None:
    """Say what went wrong; blank lines of the engine's messages are left out."""
    lines = [line.expandtabs(4) for line in text.splitlines() if line.strip()]
    note("error: " + "\n".join(lines))


def _safe(text: str) -> str:
    """Names of files and kernels reach a terminal without control characters."""
    return "\n".join(map(printable, text.split("\n")))


class StderrHandler(logging.Handler):
    """Writes log records as ``warning: ...``; looks stderr up anew, as a progress bar moves it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        prefix = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        note(prefix + record.getMessage())


@contextmanager
def logged(*, verbose: bool) -> Iterator[None]:
    """Show the package's warnings, and with verbose its news, while a command runs."""
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
def rank_progress() -> Iterator[Progress]:
    """Show how far an ingest is: a bar on a terminal, a line per rank elsewhere."""
    if not sys.stderr.isatty():
        yield _line
        return
    from rich.console import Console  # noqa: PLC0415 - only where used
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[ranks]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Reading traces", total=None, ranks="")
        yield lambda _result, done, total: bar.update(
            task, completed=done, total=total, ranks=f"{done}/{total} ranks"
        )


def _line(result: RankResult, done: int, total: int) -> None:
    note(
        f"[{done}/{total}] {result.job.run} rank {result.job.rank}: "
        f"{result.event_count:,} events in {result.seconds:.2f} s"
    )
