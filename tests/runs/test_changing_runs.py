"""Renaming, removing and retaining the runs of a store."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import fsspec
import pytest
from click.testing import CliRunner

import hta_sql
from hta_sql.cli import program
from hta_sql.store.catalog.materialize import materialize
from hta_sql.store.disk.manifest import MANIFEST, read_manifest
from tests.jobs.spec import PlantedJob
from tests.jobs.traces import write_job
from tests.manifests import write_manifest
from tests.runs.writing import called, files_of, runs_of, write_trace
from tests.shared_stores import ingest_only


def test_a_run_is_removed(store: Path) -> None:
    """Removing a run deletes its files, folders and tags, and leaves the other runs."""
    size = sum((store / name).stat().st_size for name in files_of(store) if "run=day2" in name)
    freed = hta_sql.remove_runs(store, ["day2"])
    assert 0 < freed <= size
    assert runs_of(store) == ["day1", "day3"]
    assert [name for name in files_of(store) if "day2" in name] == []
    assert list(read_manifest(store).tags) == ["day1", "day3"]


def test_one_run_needs_no_list(store: Path) -> None:
    """A single run name is not mistaken for a list of letters."""
    hta_sql.tag_runs(store, "day2", {"ticket": "PERF-17"})
    hta_sql.remove_runs(store, "day1")
    assert read_manifest(store).tags["day2"]["ticket"] == "PERF-17"
    assert runs_of(store) == ["day2", "day3"]


def test_a_baseline_stays(store: Path) -> None:
    """A run that is a baseline cannot be removed or renamed; its tags can change."""
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
    """A store whose runs are all removed opens, and accepts new runs."""
    hta_sql.remove_runs(store, ["day1", "day2", "day3"])
    assert runs_of(store) == []
    ingest_only(trace, store, run="new")
    assert runs_of(store) == ["new"]


@pytest.mark.parametrize(
    "change", [["tag", "dya1", "a=b"], ["remove", "dya1"], ["rename", "dya1", "x"]]
)
def test_a_run_that_is_not_there(change: list[str], store: Path) -> None:
    """The error for an unknown run suggests the nearest name, and nothing changes."""
    before = (store / MANIFEST).read_bytes()
    command, run, *rest = change
    done = CliRunner().invoke(program, ["runs", command, str(store), run, *rest])
    assert isinstance(done.exception, hta_sql.RankError)
    assert "No run 'dya1'" in str(done.exception)
    assert "Did you mean 'day1'?" in str(done.exception)
    assert (store / MANIFEST).read_bytes() == before


def test_a_run_is_renamed(store: Path) -> None:
    """A renamed run keeps its files and tags under the new name."""

    def inodes_of(run: str) -> set[int]:
        files = (store / "tables").rglob(f"run={run}/*/*.parquet")
        # Derived tables, in folders named all, contain the run's name, so they are recomputed.
        return {path.stat().st_ino for path in files if path.parent.name != "all"}

    inodes = inodes_of("day1")
    hta_sql.rename_run(store, "day1", "baseline")
    assert runs_of(store) == ["baseline", "day2", "day3"]
    assert inodes_of("baseline") == inodes
    assert [name for name in files_of(store) if "day1" in name] == []
    with hta_sql.open(store) as opened:
        query = "SELECT run, tag_value FROM run_tags ORDER BY run LIMIT 1"
        assert opened.sql(query).rows() == [("baseline", "a")]


@pytest.mark.parametrize(("name", "error"), [("day2", "already has a run"), ("a/b", "Run name")])
def test_names_that_a_run_cannot_have(name: str, error: str, store: Path) -> None:
    """Renaming a run to an existing name, or to an invalid one, is refused."""
    with pytest.raises(hta_sql.HtaSqlError, match=error):
        hta_sql.rename_run(store, "day1", name)
    assert runs_of(store) == ["day1", "day2", "day3"]


def test_what_was_computed_of_a_renamed_run(tmp_path: Path) -> None:
    """Materialized answers of a renamed run are recomputed, with the same rows."""
    paths, _ = write_job(tmp_path / "traces", PlantedJob(ranks=2, steps=3))
    store = tmp_path / "job.store"
    query = "SELECT * EXCLUDE (run) FROM step_parts ORDER BY ALL"
    with hta_sql.ingest(paths, store, run="job") as opened:
        rows = opened.sql(query).rows()
    materialize(store)
    hta_sql.rename_run(store, "job", "other")
    assert {one.run for one in read_manifest(store).materialized} == {"other"}
    with hta_sql.open(store) as opened:
        assert opened.sql(query).rows() == rows
        assert opened.sql("SELECT DISTINCT run FROM step_parts").rows() == [("other",)]


def test_shards_of_a_renamed_run(tmp_path: Path) -> None:
    """After a rename, publishing again changes nothing: the shards belong to the new name."""
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
    """The newest, recent and differently tagged runs are kept; a dry run reports the same."""
    assert hta_sql.retain_runs(store, **wanted, dry_run=True) == gone  # type: ignore[arg-type]
    assert read_manifest(store).runs() == ["day1", "day2", "day3"]
    assert hta_sql.retain_runs(store, **wanted) == gone  # type: ignore[arg-type]
    assert sorted({*read_manifest(store).runs(), *gone}) == ["day1", "day2", "day3"]


def test_a_run_without_a_time_of_day(store: Path, tmp_path: Path) -> None:
    """A run without a capture time is as old as its ingest. Without that time, it is kept."""
    ingest_only(write_trace(tmp_path / "rank0.json"), store, run="unknown")
    assert hta_sql.retain_runs(store, keep=1, dry_run=True) == ["day1", "day2", "day3"]
    manifest = json.loads((store / MANIFEST).read_text())
    del manifest["entries"][-1]["ingested_ns"]
    write_manifest(store, manifest)
    assert hta_sql.retain_runs(store, keep=0, dry_run=True) == ["day1", "day2", "day3"]


def test_nothing_to_go_by(store: Path) -> None:
    """Retention without a number or an age is refused, because it would remove all runs."""
    with pytest.raises(hta_sql.ParameterError, match="Pass the number of runs to keep"):
        hta_sql.retain_runs(store)


def test_the_commands(store: Path) -> None:
    """The ``hta-sql runs`` commands list, tag, rename, retain and remove runs."""
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
    """Commands that cannot be parsed end with exit code 2."""
    assert CliRunner().invoke(program, ["runs", *arguments]).exit_code == 2


def test_an_object_storage(store: Path, tmp_path: Path) -> None:
    """Runs at a URL can be tagged, renamed and removed; renaming copies the objects."""
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
