"""Tests of queries with an executor: results stored as files, local queries, and failures."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
import hta_sql.store.catalog.materialize
from hta_sql.store.catalog.build import Identity, identity_of
from hta_sql.store.query import distributed, partitions

if TYPE_CHECKING:
    from collections.abc import Callable

    IngestTrace = Callable[..., hta_sql.TraceStore]


class Here(Executor):
    """An executor that runs tasks in the calling thread and counts them."""

    def __init__(self) -> None:
        self.tasks = 0

    def submit(self, task: Any, /, *given: Any, **named: Any) -> Future[Any]:
        """Run a task immediately and return its finished future."""
        self.tasks += 1
        future: Future[Any] = Future()
        try:
            future.set_result(task(*given, **named))
        except Exception as error:  # noqa: BLE001 - as a worker hands it on
            future.set_exception(error)
        return future


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    """Return an executor, and lower the partition size so that each run or rank is a task."""
    monkeypatch.setattr(partitions, "LEAST_EVENTS", 1)
    return Here()


def test_many_rows_stay_in_the_store(
    ingest_trace: IngestTrace, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large result is stored as files and reused by the same query until the next ingest."""
    monkeypatch.setattr(distributed, "LARGE_BYTES", 1)
    ingest_trace("two_ranks_0.json", run="a").close()
    store = ingest_trace("overlap_two_streams.json", run="b")
    found = store.run("gpu_kernels_by_name", executor=here)
    assert len(found.paths) == here.tasks == 2
    written = [Path(path).stat().st_mtime_ns for path in found.paths]
    again = store.run("gpu_kernels_by_name", executor=here)
    assert again.paths == found.paths
    assert written == [Path(path).stat().st_mtime_ns for path in found.paths]
    assert again.rows() == store.run("gpu_kernels_by_name").rows()
    other = store.run("gpu_kernels_by_name", num_kernels=1, executor=here)
    assert not set(other.paths) & set(found.paths)
    ingest_trace("gap_causes.json", run="c").close()
    with pytest.raises(hta_sql.StoreError, match="was deleted by a later ingest"):
        found.rows()


def test_rows_in_a_file_that_was_damaged(
    ingest_trace: IngestTrace, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged result file is an error, and the next query computes the rows again."""
    monkeypatch.setattr(distributed, "LARGE_BYTES", 1)
    store = ingest_trace("two_ranks_0.json")
    whole = store.run("temporal_breakdown").rows()
    found = store.run("temporal_breakdown", executor=here)
    (path,) = map(Path, found.paths)
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)
    with pytest.raises(hta_sql.StoreDamagedError, match="run the query again"):
        found.rows()
    assert store.run("temporal_breakdown", executor=here).rows() == whole


def test_a_store_that_may_not_be_written(
    ingest_trace: IngestTrace, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the store is not writable, a large result is returned like a small one."""
    monkeypatch.setattr(distributed, "LARGE_BYTES", 1)
    store = ingest_trace("two_ranks_0.json")
    tables = Path(store.path) / "tables"
    monkeypatch.setattr(distributed, "TABLES", "manifest.json/no folder")
    found = store.run("temporal_breakdown", executor=here)
    assert found.paths == ()
    assert found.rows() == store.run("temporal_breakdown").rows()
    assert not list(tables.rglob("answers"))


def test_a_store_that_has_another_name_on_a_worker(
    ingest_trace: IngestTrace, here: Here, tmp_path: Path
) -> None:
    """A worker may open the store at a different path, because its contents identify it."""
    store = ingest_trace("two_ranks_0.json")
    expected = store.run("temporal_breakdown").rows()
    real = Path(store.path).rename(tmp_path / "mounted.store")
    Path(store.path).symlink_to(real)
    assert store.run("temporal_breakdown", executor=here).rows() == expected


def test_a_store_at_a_url(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large result of a store at a URL is stored at that URL."""
    monkeypatch.setattr(distributed, "LARGE_BYTES", 1)
    trace = str(Path(__file__).parent / "traces" / "two_ranks_0.json")
    with hta_sql.ingest({0: trace}, "memory://elsewhere/job.store") as store:
        found = store.run("temporal_breakdown", executor=here)
        assert [path.partition("tables")[0] for path in found.paths] == [
            "memory://elsewhere/job.store/"
        ]
        assert store.run("temporal_breakdown", executor=here).paths == found.paths
        assert found.rows() == store.run("temporal_breakdown").rows()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("trace_diff", "its rows combine several runs"),
    ],
)
def test_what_crosses_runs_is_answered_here(
    tiny_store: hta_sql.TraceStore,
    here: Here,
    caplog: pytest.LogCaptureFixture,
    name: str,
    why: str,
) -> None:
    """An analysis that combines runs is computed locally, with a warning that gives the reason."""
    scope: dict[str, Any] = {"runs": ["base", "test"]}
    found = tiny_store.run(name, executor=here, **scope)
    assert found.rows() == tiny_store.run(name, **scope).rows()
    assert here.tasks == 0
    assert f"{name} is computed locally, not by the executor: {why}." in caplog.text


def test_what_is_kept_is_read_here(ingest_trace: IngestTrace, here: Here) -> None:
    """A materialized answer is read locally and does not need a task."""
    store = ingest_trace("two_ranks_0.json")
    assert store.run("temporal_breakdown", executor=here).rows()
    assert here.tasks == 1
    hta_sql.store.catalog.materialize.materialize_answers(store.path, ["temporal_breakdown"])
    with hta_sql.open(store.path) as opened:
        assert (
            opened.run("temporal_breakdown", executor=here).rows()
            == store.run("temporal_breakdown").rows()
        )
    assert here.tasks == 1


def test_a_store_that_was_changed_meanwhile(ingest_trace: IngestTrace, here: Here) -> None:
    """A query on a store that changed since it was opened is an error, and so is a missing rank."""
    store = ingest_trace("two_ranks_0.json")
    with pytest.raises(hta_sql.RankError, match="No rank 7"):
        store.run("temporal_breakdown", ranks=[7], executor=here)
    ingest_trace("two_ranks_1.json", run="other").close()
    with pytest.raises(hta_sql.StoreError, match="has changed since it was opened"):
        store.run("temporal_breakdown", executor=here)


def test_parquet_that_a_worker_cannot_read(ingest_trace: IngestTrace, here: Here) -> None:
    """A Parquet file that a worker cannot read is an error; its rows are not silently dropped."""
    ingest_trace("two_ranks_1.json", run="other").close()
    store = ingest_trace("two_ranks_0.json")
    for path in (Path(store.path) / "tables" / "gpu_ops").glob("run=run/*/*.parquet"):
        path.unlink()
    with pytest.raises(hta_sql.StoreError, match=r"cannot read the Parquet files of runs .*: run"):
        store.run("temporal_breakdown", executor=here)


def test_a_worker_that_dies(tiny_store: hta_sql.TraceStore) -> None:
    """If a worker dies, the error states what workers require."""

    class Broken(Here):
        def submit(self, task: Any, /, *given: Any, **named: Any) -> Future[Any]:  # noqa: ARG002
            future: Future[Any] = Future()
            future.set_exception(BrokenExecutor("killed"))
            return future

    with pytest.raises(hta_sql.QueryError, match=r"BrokenExecutor: killed\. Workers need hta_sql"):
        tiny_store.run("temporal_breakdown", executor=Broken())


def test_another_hta_sql_on_a_worker(
    tiny_store: hta_sql.TraceStore, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker with a different version of hta_sql is refused, because its SQL may differ."""
    seen = iter([identity_of(tiny_store._folder, tiny_store.library.base)])
    other = Identity("", "", "other")
    # The caller sees the actual identity first, and the worker then sees a different one.
    monkeypatch.setattr(distributed, "identity_of", lambda *_: next(seen, other))
    with pytest.raises(hta_sql.StoreError, match="differs from that of the caller"):
        tiny_store.run("temporal_breakdown", executor=here)
