"""Builds catalog.duckdb: views and macros over the Parquet of a store, no data.

It is rebuilt whole beside the old one and moved over it, so readers see one or
the other; everybody opens it read-only. Its storage version is DuckDB 1.4's,
so that BI tools which still bundle that can open it.
"""

from __future__ import annotations

import os
from pathlib import Path

import duckdb

from hta_sql import sqltext
from hta_sql._version import __version__
from hta_sql.library import Library, SqlObject, load_library
from hta_sql.manifest import CATALOG, Manifest, read_manifest
from hta_sql.schema import empty_tables

STORAGE_VERSION = "v1.4.0"


def build_catalog(store: Path, library: Library | None = None) -> Path:
    """Build the catalog of a store from its manifest; returns its path."""
    store = store.resolve()
    manifest = read_manifest(store)
    target = store / CATALOG
    partial = store / f".{CATALOG}.{os.getpid()}.partial"
    for leftover in store.glob(f".{CATALOG}.*"):
        leftover.unlink()
    config: dict[str, str | bool | int | float | list[str]] = {
        "storage_compatibility_version": STORAGE_VERSION,
        "threads": 1,
    }
    with duckdb.connect(str(partial), config=config) as con:
        create_objects(con, store, manifest, library or load_library())
    partial.replace(target)
    return target


def create_objects(
    con: duckdb.DuckDBPyConnection, store: Path, manifest: Manifest, library: Library
) -> None:
    """Create everything that a catalog holds on a connection, in one transaction."""
    con.execute("BEGIN")
    con.execute("CREATE SCHEMA stored")
    con.execute("CREATE SCHEMA lib")
    for name, empty in empty_tables(store).items():
        paths = [str(store / path) for path in manifest.paths(name)]
        con.execute(_stored_view(name, paths or [str(empty)], partitioned=bool(paths)))
    con.execute(_rank_scope(manifest))
    con.execute(_store_info(store, manifest))
    for table in library.tables:
        con.execute(table.text)
        _comment(con, "VIEW", table.name, table)
    for macro in library.macros:
        con.execute(macro.text)
        _comment(con, "MACRO TABLE", f"lib.{macro.name}", macro)
    for analysis in library.analyses:
        con.execute(analysis.text)
        _comment(con, "MACRO TABLE", analysis.name, analysis)
    for analysis in library.newest():
        con.execute(_unversioned_macro(analysis))
        con.execute(f"CREATE VIEW {analysis.base_name} AS FROM {analysis.name}()")
        _comment(con, "MACRO TABLE", analysis.base_name, analysis)
        _comment(con, "VIEW", analysis.base_name, analysis)
    con.execute(_analyses_view(library))
    con.execute("COMMIT")


def _stored_view(table: str, paths: list[str], *, partitioned: bool) -> str:
    """Name every file: a list beats a glob in speed, and never shows half a write."""
    hive = (
        ", hive_partitioning = true, hive_types = {'run': VARCHAR, 'rank': INTEGER}"
        if partitioned
        else ", hive_partitioning = false"
    )
    return (
        f"CREATE VIEW stored.{sqltext.identifier(table)} AS\n"
        f"SELECT * FROM read_parquet({sqltext.literal_list(paths)}{hive})"
    )


def _rank_scope(manifest: Manifest) -> str:
    """What depends on all ranks of a run: its common zero and its number of steps."""
    starts: dict[str, int] = {}
    steps: dict[str, set[str]] = {}
    for entry in manifest.entries:
        if entry.start_ns is not None:
            starts[entry.run] = min(starts.get(entry.run, entry.start_ns), entry.start_ns)
        steps.setdefault(entry.run, set()).update(entry.step_names)
    rows = [
        (e.run, e.rank, e.start_ns - starts[e.run], len(steps[e.run]) >= 2)
        if e.start_ns is not None
        else (e.run, e.rank, 0, False)
        for e in manifest.entries
    ]
    columns = {
        "run": "VARCHAR",
        "rank": "INTEGER",
        "offset_ns": "BIGINT",
        "drops_last_step": "BOOLEAN",
    }
    return sqltext.values_view("stored.rank_scope", columns, rows)


def _store_info(store: Path, manifest: Manifest) -> str:
    """Where the catalog expects its files; a moved store is found out by it."""
    columns = {"location": "VARCHAR", "hta_sql_version": "VARCHAR", "writer": "VARCHAR"}
    row = (str(store), __version__, manifest.writer)
    return sqltext.values_view("stored.store_info", columns, [row])


def _unversioned_macro(analysis: SqlObject) -> str:
    """The newest version under the plain name: the same statement, so the same plan."""
    head, _, rest = analysis.text.partition(f"CREATE OR REPLACE MACRO {analysis.name}(")
    return f"{head}CREATE OR REPLACE MACRO {analysis.base_name}({rest}"


def _comment(con: duckdb.DuckDBPyConnection, kind: str, name: str, about: SqlObject) -> None:
    con.execute(f"COMMENT ON {kind} {name} IS {sqltext.literal(about.full_description)}")
    if kind != "VIEW":
        return
    for column in about.columns:
        doc = f"{column.doc} [{column.unit}]" if column.unit else column.doc
        target = f"{name}.{sqltext.identifier(column.name)}"
        con.execute(f"COMMENT ON COLUMN {target} IS {sqltext.literal(doc)}")


def _analyses_view(library: Library) -> str:
    columns = {
        "name": "VARCHAR",
        "version": "INTEGER",
        "is_default": "BOOLEAN",
        "status": "VARCHAR",
        "since": "VARCHAR",
        "topic": "VARCHAR",
        "summary": "VARCHAR",
        "parameters": "VARCHAR",
        "columns": "VARCHAR",
        "needs": "VARCHAR",
        "reference": "VARCHAR",
    }
    newest = {a.name for a in library.newest()}
    rows = [
        (
            a.base_name,
            a.version,
            a.name in newest,
            a.status,
            a.facts.get("Since"),
            a.topic,
            a.summary,
            ", ".join(f"{p.name} {p.type} := {p.default}" for p in a.parameters),
            ", ".join(c.name for c in a.columns),
            a.facts.get("Needs"),
            a.facts.get("Reference"),
        )
        for a in sorted(library.analyses, key=lambda a: (a.base_name, a.version or 0))
    ]
    return sqltext.values_view("analyses", columns, rows)
