"""A Dask cluster on this machine as the executor; its workers die."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql.ingestion.running.executors import executor_for

if TYPE_CHECKING:
    from tests.cli.conftest import Cli
    from tests.safety.conftest import BusyTimes, WriteTraces

distributed = pytest.importorskip("distributed")
dask_config = pytest.importorskip("dask.config")

pytestmark = [
    # Dask's own threads and sockets end after the test that used them.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

DEADLY = Path(__file__).parent / "deadly"
DURATIONS = {rank: 100.0 + rank for rank in range(6)}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes of a thread each, in which some names of traces kill; new ones follow."""
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
    """What follows ``--executor``."""
    return str(cluster.scheduler_address).replace("tcp://", "dask://")


def test_the_command_line(
    cluster: Any, cli: Cli, write_traces: WriteTraces, tmp_path: Path, busy_times: BusyTimes
) -> None:
    """``--executor dask://HOST:PORT`` reads on the cluster."""
    store = tmp_path / "job.store"
    traces = write_traces(DURATIONS)
    done = cli("ingest", traces, "-o", store, "--executor", address_of(cluster))
    assert done.code == 0, done.err
    assert "Read 6 ranks" in done.err
    assert busy_times(store) == DURATIONS


def test_a_worker_that_is_killed_costs_nothing(
    cluster: Any, write_traces: WriteTraces, tmp_path: Path, busy_times: BusyTimes
) -> None:
    """Its tasks run again elsewhere."""
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


def killer(cluster: Any) -> Callable[[], None]:
    """Make what ends a worker process at once."""

    def kill() -> None:
        with distributed.Client(cluster) as client, suppress(Exception):
            name = next(iter(client.scheduler_info()["workers"]))
            client.run(os._exit, 1, workers=[name], on_error="ignore")
        time.sleep(0.1)

    return kill


@pytest.mark.slow
def test_a_trace_that_kills_every_worker_is_named(
    cluster: Any, write_traces: WriteTraces, tmp_path: Path, busy_times: BusyTimes
) -> None:
    """The others land, also those that were on a worker when it died."""
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


def test_no_scheduler_there(cli: Cli, write_traces: WriteTraces, tmp_path: Path) -> None:
    """The error names the address; an unknown executor says which there are."""
    traces = write_traces({0: 1.0})
    out = tmp_path / "job.store"
    with dask_config.set({"distributed.comm.timeouts.connect": "0.3s"}):
        done = cli("ingest", traces, "-o", out, "--executor", "dask://127.0.0.1:9")
    assert done.code == 1
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in done.err
    assert (
        "use processes or dask://HOST:PORT"
        in cli("ingest", traces, "-o", out, "--executor", "ray").err
    )
