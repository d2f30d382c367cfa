"""If a worker dies at any stage, no rank is lost and no reader sees a partial state.

The ingest adds a second run. Readers see either the first run or both runs. In the end, no file is
orphaned.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

import hta_sql
import hta_sql.store.disk.folder
from hta_sql.store.catalog import ingest_target, materialize
from hta_sql.store.disk.manifest import read_manifest
from hta_sql.store.disk.shard_files import read_shards
from hta_sql.store.query import partitions
from tests.safety.damages import trace
from tests.safety.dask_noise import NOISE
from tests.safety.lost_tasks import ASKING, READING, Dying, Losing
from tests.shared_stores import ingest_only

BOTH = {("first", 0), ("first", 1), ("second", 0), ("second", 1)}
FIRST = {("first", 0), ("first", 1)}

pytestmark = NOISE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the traces of three runs, and ingest the first run."""
    for number, run in enumerate(("first", "second", "third")):
        (tmp_path / run).mkdir()
        for rank in range(2):
            text = json.dumps(trace(rank, 100.0 + 10 * number + rank))
            (tmp_path / run / f"rank{rank}.json").write_text(text)
    ingest_only(tmp_path / "first", tmp_path / "job.store", jobs=1)
    return tmp_path


def there(store: Path) -> set[tuple[str, int]]:
    """Return the (run, rank) pairs that have rows in the store."""
    with hta_sql.open(store, threads=1) as opened:
        rows = opened.sql("SELECT run, rank, count(*) FROM gpu_ops GROUP BY ALL").rows()
    assert all(count == 2 for *_, count in rows)
    return {(run, rank) for run, rank, _ in rows}


def check_the_next(folder: Path) -> None:
    """Check that two more ingests complete all runs and leave no orphaned file."""
    store = folder / "job.store"
    ingest_only(folder / "second", store, jobs=1)
    assert there(store) == BOTH
    ingest_only(folder / "third", store, jobs=1)
    named = read_manifest(store).named_files()
    assert {p.relative_to(store).as_posix() for p in store.glob("tables/**/*.*")} == named
    assert not list(store.rglob(".*.partial"))
    assert not (store / "unfinished").exists()


def lose(folder: Path, at: int) -> Losing:
    """Lose the task of rank 1 once, so that it is retried, and then always, so that it fails."""
    store = folder / "job.store"
    once = Losing(store, at)
    hta_sql.ingest(folder / "second", store, executor=once).close()
    assert there(store) == BOTH
    hta_sql.remove_runs(store, "second")
    with pytest.raises(hta_sql.TraceError, match=r"rank1\.json: KilledWorker") as caught:
        hta_sql.ingest(folder / "second", store, executor=Losing(store, at, 2))
    assert "The other 1 are in the store." in str(caught.value)
    assert there(store) == BOTH - {("second", 1)}
    check_the_next(folder)
    hta_sql.remove_runs(store, ["second", "third"])
    return once


@pytest.mark.slow(reason="faults")
def test_a_task_whose_result_is_lost(folder: Path) -> None:
    """If a task's result is lost, its unreferenced files are deleted by a later ingest."""
    assert "rename tables/*/run=*/rank=*/*.parquet" in lose(folder, 1000).operations


@pytest.mark.slow(reason="faults")
def test_a_task_is_lost_at_each_file_operation(folder: Path) -> None:
    """No rank is lost if a task is lost at any of its file operations."""
    for at in range(len(lose(folder, 1000).operations)):
        lose(folder, at)


def test_an_executor_that_gives_up(folder: Path) -> None:
    """If the scheduler is gone, an error says so, and ranks that were read are saved."""

    class GivesUp(Executor):
        """Executor that fails after one rank."""

        def submit(self, task: Any, /, *given: Any, **named: Any) -> Future[Any]:
            """Run the task of rank 0, and cancel the others."""
            future: Future[Any] = Future()
            if given[0].rank:
                future.cancel()
                future.set_running_or_notify_cancel()
            else:
                future.set_result(task(*given, **named))
            return future

    store = folder / "job.store"
    with pytest.raises(hta_sql.StoreError, match="scheduler is gone"):
        hta_sql.ingest(folder / "second", store, executor=GivesUp())
    assert there(store) == FIRST
    check_the_next(folder)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Start a Dask cluster with two worker processes, which are replaced if they die."""
    distributed = pytest.importorskip("distributed")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as running:
            yield running


@pytest.fixture(params=[0, 1], ids=["no retry", "retry"])
def executor(request: pytest.FixtureRequest, cluster: Any) -> Iterator[tuple[Executor, bool]]:
    """Return a Dask executor and whether it retries the tasks of a dead worker."""
    from distributed import Client  # noqa: PLC0415 - an extra

    cluster.scheduler.allowed_failures = request.param
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client.get_executor(pure=False), bool(request.param)


@pytest.mark.slow(reason="faults")
@pytest.mark.parametrize("always", [False, True], ids=["once", "always"])
@pytest.mark.parametrize("stage", READING)
def test_a_dask_worker_dies_at_a_stage_of_an_ingest(
    stage: str, always: bool, folder: Path, executor: tuple[Executor, bool]
) -> None:
    """If one worker dies, the ingest succeeds; a trace that kills every worker is named."""
    store, mark = folder / "job.store", None if always else folder / "mark"
    dying = Dying(executor[0], stage, mark, 1)
    if always:
        with pytest.raises(hta_sql.TraceError, match=r"rank1\.json: KilledWorker"):
            hta_sql.ingest(folder / "second", store, executor=dying)
    else:
        hta_sql.ingest(folder / "second", store, executor=dying).close()
    assert there(store) == (BOTH - {("second", 1)} if always else BOTH)
    check_the_next(folder)


@pytest.mark.slow(reason="faults")
@pytest.mark.parametrize("stage", READING)
def test_a_dask_worker_dies_at_a_stage_of_a_shard(
    stage: str, folder: Path, executor: tuple[Executor, bool]
) -> None:
    """A shard whose worker dies is invisible until the shard is ingested again and published."""
    store = folder / "job.store"
    with pytest.raises(hta_sql.TraceError, match=r"rank1\.json: KilledWorker"):
        hta_sql.ingest_shard(
            folder / "second", store, shard=(1, 1), executor=Dying(executor[0], stage, None, 1)
        )
    assert there(store) == FIRST
    dying = Dying(executor[0], stage, folder / "mark", 1)
    hta_sql.ingest_shard(folder / "second", store, shard=(1, 1), executor=dying)
    hta_sql.publish(store).close()
    assert there(store) == BOTH
    assert not read_shards(hta_sql.store.disk.folder.store_folder(store))
    check_the_next(folder)


@pytest.mark.slow(reason="faults")
@pytest.mark.parametrize("when", ["a result", "publish"])
def test_all_dask_workers_die_when_results_are_there(
    when: str, folder: Path, executor: tuple[Executor, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ingest succeeds if all workers die after the first result or while it is published."""
    store = folder / "job.store"
    kill = killer(executor[0])

    def publish(*given: Any) -> None:
        kill()
        real(*given)

    real = materialize.publish
    if when == "publish":
        monkeypatch.setattr(ingest_target, "publish", publish)
    hta_sql.ingest(
        folder / "second",
        store,
        executor=executor[0],
        progress=lambda _r, done, _t: kill() if when == "a result" and done == 1 else None,
    ).close()
    assert there(store) == BOTH
    check_the_next(folder)


@pytest.mark.slow(reason="faults")
@pytest.mark.parametrize("always", [False, True], ids=["once", "always"])
@pytest.mark.parametrize("stage", ASKING)
def test_a_dask_worker_dies_at_a_stage_of_a_question(
    stage: str,
    always: bool,
    folder: Path,
    executor: tuple[Executor, bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If a worker dies, a query returns correct rows or raises an error that says so."""
    monkeypatch.setattr(partitions, "LEAST_EVENTS", 1)
    store = folder / "job.store"
    ingest_only(folder / "second", store, jobs=1)
    dying = Dying(executor[0], stage, None if always else folder / "mark", None)
    with hta_sql.open(store) as opened:
        whole = opened.run("temporal_breakdown").rows()
        if always or not executor[1]:
            with pytest.raises(hta_sql.QueryError, match="A worker failed: KilledWorker"):
                opened.run("temporal_breakdown", executor=dying)
        else:
            assert opened.run("temporal_breakdown", executor=dying).rows() == whole
        assert opened.run("temporal_breakdown", executor=executor[0]).rows() == whole
    assert there(store) == BOTH
    check_the_next(folder)


def killer(executor: Executor) -> Callable[[], None]:
    """Return a function that kills all workers."""

    def kill() -> None:
        client = executor._client  # type: ignore[attr-defined]
        client.run(os._exit, 1, on_error="ignore")

    return kill
