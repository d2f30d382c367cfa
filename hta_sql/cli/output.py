"""Sends a result to stdout or a file in the format that was asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOENT
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from hta_sql.cli.messages import note
from hta_sql.cli.options import SUFFIXES, TABLE_ROWS
from hta_sql.traces.writing import replacing

if TYPE_CHECKING:
    from hta_sql.results.display import Rows
    from hta_sql.results.result import Result

BINARY = ("parquet", "arrow")
REMEDY = "--limit 0 shows all rows, --format csv all columns"


def send(
    result: Rows, format_name: str | None, output: Path | None, limit: int | None = None
) -> None:
    """Write a result; rows that a limit cuts off are announced."""
    chosen = format_name or (SUFFIXES.get(output.suffix.lower()) if output else None) or "table"
    if chosen == "table":
        _send_table(result, output, limit)
        return
    from hta_sql.results.display import TableRows  # noqa: PLC0415 - imports are the start-up cost
    from hta_sql.results.writers import WRITERS  # noqa: PLC0415

    if chosen in BINARY and output is None and sys.stdout.isatty():
        raise click.UsageError(f"{chosen.title()} is binary: use -o FILE, or a pipe")
    total = len(result)
    if limit:
        result = TableRows(result.arrow().slice(0, limit), result.analysis)
    with _opened(output) as stream:
        WRITERS[chosen](result, stream)
    if len(result) < total:
        note(f"note: {len(result):,} of {total:,} rows; --limit 0 writes all.")
    if output:
        note(f"Wrote {len(result):,} rows to {output}.")


def _send_table(result: Rows, output: Path | None, limit: int | None) -> None:
    from hta_sql.results.display import print_table  # noqa: PLC0415

    if output is None:
        print_table(result, TABLE_ROWS if limit is None else limit, remedy=REMEDY)
        return
    with (
        replacing(output) as partial,
        partial.open("w", encoding="utf-8", errors="backslashreplace") as file,
    ):
        print_table(result, limit or 0, file=file, width=10_000)
    note(f"Wrote {len(result):,} rows to {output}.")


@contextmanager
def _opened(output: Path | None) -> Iterator[IO[bytes]]:
    """Open the target: a file appears when it is complete."""
    if output is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if not output.parent.is_dir():
        raise FileNotFoundError(ENOENT, "No such folder", str(output.parent))
    with replacing(output) as partial, partial.open("wb") as file:
        yield file


def send_chart(result: Result, path: Path) -> None:
    """Draw a result into a file; the suffix says as what."""
    from hta_sql.charts import save  # noqa: PLC0415

    save(result.chart(), path, result.analysis.summary if result.analysis else path.stem)
    note(f"Drew {path}.")
