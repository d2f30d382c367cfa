"""Stores of older and newer versions can be queried, and their missing columns are reported."""

from __future__ import annotations

import json
import logging
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import fsspec
import pytest

import hta_sql
from hta_sql.authoring.golden_messages import render
from hta_sql.exports.portable import write_portable
from hta_sql.library.objects import load_library
from hta_sql.library.sql_files import columns_digest, stored_columns
from hta_sql.store.disk.manifest import MANIFEST
from tests.manifests import write_manifest
from tests.shared_stores import ingest_only
from tests.test_catalog import files_read

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Cli
    from tests.safety.conftest import WriteTraces

STORES = Path(__file__).parent.parent / "stores"
"""One store of each released version, without its catalog.

Run ``job`` was ingested from tests/traces/every_table.json, and run ``cluster`` from the MindSpore
files in the same folder. Both were ingested with relative paths, so the stores do not contain
machine-specific paths.
"""

RELEASES = sorted(path.name for path in STORES.iterdir() if path.name[0].isdigit())

ROWS = {
    "ranks": 2,
    "devices": 1,
    "process_groups": 1,
    "steps": 2,
    "cpu_ops": 1,
    "runtime_calls": 2,
    "gpu_ops": 4,
    "annotations": 3,
    "python_calls": 1,
    "memory_events": 1,
    "flows": 2,
    "counters": 1,
    "other_events": 1,
    "event_args": 2,
    "quarantine": 1,
    "cluster_ranks": 1,
    "cluster_step_traces": 3,
    "cluster_communication": 6,
    "cluster_links": 6,
}

LATER = {
    "gpu_ops": ["queued_ns", "sync_kind", "external_id", "graph_id", "in_elems"],
    "cpu_ops": ["input_dims", "call_stack"],
    "ranks": ["world_size", "metadata"],
    "memory_events": ["total_reserved_bytes"],
}
"""Columns that these tests treat as added after the store was written."""

LACKS = ", ".join(
    f"{table}.{name}"
    for table, columns in stored_columns().items()
    for name in columns
    if name in LATER.get(table, ())
)


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory, trace_path: Callable[[str], Path]) -> Path:
    """Ingest the trace that fills every event table, as run ``old``."""
    store = tmp_path_factory.mktemp("ingested") / "job.store"
    ingest_only({0: str(trace_path("every_table.json"))}, store, run="old")
    return store


@pytest.fixture
def every_table(tmp_path: Path, ingested: Path) -> Path:
    """Copy the ingested store, so that a test can change it."""
    return Path(shutil.copytree(ingested, tmp_path / "job.store"))


def age(
    store: Path, run: str, later: dict[str, list[str]] | None = None, *, described: bool = True
) -> None:
    """Make a run look as if it had been written by a version without some columns.

    Args:
        store: The store.
        run: The run.
        later: Table ─▶ columns to remove from its files.
        described: Whether the manifest still lists the columns of the files.
    """
    manifest = json.loads((store / MANIFEST).read_text())
    columns = json.loads(json.dumps(stored_columns()))
    for table, names in (later or {}).items():
        for name in names:
            del columns[table][name]
    for entry in (entry for entry in manifest["entries"] if entry["run"] == run):
        entry["schema"] = "older"
        entry["options"]["definitions"] = "other"
        for table, file in entry["files"].items():
            rewrite(store / file["path"], ", ".join(f'"{name}"' for name in columns[table]))
    manifest["schemas"] |= {"older": columns} if described else {}
    write_manifest(store, manifest)


def rewrite(path: Path, columns: str) -> None:
    """Rewrite a Parquet file with the columns in a SQL select list."""
    with duckdb.connect() as con:
        rows = con.read_parquet(str(path), hive_partitioning=False).project(columns)
        rows.write_parquet(f"{path}.new")
    Path(f"{path}.new").replace(path)


def run_everything(store: hta_sql.TraceStore) -> None:
    """Run every analysis and query every table."""
    for table in load_library().tables:
        store.table(table.name).rows()
    for analysis in load_library().analyses:
        store.run(analysis.name).rows()


@pytest.mark.parametrize("version", RELEASES)
def test_a_store_of_each_release(version: str, tmp_path: Path) -> None:
    """A store of each release returns the expected breakdown and row counts."""
    shutil.copytree(STORES / version, tmp_path / "job.store")
    with hta_sql.open(tmp_path / "job.store") as store:
        assert store.runs() == ["cluster", "job"]
        query = "SELECT compute_ns, exposed_communication_ns, exposed_memory_ns, idle_ns"
        assert store.sql(f"{query} FROM temporal_breakdown").rows() == [(30_000, 10_000, 5_000, 0)]
        assert {name: len(store.table(name)) for name in ROWS} == ROWS


@pytest.mark.parametrize("version", RELEASES)
def test_everything_can_be_asked_of_each_release(version: str, tmp_path: Path) -> None:
    """All current tables and analyses can be queried in a store of each release."""
    shutil.copytree(STORES / version, tmp_path / "job.store")
    with hta_sql.open(tmp_path / "job.store") as store:
        run_everything(store)


def test_every_release_has_one() -> None:
    """Each release that has a date in the changelog has a test store."""
    text = (STORES.parent.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    dated = re.findall(r"^## (\S+) \(\d{4}-", text, re.MULTILINE)
    assert set(dated) <= set(RELEASES)


@pytest.mark.parametrize("described", [True, False])
def test_columns_that_came_later(
    described: bool, every_table: Path, trace_path: Callable[[str], Path]
) -> None:
    """New columns are NULL in older rows, and ``findings`` says how to fill them."""
    trace = {0: str(trace_path("every_table.json"))}
    age(every_table, "old", LATER, described=described)
    ingest_only(trace, every_table, run="new")
    described_now = json.loads((every_table / MANIFEST).read_text())["schemas"].keys()
    assert described_now == {columns_digest(), "older"} if described else {columns_digest()}
    with hta_sql.open(every_table) as store:
        query = "SELECT run, count(*), count(in_elems), count(dur) FROM gpu_ops GROUP BY ALL"
        assert sorted(store.sql(query).rows()) == [("new", 4, 1, 4), ("old", 4, 0, 4)]
        query = "SELECT run, input_dims FROM cpu_ops ORDER BY run"
        assert store.sql(query).rows() == [("new", "[[2,3],[3,4]]"), ("old", None)]
        assert dict(store.sql("SELECT run, missing_columns FROM ranks").rows()) == {
            "new": None,
            "old": LACKS,
        }
        found = store.sql("SELECT run, finding, message, remedy, severity FROM findings").rows()
        ((run, *said),) = [(f[0], *f[2:]) for f in found if f[1] == "older_columns"]
        message, remedy, severity = said
        assert (run, severity) == ("old", "warning")
        assert "older_definitions" not in {f[1] for f in found}
        assert message == render("findings.older_columns", {"rank_count": 1, "columns": LACKS})
        assert remedy == render("findings.older_columns", column="remedy")
    ingest_only(trace, every_table, run="old")
    with hta_sql.open(every_table) as store:
        assert store.sql("SELECT run FROM ranks WHERE missing_columns IS NOT NULL").rows() == []
        assert store.sql("SELECT count(input_dims) FROM cpu_ops").rows() == [(2,)]


@pytest.mark.slow(reason="large")
def test_every_analysis_does_without_the_columns(every_table: Path) -> None:
    """Every analysis runs on older stores, in which missing columns are NULL."""
    age(every_table, "old", LATER)
    with hta_sql.open(every_table) as store:
        run_everything(store)


def test_a_question_about_one_run_reads_its_files_only(
    every_table: Path, trace_path: Callable[[str], Path]
) -> None:
    """A query of one run only reads its files, even if the other runs have different columns."""
    age(every_table, "old", LATER)
    ingest_only({0: str(trace_path("every_table.json"))}, every_table, run="new")
    with duckdb.connect(str(every_table / "catalog.duckdb"), read_only=True) as con:
        for run in ("old", "new"):
            query = f"SELECT sum(dur) FROM gpu_ops WHERE run = '{run}'"  # noqa: S608 - our own
            # Only a scan that skips files is listed with a file count, here the other run's scan.
            assert files_read(con, query) == {"0/1"}


def test_a_table_that_came_later(every_table: Path) -> None:
    """A table that an older store does not have is empty and is listed in ``missing_columns``."""
    age(every_table, "old")
    manifest = json.loads((every_table / MANIFEST).read_text())
    del manifest["schemas"]["older"]["flows"]
    del manifest["entries"][0]["files"]["flows"]
    write_manifest(every_table, manifest)
    with hta_sql.open(every_table) as store:
        assert store.sql("FROM flows").rows() == []
        assert store.sql("SELECT missing_columns FROM ranks").rows() == [("flows",)]


def test_other_definitions_alone(every_table: Path) -> None:
    """If only the definitions differ, ``findings`` has a note instead of a warning."""
    age(every_table, "old")
    with hta_sql.open(every_table) as store:
        found = store.sql("SELECT severity, finding FROM findings WHERE finding LIKE 'older%'")
        assert found.rows() == [("note", "older_definitions")]


def test_other_definitions_of_one_rank(tmp_path: Path, trace_path: Callable[[str], Path]) -> None:
    """The finding counts only the ranks whose definitions differ."""
    trace = str(trace_path("host_only.json"))
    ingest_only({0: trace, 1: trace}, tmp_path / "job.store", run="job")
    manifest = json.loads((tmp_path / "job.store" / MANIFEST).read_text())
    manifest["entries"][1]["options"]["definitions"] = "other"
    write_manifest(tmp_path / "job.store", manifest)
    with hta_sql.open(tmp_path / "job.store") as store:
        query = "SELECT value, message FROM findings WHERE finding = 'older_definitions'"
        ((value, message),) = store.sql(query).rows()
    assert value == 1.0
    assert message == render("findings.older_definitions", {"rank_count": 1})


def test_a_type_that_has_grown(every_table: Path) -> None:
    """An INTEGER column of an older store is read as BIGINT, value by value."""
    age(every_table, "old")
    retype(every_table, "gpu_ops", "stream", "INTEGER")
    with hta_sql.open(every_table) as store:
        query = "SELECT stream, typeof(stream), count(*) FROM gpu_ops GROUP BY ALL ORDER BY ALL"
        assert store.sql(query).rows() == [(7, "BIGINT", 3), (20, "BIGINT", 1)]


def test_a_type_that_cannot_be_kept(
    every_table: Path, trace_path: Callable[[str], Path], caplog: pytest.LogCaptureFixture
) -> None:
    """A run with an incompatible column type is omitted; if it is the only one, opening fails."""
    age(every_table, "old")
    retype(every_table, "gpu_ops", "stream", "VARCHAR")
    with pytest.raises(hta_sql.StoreVersionError, match=r"stream is VARCHAR.*again: hta-sql"):
        hta_sql.open(every_table)
    ingest_only({0: str(trace_path("every_table.json"))}, every_table, run="new")
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.WARNING), hta_sql.open(every_table) as store:
            assert store.runs() == ["new"]
            assert store.sql("SELECT DISTINCT run FROM gpu_ops").rows() == [("new",)]
        assert "omitted runs" in caplog.text
        assert "different table definitions: old. " in caplog.text


def retype(store: Path, table: str, column: str, kind: str) -> None:
    """Rewrite a column of a table with a different type."""
    manifest = json.loads((store / MANIFEST).read_text())
    manifest["schemas"]["older"][table][column] = kind
    path = store / manifest["entries"][0]["files"][table]["path"]
    rewrite(path, f"* REPLACE ({column}::{kind} AS {column})")
    write_manifest(store, manifest)


def test_columns_of_a_newer_version(every_table: Path) -> None:
    """Columns of a newer version are ignored, and all columns of this version are present."""
    age(every_table, "old")
    manifest = json.loads((every_table / MANIFEST).read_text())
    manifest["writer"] = "0.10.0"
    manifest["schemas"]["older"]["gpu_ops"]["energy_joules"] = "DOUBLE"
    path = every_table / manifest["entries"][0]["files"]["gpu_ops"]["path"]
    rewrite(path, "*, 1.5 AS energy_joules")
    write_manifest(every_table, manifest)
    with hta_sql.open(every_table) as store:
        assert "energy_joules" not in store.table("gpu_ops").columns
        assert len(store.table("gpu_ops")) == 4


def test_an_older_store_as_one_file(every_table: Path, tmp_path: Path) -> None:
    """The portable file of an older store has all current columns."""
    age(every_table, "old", LATER)
    with hta_sql.open(every_table) as store:
        write_portable(store, tmp_path / "job.duckdb")
    with duckdb.connect(str(tmp_path / "job.duckdb"), read_only=True) as con:
        assert con.sql("SELECT count(*), count(sync_kind) FROM gpu_ops").fetchall() == [(4, 0)]
        assert con.sql("SELECT missing_columns FROM ranks").fetchall() == [(LACKS,)]


@pytest.mark.parametrize("described", [True, False])
def test_an_older_store_at_a_url(described: bool, every_table: Path, tmp_path: Path) -> None:
    """An older store at a URL can be opened even if its manifest does not list file columns."""
    age(every_table, "old", LATER, described=described)
    bucket = fsspec.filesystem("memory")
    bucket.put(f"{every_table}/", f"/{tmp_path.name}/", recursive=True)
    bucket.rm(f"/{tmp_path.name}/catalog.duckdb")
    with hta_sql.open(f"memory://{tmp_path.name}") as store:
        assert store.sql("SELECT count(*), count(sync_kind) FROM gpu_ops").rows() == [(4, 0)]
        assert store.sql("SELECT missing_columns FROM ranks").rows() == [(LACKS,)]
    bucket.rm(f"/{tmp_path.name}", recursive=True)


def test_a_manifest_without_a_digest(tmp_path: Path, write_traces: WriteTraces) -> None:
    """A manifest without column digests is refused with the advice to ingest the traces again."""
    store = tmp_path / "job.store"
    ingest_only(write_traces({0: 100.0}), store)
    manifest = json.loads((store / MANIFEST).read_text())
    del manifest["entries"][0]["schema"]
    write_manifest(store, manifest)
    with pytest.raises(hta_sql.StoreVersionError, match="Ingest the traces again"):
        hta_sql.open(store)


def test_an_older_schema_version_is_refused_in_one_sentence(tmp_path: Path) -> None:
    """A store from before the first release is refused with the advice to ingest again."""
    store = Path(shutil.copytree(STORES / "schema_version_1", tmp_path / "job.store"))
    with pytest.raises(hta_sql.StoreVersionError) as raised:
        hta_sql.open(store)
    assert str(raised.value) == (
        f"{str(store)!r} has schema version 1, but this version of hta_sql ({hta_sql.__version__}) reads schema version 2. "
        "Ingest the traces again, into a new store: hta-sql ingest TRACES -o STORE."
    )


@pytest.mark.parametrize(
    "command", [("list",), ("run", "kpis"), ("doctor",), ("verify",), ("repair",)]
)
def test_commands_refuse_an_older_schema_version(
    command: tuple[str, ...], tmp_path: Path, cli: Cli
) -> None:
    """Each command reports an older schema version and leaves the store unchanged."""
    store = Path(shutil.copytree(STORES / "schema_version_1", tmp_path / "job.store"))
    before = (store / MANIFEST).read_bytes()
    done = cli(command[0], store, *command[1:])
    assert done.code == 1
    assert "into a new store: hta-sql ingest TRACES -o STORE." in done.out + done.err
    assert (store / MANIFEST).read_bytes() == before


def test_another_format(every_table: Path) -> None:
    """A store in a newer format is refused with the advice to upgrade."""
    manifest = json.loads((every_table / MANIFEST).read_text())
    write_manifest(every_table, manifest | {"schema_version": 3})
    with pytest.raises(hta_sql.StoreVersionError, match="upgrade with pip") as raised:
        hta_sql.open(every_table)
    assert "again" not in str(raised.value)


def test_types_of_a_newer_version(every_table: Path) -> None:
    """An incompatible column type written by a newer version causes the advice to upgrade."""
    age(every_table, "old")
    retype(every_table, "gpu_ops", "stream", "VARCHAR")
    manifest = json.loads((every_table / MANIFEST).read_text())
    write_manifest(every_table, manifest | {"writer": "0.10.0"})
    with pytest.raises(hta_sql.StoreVersionError, match="upgrade with pip") as raised:
        hta_sql.open(every_table)
    assert "again" not in str(raised.value)
