"""Tests of the catalog as BI tools see it: flat types, comments, microseconds and moved stores."""

from __future__ import annotations

import json
import os
import re
import shutil
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

import hta_sql
from hta_sql.library import engine_settings
from hta_sql.store.catalog.build import build_catalog
from hta_sql.store.disk.manifest import RELATIVE_CATALOG
from tests.manifests import write_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FLAT = {"BIGINT", "INTEGER", "DOUBLE", "BOOLEAN", "VARCHAR"}


@pytest.fixture
def store(ingest_trace: Callable[..., hta_sql.TraceStore]) -> Path:
    """Ingest two tiny ranks and return the path of the store."""
    with ingest_trace({0: "two_ranks_0.json", 1: "two_ranks_1.json"}) as opened:
        return opened.path


@pytest.fixture
def con(store: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Connect to the catalog as an external client does."""
    with duckdb.connect(str(store / "catalog.duckdb"), read_only=True) as opened:
        yield opened


CATALOG_BYTES = 5_500_000
OWN_CATALOG_BYTES = 6_000_000
"""The same for a catalog with user analyses, in which some free blocks remain."""


def test_a_catalog_has_no_free_blocks(store: Path) -> None:
    """A catalog has no free blocks, because clients download all of it from object storage."""
    assert (store / "catalog.duckdb").stat().st_size < CATALOG_BYTES
    assert build_catalog(store, relative=True).stat().st_size < CATALOG_BYTES


def test_every_view_is_flat_and_commented(con: duckdb.DuckDBPyConnection) -> None:
    """Views have no HUGEINT, unsigned or nested type, and every view and column has a comment."""
    columns = con.sql(
        "SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns() "
        "WHERE NOT internal AND schema_name IN ('main', 'us')"
    ).fetchall()
    assert len(columns) > 400
    assert [c for c in columns if c[3] not in FLAT] == []
    assert [c for c in columns if not c[4]] == []
    views = con.sql(
        "SELECT view_name FROM duckdb_views() WHERE NOT internal AND comment IS NULL "
        "AND schema_name IN ('main', 'us')"
    ).fetchall()
    assert views == []


def test_microseconds_for_dashboards(con: duckdb.DuckDBPyConnection) -> None:
    """The ``us`` schema has the same views, with nanosecond columns converted to microseconds."""
    ns = con.sql("SELECT rank, ts, dur, name FROM gpu_ops ORDER BY ALL").fetchall()
    us = con.sql("SELECT rank, ts_us, dur_us, name FROM us.gpu_ops ORDER BY ALL").fetchall()
    assert us == [(rank, ts / 1000, dur / 1000, name) for rank, ts, dur, name in ns]
    (span,) = con.sql("SELECT sum(span_ns) / 1000 FROM temporal_breakdown").fetchall()
    assert con.sql("SELECT sum(span_us) FROM us.temporal_breakdown").fetchall() == [span]
    left = con.sql(
        "SELECT column_name FROM duckdb_columns() WHERE schema_name = 'us' AND ends_with(column_name, '_ns')"
    ).fetchall()
    assert left == []


def test_a_relative_catalog_follows_the_store(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a move, the relative catalog opens from the store's folder or via file_search_path."""
    assert build_catalog(store, relative=True) == store / RELATIVE_CATALOG
    with hta_sql.open(store) as opened:
        expected = opened.run("temporal_breakdown").rows()
    moved = tmp_path / "mounted" / "elsewhere"
    shutil.move(store, moved)
    catalog = str(moved / RELATIVE_CATALOG)
    with duckdb.connect(catalog, read_only=True, config={"file_search_path": str(moved)}) as con:
        assert con.sql("FROM temporal_breakdown").fetchall() == expected
    monkeypatch.chdir(moved)
    with duckdb.connect(catalog, read_only=True) as con:
        assert con.sql("FROM temporal_breakdown").fetchall() == expected


def test_the_relative_catalog_is_renewed_with_the_other(
    ingest_trace: Callable[..., hta_sql.TraceStore],
) -> None:
    """An ingest adds its run to the relative catalog too."""
    with ingest_trace("one_step.json") as opened:
        build_catalog(opened.path, relative=True)
        path = opened.path
    ingest_trace("one_step.json", run="second").close()
    config: dict[str, str | bool | int | float | list[str]] = {"file_search_path": str(path)}
    with duckdb.connect(str(path / RELATIVE_CATALOG), read_only=True, config=config) as con:
        assert con.sql("SELECT run FROM runs ORDER BY run").fetchall() == [("run",), ("second",)]


def many_runs(one: Path, store: Path, runs: int, ranks: int) -> None:
    """Create a store with many runs: hard links to the files of one rank, and a manifest."""
    manifest = json.loads((one / "manifest.json").read_text())
    first, entries = manifest["entries"][0], []
    for run, rank in product(range(runs), range(ranks)):
        entry = {**first, "run": f"run{run}", "rank": rank, "files": {}}
        for table, file in first["files"].items():
            path = Path("tables", table, f"run=run{run}", f"rank={rank}", Path(file["path"]).name)
            (store / path).parent.mkdir(parents=True, exist_ok=True)
            os.link(one / file["path"], store / path)
            entry["files"][table] = {**file, "path": str(path)}
        entries.append(entry)
    write_manifest(store, {**manifest, "entries": entries})
    build_catalog(store)


def files_read(con: duckdb.DuckDBPyConnection, query: str) -> set[str]:
    """Return ``read/total`` file counts of the scans of a query, from the engine's profile."""
    ((_, profile),) = con.sql(f"EXPLAIN ANALYZE {query}").fetchall()
    return set(re.findall(r"Scanning Files:[\s│]*(\d+/\d+)", profile))


def test_a_question_about_one_run_reads_its_files_only(
    ingest_trace: Callable[..., hta_sql.TraceStore], tmp_path: Path
) -> None:
    """Filters on run and rank select files before any file is read, even inside macros."""
    with ingest_trace("gap_causes.json") as one:
        many_runs(one.path, tmp_path / "many.store", runs=20, ranks=4)
    with duckdb.connect(str(tmp_path / "many.store" / "catalog.duckdb"), read_only=True) as con:
        assert files_read(con, "SELECT sum(dur) FROM gpu_ops WHERE run = 'run7'") == {"4/80"}
        assert files_read(con, "FROM temporal_breakdown(runs := ['run7'])") == {"4/80"}
        assert files_read(con, "FROM temporal_breakdown(runs := ['run7'], ranks := [2])") == {
            "1/80"
        }
        assert files_read(con, "FROM idle_gaps(runs := ['run7'], ranks := [2])") == {"1/80"}


@pytest.mark.parametrize(
    "setting", [("disabled_optimizers", "no such step"), ("no_such_setting", 1)]
)
def test_an_engine_that_plans_otherwise(
    store: Path, monkeypatch: pytest.MonkeyPatch, setting: tuple[str, object]
) -> None:
    """A store opens even if the engine does not know an optimizer or a setting that is changed."""
    monkeypatch.setattr(engine_settings, "QUICKER_PLANS", setting)
    with hta_sql.open(store) as store_of_now:
        assert len(store_of_now.run("temporal_breakdown")) == 2
