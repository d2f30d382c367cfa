"""Run golden cases on one engine, whose catalog is reused for the traces of all cases.

Building and opening a catalog takes three times as long as reading a tiny trace. A template catalog
is therefore built once. The tables of a ``traces`` line are created below its views in a
transaction, which is rolled back before the next ``traces`` line.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Container, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from hta_sql import replay
from hta_sql.authoring.golden import Case, read_traces, traces_of
from hta_sql.library import engine_settings, sqltext
from hta_sql.library.objects import Library
from hta_sql.replay.rows import replays_of_all
from hta_sql.store.catalog.build import put_tables
from hta_sql.store.catalog.columns import stored_files
from hta_sql.store.catalog.compute import REPLAYED
from hta_sql.store.catalog.template import CONFIG, template
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.manifest import Manifest, RankEntry, digest_of
from hta_sql.store.disk.shard_files import read_shards


class GoldenEngine:
    """Engine for golden cases; fastest if cases with the same ``traces`` line are consecutive.

    Args:
        folder: Working folder that nothing else uses.
        library: Library that the cases test.
        cases: All cases.
        traces: Folder with the traces of the cases.
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
        engine_settings.ignore_python_variables(self._con)
        engine_settings.plan_quicker(self._con)

    def close(self) -> None:
        """Roll back to the unchanged template and close the connection."""
        self._con.close()

    def ask(self, case: Case) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the column names and rows of a case."""
        if self._shown != case.traces:
            self._take_away()
            self._show(case)
        try:
            result = self._con.execute(case.call)
        except duckdb.Error:
            self._take_away()  # after an error, a transaction accepts no further queries
            raise
        return [column[0] for column in result.description or ()], result.fetchall()

    def _take_away(self) -> None:
        if self._shown is not None:
            self._con.rollback()
            self._shown = None

    def _show(self, case: Case) -> None:
        """Create the tables of a ``traces`` line, including the derived tables that cases read."""
        folder = store_folder(self._folder)
        entries = [
            entry
            for run, ranks in traces_of(case, self._traces).items()
            for part in ([ranks] if min(ranks) < 0 else [{rank: ranks[rank]} for rank in ranks])
            for entry in self._read(run, part)
        ]
        manifest = Manifest().with_entries(entries)
        self._con.begin()
        self._shown = case.traces
        put_tables(self._con, folder, stored_files(manifest, folder), self._library)
        materialize_derived(self._con, self._library, self._derived[case.traces])

    def _read(self, run: str, ranks: dict[int, str]) -> list[RankEntry]:
        """Ingest traces of one run into a subfolder, unless they are already ingested."""
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
                ingested_ns=None,  # depends on which case was first
            )
            for shard in read_shards(folder)
            for entry in shard.entries
        ]

    def _read_by(self, case: Case) -> set[Path]:
        """Return the derived tables that a case reads directly or indirectly."""
        macros = {macro.name: macro for macro in self._library.macros}
        about = macros.get(case.path.stem) or self._library.find(case.path.stem)
        return {one.path for one in self._library.stands_on(about) if one in self._library.derived}


def materialize_derived(
    con: duckdb.DuckDBPyConnection, library: Library, wanted: Container[Path]
) -> None:
    """Materialize derived tables in a writable catalog, because many queries read them.

    Args:
        con: The catalog.
        library: Library of the tables.
        wanted: .sql files of the tables to materialize; queries compute all other tables.
    """
    for about in library.derived:
        if about.path not in wanted:
            continue
        name, kept = sqltext.identifier(about.base_name), f"kept_{about.base_name}"
        if about.base_name == replay.TABLE:
            con.register(REPLAYED, replays_of_all(con))
            con.execute(sqltext.create_table(kept, sqltext.all_rows(REPLAYED)))
            con.unregister(REPLAYED)
        else:
            con.execute(sqltext.create_table(kept, sqltext.of_scope(f"derived.{name}", ())))
        con.execute(sqltext.view_of(f"derived.{name}", kept))
