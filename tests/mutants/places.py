"""Where mutants are tried: engines over tiny stores, each with the whole library and one change.

A place is asked for one file of the library at a time; the file before gets its own text back.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

import hta_sql
from hta_sql.library import sqltext
from hta_sql.library.definitions import definitions
from hta_sql.library.files import stored_columns
from hta_sql.library.objects import Library, load_library
from hta_sql.library.parameters import check_parameters
from tests.golden_cases import TESTS, ingest_case, traces_of
from tests.properties.traces import random_job, write_job

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

KEPT = TESTS.parent / ".hta_sql" / "mutants"
"""Stores of the tiny traces; they are made again where a trace or what reads it has changed."""

LIMIT_S = 20
"""A query of these few events that takes longer never ends: what made it so is found out."""


class Place:
    """One engine, and which text of which file it has at the moment."""

    def __init__(self, con: duckdb.DuckDBPyConnection, texts: dict[str, str]) -> None:
        self.con = con
        self._own = texts
        self._changed: str | None = None
        self._text = ""

    def install(self, name: str, text: str) -> None:
        """Put a text in the place of an object of the library; what was changed before is mended.

        Raises:
            duckdb.Error: The engine refuses it.
        """
        if self._changed not in (None, name):
            self.con.execute(self._own[self._changed])
        if (self._changed, self._text) != (name, text):
            self._changed, self._text = name, ""
            self.con.execute(text)
            self._text = text

    def ask(
        self, query: str, values: Mapping[str, Any] | None = None
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return names of columns, and rows."""
        result = self.con.execute(query, dict(values or {}))
        columns = [column[0] for column in result.description or ()]
        return columns, result.fetchall()

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Stop what takes too long."""
        timer = threading.Timer(LIMIT_S, self.con.interrupt)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


class Answer:
    """Rows of an answer, as the tests of the properties read them: ``.arrow().to_pylist()``."""

    def __init__(self, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
        self._columns = columns
        self._rows = rows

    def arrow(self) -> Answer:
        """Stand for an Arrow table; one of a few rows costs more than the query."""
        return self

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows by column."""
        return [dict(zip(self._columns, row, strict=True)) for row in self._rows]


class MutatedStore:
    """What the tests of the properties need of a TraceStore, over a place."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def run(self, name: str, **parameters: Any) -> Answer:
        """Run an analysis as :meth:`hta_sql.TraceStore.run` does."""
        analysis = load_library().find(name)
        values = check_parameters(analysis, parameters)
        call = sqltext.call(analysis.name, {key: f"${key}" for key in values})
        return Answer(*self._place.ask(call, values))


def kept_store(traces: str) -> Path:
    """Return the store of a ``traces`` line, or of ``job N``, made now or before."""
    folder = KEPT / _digest_of(traces)
    if not folder.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=KEPT))
        if traces.startswith("job "):
            for run, files in write_job(random_job(int(traces[4:])), part).items():
                hta_sql.ingest(files, part / "job.store", run=run).close()
        else:
            ingest_case(traces, part / "job.store").close()
        with suppress(OSError):  # another process was faster
            part.rename(folder)
    return folder / "job.store"


def _digest_of(traces: str) -> str:
    digest = hashlib.sha256(f"{definitions()} {stored_columns()} {traces}".encode())
    if not traces.startswith("job "):
        for ranks in traces_of(traces).values():
            for trace in ranks.values():
                digest.update(Path(trace).read_bytes())
    package = Path(hta_sql.__file__).parent
    readers = [*package.glob("ingestion/**/*.py"), *package.glob("traces/**/*.py")]
    for path in (*sorted(readers), TESTS / "properties" / "traces.py"):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def open_place(store: Path, folder: Path) -> Place:
    """Copy the catalog of a store and put its rows into memory, so that it may be changed."""
    library = load_library()
    with hta_sql.open(store) as opened:
        catalog = Path(opened.catalog_path).read_bytes()
    path = folder / f"{store.parent.name}.duckdb"
    path.write_bytes(catalog)
    con = duckdb.connect(str(path), config={"threads": 1, "memory_limit": "2GB"})
    con.execute("SET enable_progress_bar = false")
    con.execute("CREATE SCHEMA in_memory")
    for name in map(sqltext.identifier, stored_columns()):
        con.execute(sqltext.create_table(f"in_memory.{name}", f"FROM stored.{name}"))
        con.execute(f"CREATE OR REPLACE VIEW stored.{name} AS FROM in_memory.{name}")
    return Place(con, texts_of(library))


def texts_of(library: Library) -> dict[str, str]:
    """The statement of each object by its name."""
    objects = (*library.tables, *library.macros, *library.analyses)
    return {about.name: about.text for about in objects}
