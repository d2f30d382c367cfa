"""Tests that views return the same rows, whether the answers of a run are materialized or not."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import hta_sql
from hta_sql.cli import program
from hta_sql.errors import ParameterError
from hta_sql.library.answers import answers, first_terms, order_of
from hta_sql.library.data_tables import data_tables
from hta_sql.library.objects import load_library
from hta_sql.library.sql_files import stored_columns
from hta_sql.store.catalog import compute
from hta_sql.store.catalog.build import build_catalog, publish_manifest
from hta_sql.store.catalog.materialize import materialize_answers
from hta_sql.store.catalog.materialized_tables import kept_tables, keys_of
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.locks import store_lock
from hta_sql.store.disk.manifest import CATALOG, read_manifest
from hta_sql.synthetic import JobSpec, write_job
from tests.test_catalog import files_read

if TYPE_CHECKING:
    from collections.abc import Callable

    IngestTrace = Callable[..., hta_sql.TraceStore]

TRACES = Path(__file__).parent / "traces"

NAMES = ("temporal_breakdown", "gpu_kernels_by_name")
"""An analysis whose columns determine its row order, and one whose columns do not."""

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest three runs with different kernels, in a different order than that of their names."""
    store = tmp_path_factory.mktemp("whole") / "job.store"
    for run, name in (("b", "two_ranks_0"), ("c", "gap_causes"), ("a", "overlap_two_streams")):
        traces = {0: str(TRACES / f"{name}.json")}
        hta_sql.ingest_shard(traces, store, run=run, jobs=1, shard=(1, 1))
    hta_sql.publish(store).close()
    return store


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Path:
    """Copy the ingested store so that a test can change it."""
    copied = Path(shutil.copytree(whole, tmp_path / "tiny.store"))
    build_catalog(copied)
    return copied


def shown(store: Path, query: str = "FROM {name}", names: tuple[str, ...] = NAMES) -> list[Rows]:
    """Return the rows of the views as a client without this package sees them."""
    with duckdb.connect(str(store / CATALOG), read_only=True) as con:
        return [con.sql(query.format(name=name)).fetchall() for name in names]


def kept_files(store: Path, run: str) -> list[Path]:
    """Return the files that hold the materialized answers of a run."""
    kept = (
        one for one in read_manifest(store).materialized if one.run == run and one.table in NAMES
    )
    return [store / one.path for one in kept if one.path]


def is_kept(store: Path) -> set[tuple[str, str]]:
    """Return the materialized answers of ``NAMES`` that are current: pairs of analysis and run."""
    kept = kept_tables(read_manifest(store), load_library())
    return {(name, run) for name, run in kept if name in NAMES}


def all_of(*runs: str) -> set[tuple[str, str]]:
    """Return all pairs of an analysis in ``NAMES`` and one of the runs."""
    return {(name, run) for name in NAMES for run in runs}


@pytest.mark.parametrize(
    "runs",
    [
        ["a", "c"],
        ["b"],
        ["a", "b", "c"],
    ],
    ids="-".join,
)
def test_views_show_the_same_rows(store: Path, runs: list[str]) -> None:
    """Views, even those in µs, have the same rows in the same order, whatever is materialized."""
    computed = shown(store), shown(store, "FROM us.{name}")
    assert all(len(rows) > 2 for rows in computed[0])
    materialize_answers(store, NAMES, runs)
    assert is_kept(store) == all_of(*runs)
    assert (shown(store), shown(store, "FROM us.{name}")) == computed


def test_a_question_about_one_run_reads_one_file(store: Path) -> None:
    """A query of one run reads only that run's materialized answer, and no table files."""
    materialize_answers(store, NAMES)
    with duckdb.connect(str(store / CATALOG), read_only=True) as con:
        for name in NAMES:
            assert files_read(con, f"SELECT * FROM {name} WHERE run = 'b'") == {"1/3"}  # noqa: S608
    with hta_sql.open(store) as opened:
        plan = opened.sql("EXPLAIN FROM temporal_breakdown").rows()[0][1]
        assert "tables/gpu_ops" not in plan


def test_python_reads_what_is_kept(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Python reads materialized answers for default parameters, and computes other results.

    Files that cannot be read are recomputed with a warning.
    """
    questions: list[dict[str, Any]] = [{}, {"runs": ["c"]}, {"runs": ["c", "a"]}, {"ranks": [0]}]
    with hta_sql.open(store) as opened:
        computed = [opened.run("temporal_breakdown", **given).arrow() for given in questions]
    materialize_answers(store, NAMES)
    with hta_sql.open(store) as opened:
        found = [opened.run("temporal_breakdown", **given).arrow() for given in questions]
        assert found == computed
    (path,) = (path for path in kept_files(store, "c") if "temporal_breakdown" in path.parts)
    pq.write_table(pa.table({"rank": [7]}), path)
    caplog.clear()
    with hta_sql.open(store) as opened:
        assert opened.run("temporal_breakdown", runs=["c"]).arrow() == computed[1]
        assert opened.run("temporal_breakdown", ranks=[0]).arrow() == computed[3]
    (said,) = caplog.messages  # the warning shows that the file was read
    assert "Write the computed tables again: hta-sql materialize" in said


def test_a_run_that_is_read_again_is_computed_again(store: Path, ingest_trace: IngestTrace) -> None:
    """Re-ingesting a run makes its answers stale, and the next ingest deletes the old files.

    Answers of other runs stay valid.
    """
    materialize_answers(store, NAMES)
    old = kept_files(store, "b")
    ingest_trace("gap_causes.json", run="b").close()
    assert is_kept(store) == all_of("a", "c")
    of_b = shown(store, "SELECT * EXCLUDE (run) FROM {name} WHERE run = 'b'")
    of_c = shown(store, "SELECT * EXCLUDE (run) FROM {name} WHERE run = 'c'")
    assert of_b == of_c
    materialize_answers(store, NAMES)
    ingest_trace("gap_causes.json", run="d").close()
    assert is_kept(store) == all_of("a", "b", "c")
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in kept_files(store, "b"))


def test_a_rank_more_is_another_answer(store: Path, ingest_trace: IngestTrace) -> None:
    """A new rank changes the key of a run: if it starts first, all times in the run shift."""
    materialize_answers(store, NAMES)
    ingest_trace({1: "two_ranks_1.json"}, run="b").close()
    assert is_kept(store) == all_of("a", "c")
    (rows,) = shown(store, "SELECT rank FROM {name} WHERE run = 'b'", NAMES[:1])
    assert rows == [(0,), (1,)]


def test_a_run_that_is_taken_out(store: Path) -> None:
    """Removing a run also removes its materialized answers."""
    materialize_answers(store, NAMES)
    with store_lock(store_folder(store)):
        publish_manifest(store_folder(store), read_manifest(store).without(["b"]))
    assert is_kept(store) == all_of("a", "c")
    for rows in shown(store, "SELECT DISTINCT run FROM {name} ORDER BY run"):
        assert rows == [("a",), ("c",)]


def test_other_sql_is_another_answer(store: Path) -> None:
    """A newer analysis or a changed macro makes an answer stale, but a changed comment does not."""
    library = load_library()
    materialize_answers(store, NAMES)
    manifest = read_manifest(store)

    def still_kept(**changed: Any) -> set[str]:
        return {
            name
            for name, run in kept_tables(manifest, replace(library, **changed))
            if run == "a" and name in NAMES
        }

    def edited(objects: Any, name: str, text: Callable[[str], str]) -> Any:
        assert name in {about.name for about in objects}
        return tuple(replace(o, text=text(o.text)) if o.name == name else o for o in objects)

    newer = replace(
        library.find("temporal_breakdown"),
        name="temporal_breakdown_v2",
        text=library.find("temporal_breakdown").text.replace("_v1(", "_v2("),
    )
    assert still_kept(analyses=(*library.analyses, newer)) == {"gpu_kernels_by_name"}
    used = library.stands_on(library.find("temporal_breakdown"))
    macro = next(o.name for o in used if o in library.macros and "SELECT" in o.text)
    below = edited(library.macros, macro, lambda text: text.replace("SELECT", "SELECT DISTINCT"))
    assert "temporal_breakdown" not in still_kept(macros=below)
    said = edited(library.macros, macro, lambda text: f"-- Why.\n{text}")
    assert still_kept(macros=said) == set(NAMES)


def test_all_that_a_catalog_knows_of_a_run_is_in_its_key(store: Path) -> None:
    """The key of a run covers every relation in the catalog that depends on more than files."""
    with duckdb.connect(str(store / CATALOG), read_only=True) as con:
        query = (
            "SELECT view_name FROM duckdb_views() WHERE schema_name = 'stored' "
            "UNION ALL SELECT table_name FROM duckdb_tables() WHERE schema_name = 'stored'"
        )
        names = {name for (name,) in con.sql(query).fetchall()}
    from_files = {*stored_columns(), "argument_columns"}
    from_csv = set(
        re.findall(r'TABLE stored\."(\w+)"', "\n".join(data_tables(load_library().tables)))
    )
    # rank_scope is computed from inputs of keys_of, and no answer reads the other relations.
    others = {"rank_scope", "run_tags", "store_info", "kept_answers", "manifest_copy"}
    assert names - from_files - from_csv == others
    # Tags can change without a new key, so no answer may read them.
    of_tags = re.compile(r"(FROM|JOIN)\s+(runs|run_tags)\b")
    for about in answers(load_library()).values():
        used = [one for one in load_library().stands_on(about) if one.path.parent.name != "tables"]
        assert not any(of_tags.search(one.text) for one in used), about.name


def test_keys_tell_what_rank_scope_says(store: Path) -> None:
    """The key includes the time origin of a run, its steps, its columns and its definitions."""
    manifest = read_manifest(store)
    library = load_library()
    before = keys_of(manifest, library, NAMES)
    for change in (
        {"start_ns": 1},
        {"step_names": ["ProfilerStep#1"]},
        {"schema": "older"},
        {"options": {"definitions": "other"}},
    ):
        entries = [replace(manifest.entries[0], **change), *manifest.entries[1:]]
        after = keys_of(replace(manifest, entries=entries), library, NAMES)
        assert {at for at in before if after[at] != before[at]} == all_of(manifest.entries[0].run)


def test_large_answers_are_kept_by_name(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large answers are materialized only if they are named, and otherwise computed on demand."""
    computed = shown(store)
    monkeypatch.setattr(compute, "SMALL_BYTES", 0)
    monkeypatch.setattr("hta_sql.store.catalog.materialized_tables.answers", few)
    found = materialize_answers(store)
    assert {one.is_left_out for one in found if one.table in NAMES} == {True}
    assert materialize_answers(store) == []
    assert kept_files(store, "a") == []
    assert shown(store) == computed
    said = CliRunner().invoke(program, ["materialize", str(store), "--list"]).stdout
    assert re.search(r"temporal_breakdown: 0 of 3 runs, 0 rows.*; 3 runs omitted, up to", said)
    assert len(materialize_answers(store, NAMES[:1])) == 3
    assert shown(store) == computed


def few(library: Any) -> dict[str, Any]:
    """Limit the answers to the two analyses of this test."""
    return {name: about for name, about in answers(library).items() if name in NAMES}


def test_the_command_says_what_is_kept(store: Path) -> None:
    """The command logs the answers that it computes, and --list prints a line for each analysis."""
    done = CliRunner().invoke(program, ["materialize", str(store), *NAMES, "--runs", "a"])
    assert "Computed temporal_breakdown of run a: " in done.stderr
    said = CliRunner().invoke(program, ["materialize", str(store), "--list"])
    assert re.search(
        r"^temporal_breakdown: 1 of 3 runs, \d+ rows?, [\d.]+ kB$", said.stdout, re.MULTILINE
    )
    again = CliRunner().invoke(program, ["materialize", str(store), *NAMES, "--runs", "a"])
    assert "Everything is already materialized." in again.stderr


@pytest.mark.parametrize("name", ["kpi_trends", "trace_diff", "comparison"])
def test_what_is_not_of_one_run_is_not_kept(store: Path, name: str) -> None:
    """An analysis that combines runs cannot be materialized, and the error gives the reason."""
    with pytest.raises(ParameterError, match="cannot be materialized"):
        materialize_answers(store, [name])


@pytest.mark.parametrize("how", ["gone", "cut off"])
def test_a_broken_file_is_computed_again(
    store: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """If a file is missing or truncated, a warning is logged and its rows are recomputed.

    A later call materializes them again.
    """
    computed = shown(store)
    materialize_answers(store, NAMES)
    hta_sql.open(store).close()
    for path in kept_files(store, "b"):
        path.unlink()
        if how == "cut off":
            path.write_bytes(b"PAR1")
    with hta_sql.open(store) as opened:
        for name, rows in zip(NAMES, computed, strict=True):
            assert opened.run(name).rows() == rows
            assert opened.sql(f"FROM {name}").rows() == rows
        assert opened.runs() == ["a", "b", "c"]
    assert "Write the computed tables again" in caplog.text
    assert {one.run for one in materialize_answers(store, NAMES)} == {"b"}
    assert shown(store) == computed


def test_a_catalog_without_a_broken_file(store: Path) -> None:
    """If a run's files are missing, a rebuilt catalog computes its answers and reads the others."""
    computed = shown(store)
    materialize_answers(store, NAMES)
    for path in kept_files(store, "a"):
        path.unlink()
    build_catalog(store)
    assert shown(store) == computed
    with duckdb.connect(str(store / CATALOG), read_only=True) as con:
        assert con.sql("SELECT DISTINCT run FROM stored.kept_answers ORDER BY run").fetchall() == [
            ("b",),
            ("c",),
        ]


KEEP = """
import sys
from hta_sql.store.catalog.materialize import materialize_answers
materialize_answers(sys.argv[1], sys.argv[2:])
"""


def test_two_writers(store: Path, ingest_trace: IngestTrace) -> None:
    """If two processes materialize while one ingests, all results are stored."""
    processes = [
        subprocess.Popen([sys.executable, "-c", KEEP, str(store), name])  # noqa: S603 - our own
        for name in NAMES
    ]
    ingest_trace("overlap_two_streams.json", run="d").close()
    assert [process.wait(60) for process in processes] == [0, 0]
    assert is_kept(store) >= all_of("a", "b", "c")
    kept = shown(store)
    with store_lock(store_folder(store)):
        publish_manifest(store_folder(store), replace(read_manifest(store), materialized=[]))
    assert shown(store) == kept


def test_a_moved_store(store: Path, tmp_path: Path) -> None:
    """After a move, the store's catalog is rebuilt with the existing materialized answers."""
    computed = shown(store)
    materialize_answers(store, NAMES)
    moved = Path(shutil.move(store, tmp_path / "moved.store"))
    with hta_sql.open(moved) as opened:
        assert [opened.run(name).rows() for name in NAMES] == computed
    relative = build_catalog(moved, relative=True)
    with duckdb.connect(
        str(relative), read_only=True, config={"file_search_path": str(moved)}
    ) as con:
        assert [con.sql(f"FROM {name}").fetchall() for name in NAMES] == computed


def test_orders_by_columns() -> None:
    """Most analyses are sorted by columns, and the order of the others is unknown."""
    library = answers(load_library())
    assert order_of(library["temporal_breakdown"]) == '"run" , "rank"'
    assert order_of(library["gpu_kernels_by_name"]) is None
    assert sum(order_of(about) is not None for about in library.values()) > len(library) // 2


def test_the_columns_that_an_answer_is_ordered_by_first() -> None:
    """The sort columns end at the first term that is not a column; descending ones are marked."""
    library = answers(load_library())
    assert first_terms(library["temporal_breakdown"]) == [("run", False), ("rank", False)]
    names = [term.name for term in first_terms(library["gpu_kernels_by_name"])]
    assert names == ["run", "rank", "class"]  # the next term is l.is_kept, which is not a column
    assert ("device_self_ns", True) in first_terms(library["operator_table"])


def test_an_ingest_keeps_what_is_small(ingest_trace: IngestTrace) -> None:
    """If requested, an ingest materializes small answers, even for unchanged traces."""
    ingest_trace("two_ranks_0.json", run="a").close()
    with ingest_trace("two_ranks_0.json", run="a", materialize=True) as opened:
        found = kept_tables(read_manifest(Path(opened.path)), load_library())
    assert {name for name, _ in found} >= answers(load_library()).keys()


def test_parameters_with_their_default_none_read_the_materialized_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``hta-sql advice`` passes ``None`` for what is not restricted."""
    job = write_job(tmp_path / "traces", JobSpec(ranks=2, steps=2, layers=1))
    hta_sql.ingest(job.files[0].parent, tmp_path / "job.store", run="job").close()
    materialize_answers(tmp_path / "job.store", ["advice"])
    with hta_sql.open(tmp_path / "job.store") as store:
        expected = store.run("advice").rows()
        monkeypatch.setattr("hta_sql.store.query.trace_store.questions_of", None)
        assert store.run("advice", runs=None, ranks=None, steps=None).rows() == expected
