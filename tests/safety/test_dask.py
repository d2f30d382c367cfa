"""A local Dask cluster runs queries and ingests, even if some of its workers die."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql.ingestion.running.executors import executor_for
from hta_sql.store.query import partitions
from tests.safety.conftest import trace_of
from tests.safety.dask_noise import NOISE

if TYPE_CHECKING:
    from tests.cli.conftest import Cli
    from tests.safety.conftest import BusyTimes, WriteTraces

distributed = pytest.importorskip("distributed")
dask_config = pytest.importorskip("dask.config")

pytestmark = NOISE

DEADLY = Path(__file__).parent / "deadly"
DURATIONS = {rank: 100.0 + rank for rank in range(6)}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Start a cluster of two workers, which die when they open certain traces."""
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        dask_config.set({"distributed.scheduler.allowed-failures": 1}),
    ):
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(DEADLY), *sys.path]))
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as running:
            yield running


def address_of(cluster: Any) -> str:
    """Return the address of the cluster as a value of ``--executor``."""
    return str(cluster.scheduler_address).replace("tcp://", "dask://")


def test_the_command_line(
    cluster: Any, cli: Cli, write_traces: WriteTraces, tmp_path: Path, busy_times: BusyTimes
) -> None:
    """``--executor dask://HOST:PORT`` reads traces on the cluster."""
    store = tmp_path / "job.store"
    traces = write_traces(DURATIONS)
    done = cli("ingest", traces, "-o", store, "--executor", address_of(cluster))
    assert done.code == 0, done.err
    assert "Read 6 ranks" in done.err
    assert busy_times(store) == DURATIONS


@pytest.mark.slow(reason="processes")
def test_a_worker_that_is_killed_costs_nothing(
    cluster: Any, write_traces: WriteTraces, tmp_path: Path, busy_times: BusyTimes
) -> None:
    """The tasks of a killed worker run again on a different worker."""
    store = tmp_path / "job.store"
    traces = write_traces(DURATIONS, events=20_000)
    kill = killer(cluster)
    with executor_for(address_of(cluster)) as executor:
        hta_sql.ingest(
            traces,
            store,
            executor=executor,
            progress=lambda _r, done, _t: kill() if done == 1 else None,
        ).close()
    assert sorted(busy_times(store)) == list(DURATIONS)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest two runs with known compute times, and return the store."""
    folder = tmp_path_factory.mktemp("asked")
    for run, ranks in (("b", range(4)), ("a", range(2))):
        for rank in ranks:
            trace = trace_of(rank, 100.0 + rank)
            (folder / f"{run}{rank}.json").write_text(json.dumps(trace))
        traces = {rank: str(folder / f"{run}{rank}.json") for rank in ranks}
        hta_sql.ingest(traces, folder / "job.store", run=run).close()
    return folder / "job.store"


def test_a_question_is_answered_by_the_cluster(
    cluster: Any, asked: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query on the cluster returns the same rows, row order and types as a local query."""
    monkeypatch.setattr(partitions, "LEAST_EVENTS", 2)
    command = ("run", asked, "launching_operators", "--format", "csv")
    done = cli(*command, "--executor", address_of(cluster))
    assert done.code == 0, done.err
    assert done.out == cli(*command).out
    assert len(done.out.splitlines()) == 7
    with (
        hta_sql.open(asked, threads=1) as store,
        executor_for(address_of(cluster)) as executor,
    ):
        scopes: tuple[dict[str, Any], ...] = ({}, {"runs": ["b"], "ranks": [1, 3]})
        for scope in scopes:
            expected = store.run("temporal_breakdown", **scope).arrow()
            found = store.run("temporal_breakdown", executor=executor, **scope)
            assert found.arrow().equals(expected)


@pytest.mark.slow(reason="processes")
def test_workers_that_do_not_see_the_store(cluster: Any, asked: Path, tmp_path: Path) -> None:
    """The error says if workers find no store or a different one at the path of the store."""
    with distributed.Client(cluster) as client, hta_sql.open(asked) as store:

        class Elsewhere(Executor):
            """Executor whose workers look for the store in a different folder."""

            def submit(self, task: Any, /, *given: Any, **named: Any) -> Any:
                there = [replace(one, root=str(tmp_path)) for one in given]
                return client.get_executor(pure=False).submit(task, *there, **named)

        with pytest.raises(hta_sql.StoreNotFoundError, match=r"found no store at .*shared file"):
            store.run("temporal_breakdown", executor=Elsewhere())
        shutil.copytree(asked, tmp_path, dirs_exist_ok=True)
        with (tmp_path / "manifest.json").open("a") as manifest:
            manifest.write("\n")  # as a later ingest would
        with pytest.raises(
            hta_sql.StoreError, match=r"differs from the store of the caller.*has an older copy"
        ):
            store.run("temporal_breakdown", executor=Elsewhere())


def killer(cluster: Any) -> Callable[[], None]:
    """Return a function that kills a worker process."""

    def kill() -> None:
        with distributed.Client(cluster) as client, suppress(Exception):
            name = next(iter(client.scheduler_info()["workers"]))
            client.run(os._exit, 1, workers=[name], on_error="ignore")
        time.sleep(0.1)

    return kill


@pytest.mark.slow(reason="processes")
def test_a_trace_that_kills_every_worker_is_named(
    cluster: Any, write_traces: WriteTraces, tmp_path: Path, busy_times: BusyTimes
) -> None:
    """A trace that kills every worker is named, and all other traces are stored."""
    folder = write_traces({**DURATIONS, 6: 1.0})
    (folder / "rank6.json").rename(folder / "dies6.json")
    paths = {rank: str(folder / f"rank{rank}.json") for rank in DURATIONS}
    paths[6] = str(folder / "dies6.json")
    store = tmp_path / "job.store"
    with (
        executor_for(address_of(cluster)) as executor,
        pytest.raises(hta_sql.TraceError) as caught,
    ):
        hta_sql.ingest(paths, store, executor=executor)
    first, second, last = str(caught.value).splitlines()
    assert first == "1 of 7 traces could not be ingested:"
    assert "dies6.json: KilledWorker" in second
    assert last == "The other 6 are in the store."
    assert busy_times(store) == DURATIONS


@pytest.mark.slow(reason="processes")
def test_no_scheduler_there(cli: Cli, write_traces: WriteTraces, tmp_path: Path) -> None:
    """The error names an address without a scheduler, or lists the valid executors."""
    traces = write_traces({0: 1.0})
    out = tmp_path / "job.store"
    with dask_config.set({"distributed.comm.timeouts.connect": "0.3s"}):
        done = cli("ingest", traces, "-o", out, "--executor", "dask://127.0.0.1:9")
    assert done.code == 1
    assert "Cannot connect to a Dask scheduler at tcp://127.0.0.1:9" in done.err
    assert (
        "use processes or dask://HOST:PORT"
        in cli("ingest", traces, "-o", out, "--executor", "ray").err
    )
