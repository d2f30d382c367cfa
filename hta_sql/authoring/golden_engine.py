"""One engine for all golden cases: a template whose tables are those of one ``traces`` line at a time.

To build and open a catalog costs three times what a tiny trace costs to read. The tables of a case
are put below the template's views in a transaction, and rolled back for those of the next one.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Container, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from hta_sql.authoring.golden import Case, read_traces, traces_of
from hta_sql.library import sqltext
from hta_sql.library.objects import Library
from hta_sql.store.catalog.build import put_tables
from hta_sql.store.catalog.columns import stored_files
from hta_sql.store.catalog.shared_engine import QUICKER_PLANS
from hta_sql.store.catalog.template import CONFIG, template
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.manifest import Manifest, RankEntry, digest_of
from hta_sql.store.disk.shard_files import read_shards


class GoldenEngine:
    """Asks golden cases, best those of one ``traces`` line after each other.

    Args:
        folder: A folder of its own to work in.
        library: What the cases ask.
        cases: All of them.
        traces: Folder of their traces.
    """

    def __init__(self, folder: Path, library: Library, cases: Iterable[Case], traces: Path) -> None:
        self._folder = folder
        self._library = library
        self._traces = traces
        self._shown: str | None = None
        self._derived: defaultdict[str, set[Path]] = defaultdict(set)
        for case in cases:
            self._derived[case.traces] |= self._read_by(case)
        catalog = folder / "golden.duckdb"
        shutil.copyfile(template(self._library), catalog)
        self._con = duckdb.connect(str(catalog), config=CONFIG)
        self._con.execute("SET python_enable_replacements = false")  # no variable is a table
        with suppress(duckdb.Error):  # an engine that has no such step
            self._con.execute(QUICKER_PLANS)

    def close(self) -> None:
        """Leave the template as it was."""
        self._con.close()

    def ask(self, case: Case) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return names of columns, and rows."""
        if self._shown != case.traces:
            self._take_away()
            self._show(case)
        try:
            result = self._con.execute(case.call)
        except duckdb.Error:
            self._take_away()  # the engine takes nothing more in a transaction that had an error
            raise
        return [column[0] for column in result.description or ()], result.fetchall()

    def _take_away(self) -> None:
        if self._shown is not None:
            self._con.execute("ROLLBACK")
            self._shown = None

    def _show(self, case: Case) -> None:
        """Put the tables of a line in place; with the derived ones, where some case reads them."""
        folder = store_folder(self._folder)
        entries = [
            entry
            for run, ranks in traces_of(case, self._traces).items()
            for part in ([ranks] if min(ranks) < 0 else [{rank: ranks[rank]} for rank in ranks])
            for entry in self._read(run, part)
        ]
        manifest = Manifest().with_entries(entries)
        self._con.execute("BEGIN")
        self._shown = case.traces
        put_tables(self._con, folder, stored_files(manifest, folder), self._library)
        materialize_derived(self._con, self._library, self._derived[case.traces])

    def _read(self, run: str, ranks: dict[int, str]) -> list[RankEntry]:
        """Read traces that belong together, into a folder below; those that were read before are there."""
        name = digest_of(f"{run} {ranks}".encode())[:16]
        folder = store_folder(self._folder / name)
        if not (self._folder / name).exists():
            read_traces({run: ranks}, Path(folder.root))
        return [
            replace(
                entry,
                files={
                    table: {**file, "path": f"{name}/{file['path']}"}
                    for table, file in entry.files.items()
                },
                ingested_ns=None,  # whichever case was the first
            )
            for shard in read_shards(folder)
            for entry in shard.entries
        ]

    def _read_by(self, case: Case) -> set[Path]:
        """Find the derived tables that a case reads, itself or through what it calls."""
        macros = {macro.name: macro for macro in self._library.macros}
        about = macros.get(case.path.stem) or self._library.find(case.path.stem)
        return {one.path for one in self._library.stands_on(about) if one in self._library.derived}


def materialize_derived(
    con: duckdb.DuckDBPyConnection, library: Library, wanted: Container[Path]
) -> None:
    """Compute derived tables once in a catalog that may be written: many questions read them.

    Args:
        con: The catalog.
        library: Its tables.
        wanted: Files of those to compute; the others are computed by each question.
    """
    for about in library.derived:
        if about.path not in wanted:
            continue
        name, kept = sqltext.identifier(about.base_name), f"kept_{about.base_name}"
        con.execute(sqltext.create_table(kept, sqltext.of_scope(f"derived.{name}", ())))
        con.execute(sqltext.view_of(f"derived.{name}", kept))
