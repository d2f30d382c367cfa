"""Writes a result to stdout or a file in the requested format."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import ENOENT
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from hta_sql.cli.messages import note
from hta_sql.cli.options import SUFFIXES, Output
from hta_sql.errors import nearest
from hta_sql.text import TABLE_ROWS, counted
from hta_sql.traces.writing import replacing

if TYPE_CHECKING:
    import pyarrow as pa

    from hta_sql.results.display import Rows, Shown
    from hta_sql.results.result import Result

BINARY = ("parquet", "arrow")
ROWS_REMEDY = "--limit 0: all rows"
COLUMNS_REMEDY = "--columns NAME,NAME: selected columns; --format csv: all columns"


def send(result: Rows, out: Output, no_rows: str = "") -> None:
    """Write a result, and print a note if a limit omits rows; ``no_rows``: see :func:`send_head`."""
    from hta_sql.results.display import TableRows  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.results.writers import WRITERS  # noqa: PLC0415

    if out.columns:
        chosen = _chosen(result.arrow(), out.columns)
        result = TableRows(chosen, result.analysis, tuple(result.given))
    by_suffix = SUFFIXES.get(out.path.suffix.lower()) if out.path else None
    name = out.format_name or by_suffix or "table"
    if name == "table":
        _send_table(result, out, no_rows)
        return
    if name in BINARY and out.path is None and sys.stdout.isatty():
        raise click.UsageError(
            f"{name.title()} is a binary format: use -o FILE, or pipe the output"
        )
    total = len(result)
    if out.limit:
        result = TableRows(result.arrow().slice(0, out.limit), result.analysis)
    with _opened(out.path) as stream:
        WRITERS[name](result, stream)
    if no_rows:
        note(f"note: {no_rows}")
    if len(result) < total:
        note(
            f"note: wrote {len(result):,} of {counted(total, 'row')}; --limit 0 writes all of them."
        )
    if out.path:
        note(f"Wrote {counted(len(result), 'row')} to {out.path}.")


def _chosen(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    for name in columns:
        if name not in table.column_names:
            there = ", ".join(table.column_names)
            raise click.UsageError(
                f"No column {name!r}.{nearest(name, table.column_names)} Available: {there}"
            )
    return table.select(list(columns))


def shown_rows(out: Output) -> int | None:
    """Return the row limit of a table on stdout; None for all rows, or for any other output."""
    on_screen = out.path is None and out.format_name in (None, "table") and not out.columns
    return (TABLE_ROWS if out.limit is None else out.limit or None) if on_screen else None


def send_head(result: Shown, rows: int, no_rows: str = "") -> None:
    """Print the first rows of a result; ``no_rows`` is why there are none, if that is known."""
    from hta_sql.results.display import print_table  # noqa: PLC0415

    print_table(
        result, rows, rows_remedy=ROWS_REMEDY, columns_remedy=COLUMNS_REMEDY, no_rows=no_rows
    )


def _send_table(result: Rows, out: Output, no_rows: str) -> None:
    if out.path is None:
        send_head(result, TABLE_ROWS if out.limit is None else out.limit, no_rows)
        return
    from hta_sql.results.display import print_table  # noqa: PLC0415

    with (
        replacing(out.path) as partial,
        partial.open("w", encoding="utf-8", errors="backslashreplace") as file,
    ):
        print_table(result, out.limit or 0, file=file, width=10_000, no_rows=no_rows)
    note(f"Wrote {counted(len(result), 'row')} to {out.path}.")


def check_folder_of(output: Path) -> None:
    """Raise FileNotFoundError before any computation if an output file's folder is missing."""
    if not output.parent.is_dir():
        raise FileNotFoundError(ENOENT, "No such folder", str(output.parent))


@contextmanager
def _opened(output: Path | None) -> Iterator[IO[bytes]]:
    """Open the target for writing; a file appears at its path only when it is complete."""
    if output is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    check_folder_of(output)
    with replacing(output) as partial, partial.open("wb") as file:
        yield file


def send_chart(result: Result, path: Path) -> None:
    """Draw a result into a file, in the format that its suffix selects."""
    from hta_sql.charts import save  # noqa: PLC0415

    save(result.chart(), path, result.analysis.summary if result.analysis else path.stem)
    note(f"Wrote the chart to {path}.")
