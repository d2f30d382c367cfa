"""Runs of a store: what is known of them, their tags and names, and which of them stay."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import pytest
from click.testing import CliRunner

import hta_sql
from hta_sql.cli import program
from hta_sql.store.manifest import MANIFEST, read_manifest
from hta_sql.store.materialize import materialize
from tests.jobs.spec import PlantedJob
from tests.jobs.traces import write_job
from tests.manifests import write_manifest

KERNEL = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 0.0, "dur": 100.0}
KERNEL |= {"args": {"device": 0, "stream": 7}}
STATED = {
    "distributedInfo": {"rank": 0, "world_size": 8, "backend": "nccl", "nccl_version": "2.28.9"},
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
    "host_name": "node17",
    "torch_version": "2.9.1",
    "git_sha": "8c1f0e",
    "baseTimeNanoseconds": 1_769_904_000_000_000_000,
}


def write_trace(path: Path, **keys: object) -> str:
    """Write a trace with one kernel, and what its program has recorded beside."""
    path.write_text(json.dumps({"traceEvents": [KERNEL], **keys}))
    return str(path)


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """A trace that says a lot of its program."""
    return write_trace(tmp_path / "rank0.json", **STATED)


def called(*arguments: object) -> str:
    """Run a command that has to succeed; what it prints."""
    done = CliRunner().invoke(program, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_what_a_trace_says_of_its_run(trace: str, tmp_path: Path) -> None:
    """A row of the table ``runs``; it is known without a look at any file of the rank."""
    with hta_sql.ingest(trace, tmp_path / "job.store", run="nightly") as store:
        (row,) = store.sql("FROM runs").records()
    known = {
        "run": "nightly",
        "rank_count": 1,
        "world_size": 8,
        "start_ns": 1_769_904_000_000_000_000,
        "dur": 100_000,
        "event_count": 1,
        "step_count": 0,
        "captured_at": "2026-02-01 00:00:00",
        "device_names": "NVIDIA H100",
        "host_count": 1,
        "host_name": "node17",
        "framework": "torch 2.9.1",
        "git_sha": "8c1f0e",
        "backend": "nccl",
        "nccl_version": "2.28.9",
        "tags": None,
    }
    assert known.items() <= row.items()
    assert row["ingested_at"] > "2026"
    assert row["size_bytes"] > 1000


def test_what_a_trace_does_not_say_is_not_known(tmp_path: Path) -> None:
    """NULL, not a guess; tags can tell it."""
    bare = write_trace(tmp_path / "rank0.json")
    query = "SELECT world_size, captured_at, device_names, host_count, framework, git_sha FROM runs"
    with hta_sql.ingest(bare, tmp_path / "job.store", run="job") as store:
        assert store.sql(query).rows() == [(None,) * 6]
    hta_sql.tag_runs(tmp_path / "job.store", ["job"], {"git_sha": "77aa", "torch_version": "2.8"})
    with hta_sql.open(tmp_path / "job.store") as store:
        assert store.sql("SELECT framework, git_sha FROM runs").rows() == [("torch 2.8", "77aa")]


@pytest.mark.slow
def test_a_store_of_before_there_were_such_rows(trace: str, tmp_path: Path) -> None:
    """What its files say is looked up; when it was ingested is not known."""
    store = tmp_path / "job.store"
    hta_sql.ingest(trace, store, run="job").close()
    manifest = json.loads((store / MANIFEST).read_text())
    del manifest["tags"], manifest["entries"][0]["facts"], manifest["entries"][0]["ingested_ns"]
    write_manifest(store, manifest)
    query = "SELECT world_size, dur, device_names, ingested_at, tags FROM runs"
    with hta_sql.open(store) as opened:
        assert opened.sql(query).rows() == [(8, 100_000, "NVIDIA H100", None, None)]
    hta_sql.tag_runs(store, ["job"], {"branch": "main"})
    assert read_manifest(store).entries[0].facts is not None
    with hta_sql.open(store) as opened:
        assert opened.sql(query).rows() == [(8, 100_000, "NVIDIA H100", None, '{"branch":"main"}')]


@pytest.mark.slow
def test_tags_stay_when_traces_are_read_again(trace: str, tmp_path: Path) -> None:
    """Also where nothing is read; new ones are added."""
    store = tmp_path / "job.store"
    hta_sql.ingest(trace, store, run="job", tags={"branch": "main", "batch": 32}).close()
    hta_sql.ingest(trace, store, run="job", force=True).close()
    assert read_manifest(store).tags == {"job": {"batch": "32", "branch": "main"}}
    hta_sql.ingest(trace, store, run="job", tags={"branch": "new", "batch": ""}).close()
    with hta_sql.open(store) as opened:
        assert opened.sql("FROM run_tags").rows() == [("job", "branch", "new")]
        assert opened.sql("SELECT tags FROM runs").rows() == [('{"branch":"new"}',)]


def test_tags_of_shards(tmp_path: Path) -> None:
    """Each job of an array gives them; the run has them when it is published."""
    traces = {rank: write_trace(tmp_path / f"rank{rank}.json") for rank in (0, 1)}
    store = tmp_path / "job.store"
    for number in (1, 2):
        hta_sql.ingest_shard(traces, store, run="job", shard=(number, 2), tags={"job": "llama"})
    hta_sql.publish(store, expect=2).close()
    assert read_manifest(store).tags == {"job": {"job": "llama"}}


@pytest.mark.parametrize("tags", [{"": "x"}, {"a b": "x"}, {"a": "x\ny"}, {"a": "x" * 1001}])
def test_tags_that_cannot_be(tags: dict[str, str], trace: str, tmp_path: Path) -> None:
    """Refused before anything is read."""
    with pytest.raises(hta_sql.ParameterError, match="ag '"):
        hta_sql.ingest(trace, tmp_path / "job.store", tags=tags)
    assert not (tmp_path / "job.store").exists()


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of three runs, of 1, 2 and 3 February 2026; the first two are of one job."""
    folder = tmp_path_factory.mktemp("runs")
    for day, tags in enumerate(({"job": "a"}, {"job": "a"}, {"job": "b"})):
        start = {"baseTimeNanoseconds": 1_769_904_000_000_000_000 + day * 86_400_000_000_000}
        trace = write_trace(folder / "rank0.json", **start)
        hta_sql.ingest(trace, folder / "job.store", run=f"day{day + 1}", tags=tags).close()
    return folder / "job.store"


@pytest.fixture
def store(three_runs: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(three_runs, tmp_path / "job.store"))


def runs_of(store: Path) -> list[str]:
    """List the runs by what can be asked of them."""
    with hta_sql.open(store) as opened:
        return [run for (run,) in opened.sql("SELECT run FROM gpu_ops ORDER BY run").rows()]


def files_of(store: Path) -> set[str]:
    """List the Parquet files, and the folders that they are in."""
    return {path.relative_to(store).as_posix() for path in (store / "tables").rglob("*")}


def test_a_run_is_removed(store: Path) -> None:
    """Its files, folders and tags go; the others answer."""
    size = sum((store / name).stat().st_size for name in files_of(store) if "run=day2" in name)
    freed = hta_sql.remove_runs(store, ["day2"])
    assert 0 < freed <= size
    assert runs_of(store) == ["day1", "day3"]
    assert [name for name in files_of(store) if "day2" in name] == []
    assert list(read_manifest(store).tags) == ["day1", "day3"]


def test_one_run_needs_no_list(store: Path) -> None:
    """Its name is no list of letters."""
    hta_sql.tag_runs(store, "day2", {"ticket": "PERF-17"})
    hta_sql.remove_runs(store, "day1")
    assert read_manifest(store).tags["day2"]["ticket"] == "PERF-17"
    assert runs_of(store) == ["day2", "day3"]


def test_a_baseline_stays(store: Path) -> None:
    """Nobody removes or renames what others are compared with; its tags are free."""
    first = read_manifest(store).runs()[0]
    called("baseline", "set", "usual", f"{store}:{first}")
    for change in (["remove", str(store), first], ["rename", str(store), first, "other"]):
        done = CliRunner().invoke(program, ["runs", *change])
        assert done.exit_code == 1
        assert f"hta-sql baseline remove usual {store}" in str(done.exception)
    called("runs", "tag", store, first, "ticket=PERF-17")
    assert first not in hta_sql.retain_runs(store, keep=0)
    assert read_manifest(store).runs() == [first]
    called("baseline", "remove", "usual", store)
    called("runs", "remove", store, first)


def test_all_runs_are_removed(store: Path, trace: str) -> None:
    """An empty store opens, and can be filled again."""
    hta_sql.remove_runs(store, ["day1", "day2", "day3"])
    assert runs_of(store) == []
    hta_sql.ingest(trace, store, run="new").close()
    assert runs_of(store) == ["new"]


@pytest.mark.parametrize(
    "change", [["tag", "dya1", "a=b"], ["remove", "dya1"], ["rename", "dya1", "x"]]
)
def test_a_run_that_is_not_there(change: list[str], store: Path) -> None:
    """The error names the nearest one; nothing has changed."""
    before = (store / MANIFEST).read_bytes()
    command, run, *rest = change
    done = CliRunner().invoke(program, ["runs", command, str(store), run, *rest])
    assert isinstance(done.exception, hta_sql.RankError)
    assert "No run 'dya1'" in str(done.exception)
    assert "Did you mean 'day1'?" in str(done.exception)
    assert (store / MANIFEST).read_bytes() == before


def test_a_run_is_renamed(store: Path) -> None:
    """Its files are the same ones under another name; it has its tags."""
    inodes = {path.stat().st_ino for path in (store / "tables").rglob("run=day1/*/*.parquet")}
    hta_sql.rename_run(store, "day1", "baseline")
    assert runs_of(store) == ["baseline", "day2", "day3"]
    named = {path.stat().st_ino for path in (store / "tables").rglob("run=baseline/*/*.parquet")}
    assert named == inodes
    assert [name for name in files_of(store) if "day1" in name] == []
    with hta_sql.open(store) as opened:
        query = "SELECT run, tag_value FROM run_tags ORDER BY run LIMIT 1"
        assert opened.sql(query).rows() == [("baseline", "a")]


@pytest.mark.parametrize(("name", "error"), [("day2", "has a run"), ("a/b", "Run name")])
def test_names_that_a_run_cannot_have(name: str, error: str, store: Path) -> None:
    """One that another has, one that is no name of a file."""
    with pytest.raises(hta_sql.HtaSqlError, match=error):
        hta_sql.rename_run(store, "day1", name)
    assert runs_of(store) == ["day1", "day2", "day3"]


@pytest.mark.slow
def test_what_was_computed_of_a_renamed_run(tmp_path: Path) -> None:
    """It is computed anew, with the same rows under the new name."""
    paths, _ = write_job(tmp_path / "traces", PlantedJob(ranks=2, steps=3))
    store = tmp_path / "job.store"
    query = "SELECT * EXCLUDE (run) FROM step_parts ORDER BY ALL"
    with hta_sql.ingest(paths, store, run="job") as opened:
        rows = opened.sql(query).rows()
    materialize(store)
    hta_sql.rename_run(store, "job", "other")
    assert read_manifest(store).kept == []
    with hta_sql.open(store) as opened:
        assert opened.sql(query).rows() == rows
        assert opened.sql("SELECT DISTINCT run FROM step_parts").rows() == [("other",)]


@pytest.mark.slow
def test_shards_of_a_renamed_run(tmp_path: Path) -> None:
    """To publish them again changes nothing: they are those of the new name."""
    traces = {0: write_trace(tmp_path / "rank0.json")}
    store = tmp_path / "job.store"
    hta_sql.ingest_shard(traces, store, run="job.v1", shard=(1, 1))
    hta_sql.publish(store).close()
    hta_sql.rename_run(store, "job.v1", "v1")
    assert list(read_manifest(store).published) == ["v1.1-of-1"]
    hta_sql.publish(store, expect=1).close()
    hta_sql.remove_runs(store, ["v1"])
    assert read_manifest(store).published == {}


DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("wanted", "gone"),
    [
        ({"keep": 2}, ["day1"]),
        ({"keep": 0}, ["day1", "day2", "day3"]),
        ({"keep": 5}, []),
        ({"keep": 1, "tags": {"job": "a"}}, ["day1"]),
        ({"keep": 0, "tags": {"job": "a", "x": "y"}}, []),
        ({"older_than": 20 * DAY}, ["day1", "day2", "day3"]),
        ({"older_than": 36_500 * DAY}, []),
        ({"keep": 1, "older_than": DAY}, ["day1", "day2"]),
    ],
)
def test_which_runs_stay(wanted: dict[str, object], gone: list[str], store: Path) -> None:
    """The newest, the young ones, and those of other tags; a dry run says the same."""
    assert hta_sql.retain_runs(store, **wanted, dry_run=True) == gone  # type: ignore[arg-type]
    assert read_manifest(store).runs() == ["day1", "day2", "day3"]
    assert hta_sql.retain_runs(store, **wanted) == gone  # type: ignore[arg-type]
    assert sorted({*read_manifest(store).runs(), *gone}) == ["day1", "day2", "day3"]


def test_a_run_without_a_time_of_day(store: Path, tmp_path: Path) -> None:
    """It is as old as its ingest; without that it stays."""
    hta_sql.ingest(write_trace(tmp_path / "rank0.json"), store, run="unknown").close()
    assert hta_sql.retain_runs(store, keep=1, dry_run=True) == ["day1", "day2", "day3"]
    manifest = json.loads((store / MANIFEST).read_text())
    del manifest["entries"][-1]["ingested_ns"]
    write_manifest(store, manifest)
    assert hta_sql.retain_runs(store, keep=0, dry_run=True) == ["day1", "day2", "day3"]


def test_nothing_to_go_by(store: Path) -> None:
    """Neither a number nor an age: all of them would go."""
    with pytest.raises(hta_sql.ParameterError, match="how many"):
        hta_sql.retain_runs(store)


@pytest.mark.slow
def test_the_commands(store: Path) -> None:
    """List, tag, rename, retain and remove, as a user types them."""
    called("runs", "tag", store, "day1", "branch=main", "job=")
    called("runs", "rename", store, "day1", "first")
    rows = json.loads(called("runs", store, "--format", "json"))
    assert [row["run"] for row in rows] == ["first", "day2", "day3"]
    assert (rows[0]["tags"], rows[0]["captured_at"]) == ('{"branch":"main"}', "2026-02-01 00:00:00")
    assert (
        called("runs", "retain", store, "--older-than", "4w", "--keep", 2, "--dry-run") == "first\n"
    )
    assert called("runs", "retain", store, "--keep", 1, "--tag", "job=a") == ""
    called("runs", "remove", store, "first", "day2")
    assert called("runs", store, "--format", "csv").splitlines()[1].startswith("day3,1,")
    assert "2026-02-03 00:00:00" in called("runs", "list", store)


@pytest.mark.parametrize(
    "arguments",
    [
        ["tag", "s", "r", "x"],
        ["retain", "s"],
        ["retain", "s", "--older-than", "30y"],
        ["remove", "s"],
    ],
)
def test_commands_that_cannot_be_understood(arguments: list[str]) -> None:
    """Exit code 2."""
    assert CliRunner().invoke(program, ["runs", *arguments]).exit_code == 2


def test_ingest_takes_tags(trace: str, tmp_path: Path) -> None:
    """As the option of the command."""
    called("ingest", trace, "-o", tmp_path / "s", "--tag", "branch=main", "--tag", "note=a=b")
    assert read_manifest(tmp_path / "s").tags == {"rank0": {"branch": "main", "note": "a=b"}}


@pytest.mark.slow
def test_trends_are_those_of_a_job(store: Path) -> None:
    """Runs of other tags are not compared, unless these are not asked for; the commit is no tag of a job."""
    hta_sql.tag_runs(store, ["day2"], {"git_sha": "77aa"})
    with hta_sql.open(store) as opened:

        def compared(**how: Any) -> list[tuple[object, ...]]:
            result = opened.run("kpi_trends", **how).records()
            columns = ("run", "job", "git_sha", "baseline_run_count")
            return [tuple(r[c] for c in columns) for r in result if r["kpi"] == "step_ns"]

        assert compared() == [
            ("day1", "job=a", None, 0),
            ("day2", "job=a", "77aa", 1),
            ("day3", "job=b", None, 0),
        ]
        assert [row[1::2] for row in compared(same_tags=[])] == [("", 0), ("", 1), ("", 2)]
        assert compared(same_tags=["git_sha"])[-1] == ("day2", "git_sha=77aa", "77aa", 0)


@pytest.mark.slow
def test_in_the_portable_file(store: Path, tmp_path: Path) -> None:
    """Runs and their tags are in there."""
    called("export", store, "-o", tmp_path / "all.duckdb")
    with duckdb.connect(str(tmp_path / "all.duckdb"), read_only=True) as con:
        assert con.sql("SELECT run, tags FROM runs ORDER BY run LIMIT 1").fetchall() == [
            ("day1", '{"job":"a"}')
        ]


@pytest.mark.slow
def test_an_object_storage(store: Path, tmp_path: Path) -> None:
    """The same at a URL: objects are copied for a rename."""
    bucket, url = fsspec.filesystem("memory"), f"memory://{tmp_path.name}"
    (store / ".lock").unlink()
    bucket.put(f"{store}/", f"/{tmp_path.name}/", recursive=True)
    hta_sql.tag_runs(url, ["day3"], {"x": "y"})
    hta_sql.rename_run(url, "day3", "last")
    hta_sql.remove_runs(url, ["day1"])
    with hta_sql.open(url) as opened:
        query = "SELECT run, tag_value FROM run_tags WHERE tag = 'x'"
        assert opened.sql(query).rows() == [("last", "y")]
        assert opened.sql("SELECT DISTINCT run FROM gpu_ops ORDER BY run").rows() == [
            ("day2",),
            ("last",),
        ]
    assert [
        path for path in bucket.find(f"/{tmp_path.name}") if "day1" in path or "day3" in path
    ] == []
    bucket.rm(f"/{tmp_path.name}", recursive=True)
