"""Exports a store to files: CSV, Parquet, Excel sheets, one DuckDB file or a flame graph."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hta_sql.errors import (
    AnalysisNotFoundError,
    ExtraNotInstalledError,
    ParameterError,
    QueryError,
    StoreError,
    nearest,
)
from hta_sql.exhausted import reason_of
from hta_sql.exports.portable import write_portable
from hta_sql.exports.speedscope import write_speedscope
from hta_sql.report.answers import main_tables
from hta_sql.results.result import Result
from hta_sql.store.query.trace_store import TraceStore
from hta_sql.traces.writing import made_folder, replacing, replacing_in

SHEET_ROWS = 1_048_575
"""Maximum rows of an Excel sheet below its header."""

MAIN_ROWS = 10_000
"""Maximum rows of a sheet if no names are given: the largest tables have millions of rows."""

SHEET_NAME = 31
"""Maximum characters of a sheet's name."""

CELL = 32_767
"""Maximum characters of a cell."""


@dataclass(frozen=True)
class Exported:
    """An exported analysis or table.

    Attributes:
        name: Analysis or table.
        row_count: Number of rows written.
        left_out: Number of rows that exceed the limit of the format.
        failure: Why the engine failed to compute it; its sheet shows the error, and other formats
            have no file for it.
    """

    name: str
    row_count: int
    left_out: int = 0
    failure: str = ""


@dataclass(frozen=True)
class Selection:
    """The content of an export.

    Attributes:
        names: Analyses (with their default parameters) and tables; empty: every analysis, or in a
            workbook those that a report shows for every job.
        runs: Runs; empty: all.
        ranks: Ranks; empty: all.
        everything: Whether a workbook without names has every analysis, and all rows that fit.
    """

    names: Sequence[str] = ()
    runs: Sequence[str] = ()
    ranks: Sequence[int] = ()
    everything: bool = False


def export(
    store: TraceStore,
    target: str | os.PathLike[str],
    format_name: str,
    selection: Selection | None = None,
) -> list[Exported]:
    """Write analyses and tables of a store to files.

    A result that the engine fails to compute does not affect the others; see :class:`Exported`.

    Args:
        store: The opened store.
        target: A folder for one file per name (``csv``, ``parquet``), or a file (``xlsx``,
            ``duckdb``, ``speedscope``).
        format_name: ``parquet``, ``csv``, ``xlsx``, ``duckdb`` or ``speedscope``.
        selection: Content of the export; default: every analysis. ``duckdb`` contains all tables
            and analyses, ``speedscope`` the call chains.

    Returns:
        Written files, in order.

    Raises:
        AnalysisNotFoundError: There is no analysis or table of that name.
        ParameterError: Names were given for ``duckdb`` or ``speedscope``, or the format is unknown.
        ExtraNotInstalledError: XlsxWriter is not installed, but ``xlsx`` was requested.
        StoreError: The target is a file instead of a folder, or the other way round.
    """
    selection = selection or Selection()
    path = Path(target)
    if format_name in _WHOLE:
        write, holds = _WHOLE[format_name]
        if selection.names:
            raise ParameterError(f"A {format_name} file always contains {holds}; omit the names.")
        counts = write(store, path, selection.runs, selection.ranks)
        return [Exported(name, count) for name, count in counts.items()]
    if format_name not in ("csv", "parquet", "xlsx"):
        known = "parquet, csv, xlsx, duckdb, speedscope"
        raise ParameterError(f"No format {format_name!r}; available: {known}.")
    is_main = format_name == "xlsx" and not selection.names and not selection.everything
    every = [a.base_name for a in store.library.newest_by_topic()]
    names = selection.names or (main_tables(store.library) if is_main else every)
    tables = {name: _reader(store, name, selection) for name in names}
    if format_name == "xlsx":
        return _write_book(tables, path, MAIN_ROWS if is_main else SHEET_ROWS)
    return _write_files(tables, path, format_name)


_WHOLE = {
    "duckdb": (write_portable, "every table and analysis"),
    "speedscope": (write_speedscope, "the call stacks"),
}
"""Single-file format ─▶ function that writes it, and its fixed content."""

Reader = Callable[[], Result]


def _reader(store: TraceStore, name: str, selection: Selection) -> Reader:
    """Return a function that computes the rows of an analysis or a table."""
    library = store.library
    runs, ranks = list(selection.runs) or None, list(selection.ranks) or None
    if name in {table.name for table in library.tables}:
        return lambda: store.table(name, runs=runs, ranks=ranks)
    known = {a.base_name for a in library.analyses} | {a.name for a in library.analyses}
    if name not in known:
        candidates = known | {table.name for table in library.tables}
        raise AnalysisNotFoundError(
            f"No analysis or table {name!r}.{nearest(name, candidates)} See them all: hta-sql list"
        )
    parameters = {parameter.name for parameter in library.find(name).parameters}
    scope = {"runs": runs, "ranks": ranks}
    given: dict[str, Any] = {k: v for k, v in scope.items() if v and k in parameters}
    return lambda: store.run(name, **given)


def _write_files(tables: dict[str, Reader], folder: Path, format_name: str) -> list[Exported]:
    from hta_sql.results.writers import WRITERS  # noqa: PLC0415 - imports pyarrow only when needed

    if folder.is_file():
        raise StoreError(f"{str(folder)!r} is a file; csv and parquet are written to a folder.")
    written = []
    with replacing_in(folder) as partial:
        for name, read in tables.items():
            try:
                result = read()
            except QueryError as error:
                written.append(Exported(name, 0, failure=str(error).strip()))
                continue
            with (partial / f"{name}.{format_name}").open("wb") as stream:
                WRITERS[format_name](result, stream)
            written.append(Exported(name, len(result)))
    return written


def _write_book(tables: dict[str, Reader], path: Path, most_rows: int) -> list[Exported]:
    if path.is_dir():
        raise StoreError(f"{str(path)!r} is a folder; xlsx is written to a single file.")
    # Written to memory first, because the target may be a pipe, or its disk may be full.
    whole = io.BytesIO()
    written = write_sheets(tables, whole, most_rows)
    with made_folder(path.parent), replacing(path) as partial:
        partial.write_bytes(whole.getbuffer())
    return written


def write_sheets(
    tables: dict[str, Reader], stream: IO[bytes], most_rows: int = SHEET_ROWS
) -> list[Exported]:
    """Write a workbook with one sheet per table.

    Args:
        tables: Name ─▶ function that returns its rows.
        stream: Output stream.
        most_rows: Maximum rows of a sheet.

    Raises:
        ExtraNotInstalledError: XlsxWriter is not installed.
        StoreError: The temporary folder is not writable.
    """
    try:
        import xlsxwriter  # noqa: PLC0415 - optional dependency
    except ImportError as error:
        raise ExtraNotInstalledError(
            "Spreadsheets need XlsxWriter: pip install 'hta_sql[xlsx]'"
        ) from error
    # constant_memory streams rows to disk. Strings never become formulas, links or numbers.
    options = {
        "constant_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
        "nan_inf_to_errors": True,
    }
    try:
        with xlsxwriter.Workbook(stream, options) as book:
            return _fill_sheets(book, tables, most_rows)
    except xlsxwriter.exceptions.FileCreateError as error:
        reason = next(filter(None, map(reason_of, error.args)), f"{error}.")
        raise StoreError(
            f"Spreadsheets cannot be written to the temporary folder: {reason}"
        ) from error


def _fill_sheets(book: Any, tables: dict[str, Reader], most_rows: int) -> list[Exported]:
    names, written = _sheet_names(tables), []
    bold = book.add_format({"bold": True})
    for name, read in tables.items():
        sheet = book.add_worksheet(names[name])
        try:
            result = read()
        except QueryError as error:
            failure = str(error).strip()
            sheet.write_string(0, 0, f"{name} could not be computed: {failure}"[:CELL])
            written.append(Exported(name, 0, failure=failure))
            continue
        sheet.freeze_panes(1, 0)
        for place, column in enumerate(result.columns):
            sheet.set_column(place, place, max(10, len(column) + 2))
        sheet.write_row(0, 0, result.columns, bold)
        rows = result.arrow().slice(0, most_rows)
        _write_rows(sheet, rows.to_batches(max_chunksize=10_000))
        written.append(Exported(name, rows.num_rows, len(result) - rows.num_rows))
    return written


def _write_rows(sheet: Any, batches: Iterable[Any]) -> None:
    line = 1
    for batch in batches:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            for place, value in enumerate(row):
                if isinstance(value, str):
                    sheet.write_string(line, place, value[:CELL])
                elif isinstance(value, (bool, int, float)):
                    sheet.write(line, place, value)
                elif value is not None:
                    sheet.write_string(line, place, str(value)[:CELL])
            line += 1


def _sheet_names(tables: Iterable[str]) -> dict[str, str]:
    """Shorten names to the limit of sheet names, keeping them unique."""
    names: dict[str, str] = {}
    for name in tables:
        short, number = name[:SHEET_NAME], 2
        while short in names.values():
            short = f"{name[: SHEET_NAME - len(str(number)) - 1]}~{number}"
            number += 1
        names[name] = short
    return names
