"""Engine over the rows of all tiny traces, with the library and one mutant.

A place is the set of traces that a test runs on. One file of the library is mutated at a time; the
previous file is restored. Derived tables that a change cannot affect are computed once for each place.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from hta_sql.library import sqltext
from hta_sql.library.objects import load_library
from hta_sql.library.parameters import check_parameters
from hta_sql.store.catalog.template import connected, template
from tests.mutants.rows import PLACE, number_of, rows_file, stored_tables
from tests.mutants.uses import parts_in, parts_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

LIMIT_S = 40
"""Time limit of a test [s]. With so few events, a slower query is endless and kills the mutant."""

_LOOK_S = 0.5

MUTATED = -1
"""Place number of the derived rows that a mutant computed."""


class Place:
    """The engine of a place, in which one library object at a time may be mutated.

    Args:
        con: The engine.
        texts: The statement of each object by its name.
        forget: Functions that clear cached answers when a statement changes.
    """

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        texts: Mapping[str, str],
        forget: Iterable[Callable[[], None]] = (),
    ) -> None:
        self.con = con
        self._own = texts
        self._forget = tuple(forget)
        self._changed: str | None = None
        self._text = ""

    def install(self, name: str, text: str) -> None:
        """Replace the statement of a library object, and restore the previously changed object.

        Raises:
            duckdb.Error: The engine refuses the statement.
        """
        if self._changed not in (None, name):
            self.con.execute(self._own[self._changed])
        if (self._changed, self._text) != (name, text):
            self._changed, self._text = name, ""
            for forget in self._forget:
                forget()
            self.con.execute(text)
            self._text = text

    def ask(
        self, query: str, values: Mapping[str, Any] | None = None
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Run a query; return its column names and rows."""
        result = self.con.execute(query, dict(values or {}))
        columns = [column[0] for column in result.description or ()]
        return columns, result.fetchall()

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Interrupt a query that exceeds a limit of CPU time, which does not depend on load."""
        ended = threading.Event()
        watch = threading.Thread(target=self._watch, args=(ended, time.process_time() + LIMIT_S))
        watch.start()
        try:
            yield
        finally:
            ended.set()
            watch.join()

    def _watch(self, ended: threading.Event, until: float) -> None:
        while not ended.wait(_LOOK_S):
            if time.process_time() > until:
                self.con.interrupt()
                return


class AllPlaces(Place):
    """The rows of all tiny traces in one catalog; a variable selects those of a place."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(dir=_in_memory())
        catalog = Path(self._folder.name) / "catalog.duckdb"
        library = load_library()
        shutil.copyfile(template(library), catalog)
        con = connected(catalog)
        super().__init__(con, texts_of(library))
        con.execute("SET memory_limit = '2GB'; SET checkpoint_threshold = '1GB'")
        con.execute("SET enable_progress_bar = false; SET python_enable_replacements = false")
        con.execute(sqltext.attach(str(rows_file()), "places"))
        for name in map(sqltext.identifier, stored_tables()):
            con.execute(_shown_view(f"stored.{name}", f"places.{name}", PLACE))
        self._derived = {about.base_name: about.name for about in library.derived}
        self._computed: set[tuple[str, int]] = set()
        for name, columns in library.derived_columns().items():
            empty = sqltext.values({PLACE: "INTEGER", **columns}, [])
            con.execute(sqltext.create_table(f"computed_{name}", empty))
            con.execute(_shown_view(f"derived.{name}", f"computed_{name}", f"{PLACE}_{name}"))
        self._mutated: tuple[str, str, int] | None = None
        self._is_changed: dict[str, bool] = {}

    def close(self) -> None:
        """Close the engine, and delete temporary files."""
        self.con.close()
        self._folder.cleanup()

    def show(self, traces: str, name: str, text: str, sql: str) -> bool:
        """Install a mutant and select the rows of a place; return False if no answer can differ.

        Args:
            traces: Name of the place.
            name: Name of the changed library object.
            text: Its changed statement.
            sql: The query that will run.

        Raises:
            duckdb.Error: The engine refuses the statement.
        """
        number = number_of(traces)
        parts = parts_in(sql)
        derived = [base for base, macro in self._derived.items() if macro in parts]
        lacking = [base for base in derived if (base, number) not in self._computed]
        self._set(PLACE, number)
        for base in lacking:
            if name in parts_of(self._derived[base]):
                self.install(name, self._own[name])
            for other in derived:
                self._set(f"{PLACE}_{other}", number)
            self._compute(base, number)
            self._computed.add((base, number))
        self.install(name, text)
        for base in derived:
            self._set(f"{PLACE}_{base}", number)
        is_changed = self._recompute(number, name, text, derived)
        return is_changed or name in parts_in(sql, derived=False)

    def _recompute(self, number: int, name: str, text: str, derived: list[str]) -> bool:
        """Compute the derived rows with the mutant; return False if they are unchanged."""
        if self._mutated != (name, text, number):
            self._mutated, self._is_changed = (name, text, number), {}
        for base in derived:
            if name not in parts_of(self._derived[base]):
                continue
            if base not in self._is_changed:
                self.con.execute(_rows_at("DELETE ", base, MUTATED))
                self._compute(base, MUTATED)
                self._is_changed[base] = self._differs(base, number)
            if self._is_changed[base]:
                self._set(f"{PLACE}_{base}", MUTATED)
        return any(self._is_changed.get(base, False) for base in derived)

    def _compute(self, base: str, number: int) -> None:
        select = f"SELECT {number:d}, d.* FROM derived.{self._derived[base]}(NULL) AS d"  # noqa: S608 - names of the library
        self.con.execute(sqltext.insert(f"computed_{base}", select))

    def _differs(self, base: str, number: int) -> bool:
        select = f"SELECT c.* EXCLUDE ({PLACE}) "
        sides = [_rows_at(select, base, one) for one in (number, MUTATED)]
        return any(
            self.con.execute(f"({one}) EXCEPT ALL ({other}) LIMIT 1").fetchall()
            for one, other in (sides, sides[::-1])
        )

    def _set(self, variable: str, number: int) -> None:
        self.con.execute(f"SET VARIABLE {variable} = {number:d}")


def _rows_at(what: str, base: str, number: int) -> str:
    return f"{what}FROM computed_{base} AS c WHERE c.{PLACE} = {number:d}"


def _shown_view(name: str, table: str, variable: str) -> str:
    rows = f"SELECT t.* EXCLUDE ({PLACE}) FROM {table} AS t"  # noqa: S608 - names of the library
    return f"CREATE OR REPLACE VIEW {name} AS {rows} WHERE t.{PLACE} = getvariable('{variable}')"


def _in_memory() -> Path | None:
    """Return a folder in memory for temporary files, if the system has one."""
    folder = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it
    return folder if folder.is_dir() else None


class Answer:
    """Rows of an answer with the interface that the property tests use: ``.arrow().to_pylist()``."""

    def __init__(self, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
        self._columns = columns
        self._rows = rows

    def arrow(self) -> Answer:
        """Return this object: creating an Arrow table of a few rows costs more than the query."""
        return self

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries."""
        return [dict(zip(self._columns, row, strict=True)) for row in self._rows]


class MutatedStore:
    """Stand-in for TraceStore over one place, with the methods that the property tests use."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def run(self, name: str, **parameters: Any) -> Answer:
        """Run an analysis as :meth:`hta_sql.TraceStore.run` does."""
        analysis = load_library().find(name)
        values = check_parameters(analysis, parameters)
        call = sqltext.call(analysis.name, {key: f"${key}" for key in values})
        return Answer(*self._place.ask(call, values))
