"""Tests that derived tables have the same rows, whether they are materialized or computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

import hta_sql
from hta_sql.cli import program
from hta_sql.library.objects import load_library
from hta_sql.store.catalog import compute
from hta_sql.store.catalog import materialize as materialize_module
from hta_sql.store.catalog.build import publish_manifest
from hta_sql.store.catalog.materialize import materialize
from hta_sql.store.catalog.materialized_tables import ON_REQUEST, keys_of, missing_tables
from hta_sql.store.disk.folder import StoreFolder, store_folder
from hta_sql.store.disk.locks import store_lock
from hta_sql.store.disk.manifest import Manifest, MaterializedTable, read_manifest
from tests.jobs.spec import PlantedJob
from tests.jobs.traces import write_job
from tests.shared_stores import drop_materialized, ingest_only

JOB = PlantedJob(ranks=2, steps=3)
TABLES = ("unrecorded_time", "matched_collectives", "step_parts")
"""Derived tables that each query computes if they are not materialized, in order of dependency."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Ingest two ranks, and remove their derived tables."""
    paths, _ = write_job(tmp_path / "traces", JOB)
    ingest_only(paths, tmp_path / "job.store", run="job")
    drop_materialized(tmp_path / "job.store")
    return tmp_path / "job.store"


def rows_of(store: Path) -> list[list[tuple[object, ...]]]:
    """Return the rows of the derived tables without materializing them."""
    with hta_sql.TraceStore(store, safe=True) as opened:
        return [opened.sql(f"FROM {name} ORDER BY ALL").rows() for name in TABLES]


def is_missing(store: Path) -> bool:
    """Return whether at least one derived table is not materialized."""
    return bool(missing_tables(read_manifest(store), load_library(), without=ON_REQUEST))


def test_what_is_kept_has_the_rows_of_what_is_computed(store: Path) -> None:
    """Materialized tables have the same rows as computed ones, and are computed once."""
    assert is_missing(store)
    computed = rows_of(store)
    assert [len(rows) for rows in computed] == [2, 2 * 3 * 2, 2 * 3 * 2]
    kept = materialize(store)
    assert [one.table for one in kept] == [*TABLES, *ON_REQUEST]
    assert not is_missing(store)
    assert materialize(store) == []
    assert rows_of(store) == computed


@pytest.mark.parametrize(("soon", "published"), [(True, [True]), (False, [False, True])])
@pytest.mark.parametrize("ranks", [1, 2])
def test_an_ingest_materializes_derived_tables(
    ranks: int, soon: bool, published: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ingest materializes the tables of runs of any size; a large run is published before."""
    said: list[bool] = []

    def publish(folder: StoreFolder, manifest: Manifest) -> None:
        said.append(bool(manifest.materialized))
        publish_manifest(folder, manifest)

    monkeypatch.setattr(materialize_module, "publish_manifest", publish)
    if not soon:
        monkeypatch.setattr(materialize_module, "SOON_EVENTS", 0)
    paths, _ = write_job(tmp_path / "traces", replace(JOB, ranks=ranks))
    ingest_only(paths, tmp_path / "job.store", run="job")
    assert said == published
    assert not is_missing(tmp_path / "job.store")
    assert len(rows_of(tmp_path / "job.store")[2]) == (3 if ranks == 1 else 12)


def test_without_derived_tables_the_next_ingest_or_question_computes_them(tmp_path: Path) -> None:
    """``derived=False`` leaves derived tables to the next ingest, or to the first question."""
    paths, _ = write_job(tmp_path / "traces", JOB)
    store = tmp_path / "job.store"
    ingest_only(paths, store, run="job", derived=False)
    assert is_missing(store)
    ingest_only(paths, store, run="again")
    assert not is_missing(store)
    ingest_only(paths, store, run="third", derived=False)
    with hta_sql.open(store) as opened:
        rows = opened.run("stragglers").records()
    assert {row["run"] for row in rows} == {"again", "job", "third"}
    assert not is_missing(store)


def test_publishing_shards_materializes_derived_tables(tmp_path: Path) -> None:
    """Publishing shards materializes the tables of their run."""
    paths, _ = write_job(tmp_path / "traces", JOB)
    hta_sql.ingest_shard(paths, tmp_path / "job.store", run="job", shard=(1, 1))
    hta_sql.publish(tmp_path / "job.store").close()
    assert not is_missing(tmp_path / "job.store")


@pytest.mark.parametrize("soon_events", [0, materialize_module.SOON_EVENTS])
def test_what_an_ingest_cannot_compute_the_first_question_does(
    soon_events: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """If an ingest cannot compute a table, it warns and publishes the run anyway.

    The first query then materializes the table.
    """
    paths, _ = write_job(tmp_path / "traces", JOB)
    with monkeypatch.context() as patches:
        patches.setattr(materialize_module, "SOON_EVENTS", soon_events)
        patches.setattr(compute, "computed_table", failing("step_parts"))
        ingest_only(paths, tmp_path / "job.store", run="job")
    assert "step_parts of run job cannot be materialized: too little" in caplog.text
    kept = {one.table for one in read_manifest(tmp_path / "job.store").materialized}
    assert kept == {*TABLES} - {"step_parts"}
    with hta_sql.open(tmp_path / "job.store") as opened:
        assert opened.run("collective_waits").rows()
    assert not is_missing(tmp_path / "job.store")


def test_a_run_that_fails_costs_only_itself(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a derived table of one run fails, those of the other runs and tables are materialized.

    The command names it and exits with 1; the next call computes it.
    """
    paths, _ = write_job(tmp_path / "traces", JOB)
    ingest_only(paths, store, run="zz")
    drop_materialized(store)
    with monkeypatch.context() as patches:
        patches.setattr(compute, "computed_table", failing("matched_collectives", "job"))
        said = CliRunner().invoke(program, ["materialize", str(store), *TABLES])
    assert said.exit_code == 1
    assert (
        "warning: matched_collectives of run job cannot be materialized: too little" in said.stderr
    )
    assert "1 result of 1 run cannot be materialized" in str(said.exception)
    kept = {(one.table, one.run) for one in read_manifest(store).materialized}
    both = {(name, run) for name in (*TABLES, *ON_REQUEST) for run in ("job", "zz")}
    assert kept == both - {("matched_collectives", "job")}
    assert [(one.table, one.run) for one in materialize(store)] == [("matched_collectives", "job")]


def test_an_engine_that_dies_costs_only_its_run(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fatal error of the engine fails the rest of a run; other runs are materialized."""
    paths, _ = write_job(tmp_path / "traces", JOB)
    ingest_only(paths, store, run="zz")
    drop_materialized(store)
    failed: dict[tuple[str, str], str] = {}
    died = duckdb.FatalException("the engine died")
    with monkeypatch.context() as patches:
        patches.setattr(compute, "computed_table", failing(TABLES[1], "job", died))
        found = materialize(store, failed=failed)
    names = [*TABLES, *ON_REQUEST]
    assert failed == {(name, "job"): "the engine died" for name in names[1:]}
    assert {(one.table, one.run) for one in found} == {(n, "zz") for n in names} | {
        (names[0], "job")
    }


def failing(
    table: str, run: str = "job", error: duckdb.Error | None = None
) -> Callable[..., MaterializedTable]:
    """Return a function that computes derived tables, except one of a run, for which it raises."""
    compute_table = compute.computed_table

    def computed(*given: Any) -> MaterializedTable:
        asked: MaterializedTable = given[3]
        if (asked.table, asked.run) == (table, run):
            raise error or duckdb.OutOfMemoryException("too little")
        return compute_table(*given)

    return computed


def test_a_store_that_has_kept_them_reads_its_own_catalog(store: Path) -> None:
    """A store opens its own catalog after it has materialized tables into it."""
    with hta_sql.open(store) as opened:
        opened.run("collective_waits")
        assert not is_missing(store)
        assert opened.catalog_path == str(store / "catalog.duckdb")


def test_a_table_computed_anew_reads_what_is_kept_of_another(store: Path) -> None:
    """If only the second stage changes, it is rebuilt from the materialized first stage."""
    computed = rows_of(store)
    materialize(store)
    folder, manifest = store_folder(store), read_manifest(store)
    kept = [
        replace(one, key="old") if one.table == TABLES[-1] else one for one in manifest.materialized
    ]
    with store_lock(folder):
        publish_manifest(folder, replace(manifest, materialized=kept))
    assert rows_of(store) == computed
    assert [one.table for one in materialize(store)] == [TABLES[-1]]
    assert rows_of(store) == computed


def test_the_first_question_keeps_what_it_reads(store: Path) -> None:
    """The first query materializes the tables that it reads; earlier results stay readable."""
    with hta_sql.open(store) as opened:
        before = opened.run("gpu_timeline")
        assert opened.run("collectives").rows()
        assert not is_missing(store)
        assert before.rows()


def test_a_query_keeps_what_it_names(store: Path) -> None:
    """A query materializes the tables that it uses, directly or through views and macros."""
    with hta_sql.open(store) as opened:
        assert opened.sql("SELECT count(*) FROM gpu_ops").rows()
        assert is_missing(store)
        assert opened.sql("SELECT count(*) FROM step_accounting(ranks := [0])").rows()
        assert not is_missing(store)


def test_the_command_keeps_what_its_query_names(store: Path) -> None:
    """The command materializes the tables that its query uses.

    If the store is locked, the command still returns the result.
    """
    query = "SELECT count(*) AS n FROM kpis"
    with store_lock(store_folder(store)):
        answered = CliRunner().invoke(program, ["sql", str(store), query])
        assert answered.exit_code == 0
    assert is_missing(store)
    assert CliRunner().invoke(program, ["sql", str(store), query]).exit_code == 0
    assert not is_missing(store)


def test_a_question_computes_where_the_store_is_being_written(store: Path) -> None:
    """A query during an ingest computes derived tables without waiting, and does not store them."""
    folder = store_folder(store)
    with hta_sql.open(store) as opened, store_lock(folder):
        assert opened.run("collectives").rows()
    assert is_missing(store)


def test_a_rank_that_is_read_again_is_computed_again(store: Path, tmp_path: Path) -> None:
    """Re-ingesting a rank computes its derived tables; the next ingest deletes the old files."""

    def path_of(table: str) -> str | None:
        (path,) = {one.path for one in read_manifest(store).materialized if one.table == table}
        return path

    materialize(store)
    old = path_of("step_parts")
    paths, _ = write_job(tmp_path / "again", replace(JOB, slower_clock={1: 1.5}))
    ingest_only({1: paths[1]}, store, run="job")
    assert not is_missing(store)
    assert path_of("step_parts") != old
    assert old
    ingest_only({0: paths[0]}, store, run="job")
    assert not (store / old).exists()


def test_other_sql_or_other_files_have_another_key(store: Path) -> None:
    """A change to the SQL that a table depends on changes its key; a new comment does not."""
    library, manifest = load_library(), read_manifest(store)
    keys = keys_of(manifest, library)
    assert keys == keys_of(manifest, replace(library, derived=library.derived))
    commented = [replace(macro, text=f"-- Why.\n{macro.text}") for macro in library.macros]
    assert keys == keys_of(manifest, replace(library, macros=tuple(commented)))

    def tables_that_read(stage: str, old: str, new: str) -> set[str]:
        (about,) = (macro for macro in library.macros if macro.name == stage)
        assert old in about.text
        changed = replace(about, text=about.text.replace(old, new))
        macros = tuple(changed if macro is about else macro for macro in library.macros)
        others = keys_of(manifest, replace(library, macros=macros))
        return {table for table, run in keys if others[table, run] != keys[table, run]}

    of_collectives = tables_that_read("_sequence_shifts", "20000000", "30000000")
    assert of_collectives == {*TABLES[1:], *ON_REQUEST}
    of_intervals = tables_that_read("intersected_intervals", "NOT g.both_run", "g.both_run")
    assert "unrecorded_time" in of_intervals
    fewer = replace(manifest, entries=manifest.entries[:1])
    assert all(keys[at] != key for at, key in keys_of(fewer, library).items())


def test_a_run_without_collectives_has_no_file(tmp_path: Path) -> None:
    """A run without collectives has no file for them, and the manifest records that."""
    trace = Path(__file__).parent / "traces" / "host_only.json"
    ingest_only(trace, tmp_path / "job.store", run="job")
    manifest = read_manifest(tmp_path / "job.store")
    kept = {one.table: (one.path, one.rows) for one in manifest.materialized}
    assert kept["matched_collectives"] == (None, 0)
    assert not is_missing(tmp_path / "job.store")


def test_the_command_computes_once(store: Path) -> None:
    """Each table is computed only once, and ``--runs`` limits the computation to the named runs."""
    said = CliRunner().invoke(program, ["materialize", str(store), "--runs", "other"])
    assert said.exit_code == 0
    assert is_missing(store)
    said = CliRunner().invoke(program, ["materialize", str(store), *TABLES])
    assert "Computed step_parts of run job" in said.stderr
    said = CliRunner().invoke(program, ["materialize", str(store), *TABLES])
    assert "Everything is already materialized." in said.stderr
