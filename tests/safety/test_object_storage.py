"""Traces and stores at URLs, in memory and on an S3 server in this process."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fsspec
import pytest

import hta_sql
from hta_sql.store.catalog import build
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.manifest import MANIFEST, manifest_content, read_manifest
from tests.safety.conftest import busy_times_of, trace_of

if TYPE_CHECKING:
    from tests.cli.conftest import Cli
    from tests.safety.conftest import BusyTimes

DURATIONS = {rank: 100.0 + rank for rank in range(3)}


@pytest.fixture
def memory() -> Iterator[str]:
    """Return the URL of an in-memory bucket."""
    yield "memory://bucket"
    fsspec.filesystem("memory").store.clear()


@pytest.fixture(scope="module")
def s3_server() -> Iterator[str]:
    """Start an S3 server; yield its URL."""
    s3fs = pytest.importorskip("s3fs")
    # A cached instance keeps the endpoint that was set when it was created.
    s3fs.S3FileSystem.clear_instance_cache()
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def s3(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Create a bucket on the S3 server, configure the environment, and return the bucket's URL."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    fs = fsspec.filesystem("s3")
    bucket = f"bucket-{os.getpid()}"
    if not fs.exists(bucket):
        fs.mkdir(bucket)
    return f"s3://{bucket}"


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.slow(reason="processes"))])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Return the URL of each kind of bucket in turn, and use an empty catalog cache."""
    use_cache(monkeypatch, tmp_path / "cache")
    return str(request.getfixturevalue(request.param))


def use_cache(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Use a separate folder as the cache."""
    folder.mkdir(exist_ok=True)
    monkeypatch.setattr(build, "cache_folder", lambda _: folder)


def put_traces(folder: str, durations: dict[int, float]) -> str:
    """Upload one trace with one kernel per rank, and return the URL of their folder."""
    fs, top = fsspec.url_to_fs(folder)
    for rank, duration in durations.items():
        fs.pipe_file(f"{top}/rank{rank}.json", json.dumps(trace_of(rank, duration)).encode())
    return folder


def test_traces_at_a_url(bucket: str, tmp_path: Path, busy_times: BusyTimes) -> None:
    """Traces at a URL are ingested into a local store; unchanged ones are not read again."""
    traces, store = put_traces(f"{bucket}/a/job", DURATIONS), tmp_path / "job.store"
    hta_sql.ingest(traces, store).close()
    assert busy_times(store) == DURATIONS
    put_traces(traces, {1: 500.0})
    with hta_sql.ingest(traces, store) as opened:
        assert opened.ingested
        assert [result.rank for result in opened.ingested.results] == [1]
    assert busy_times(store) == {**DURATIONS, 1: 500.0}


def test_a_store_that_is_opened_twice(memory: str) -> None:
    """A store at a URL can be opened twice in one process."""
    traces, store = put_traces(f"{memory}/twice/job", DURATIONS), f"{memory}/twice/job.store"
    with hta_sql.ingest(traces, store) as first, hta_sql.open(store) as second:
        assert busy_times_of(first) == busy_times_of(second) == DURATIONS


def test_a_store_at_a_url(bucket: str, busy_times: BusyTimes) -> None:
    """A store at a URL can be written, opened, updated, and queried in the sandbox."""
    traces, store = put_traces(f"{bucket}/b/job", DURATIONS), f"{bucket}/b/job.store"
    with hta_sql.ingest(traces, store) as opened:
        assert busy_times_of(opened) == DURATIONS
    put_traces(traces, {1: 500.0})
    hta_sql.ingest(traces, store).close()
    assert busy_times(store) == {**DURATIONS, 1: 500.0}
    with hta_sql.open(store, safe=True) as opened:
        assert opened.sql("SELECT count(*) FROM gpu_ops").rows() == [(3,)]
        with pytest.raises(hta_sql.QueryError):
            opened.sql("FROM read_text('/etc/hostname')").rows()
    # Replaced files are deleted by the ingest after the next, as in a local store.
    put_traces(traces, {1: 600.0})
    hta_sql.ingest(traces, store).close()
    files = [name for name in store_folder(store).files("tables") if "/rank=1/" in name]
    assert len(files) == 2 * len(read_manifest(store).entries[1].files)


def test_shards_at_a_url(bucket: str, busy_times: BusyTimes) -> None:
    """Jobs that ingest shards of one store need to share nothing but a bucket."""
    traces, store = put_traces(f"{bucket}/c/job", DURATIONS), f"{bucket}/c/job.store"
    for number in (1, 2):
        hta_sql.ingest_shard(traces, store, shard=(number, 2))
    hta_sql.publish(store, expect=2).close()
    assert busy_times(store) == DURATIONS


def test_the_command_line(memory: str, cli: Cli) -> None:
    """Commands accept URLs of traces and stores."""
    traces, store = put_traces(f"{memory}/d/job", DURATIONS), f"{memory}/d/job.store"
    assert cli("ingest", traces, "-o", store).code == 0
    done = cli("sql", store, "SELECT count(*) AS n FROM gpu_ops", "--format", "csv")
    assert done.out == "n\n3\n"
    cli("list", f"{memory}/none.store").fails(1, f"No store at '{memory}/none.store'")


def test_unchanged_traces_cost_one_listing(
    s3: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One listing with the size and ETag of every trace is enough to see that nothing changed."""
    traces = put_traces(f"{s3}/f/job", dict.fromkeys(range(20), 100.0))
    hta_sql.ingest(traces, tmp_path / "job.store").close()
    requests = counted_requests(monkeypatch)
    hta_sql.ingest(traces, tmp_path / "job.store").close()
    counts = requests()
    assert "get_object" not in counts
    assert sum(counts.values()) <= 4, counts


def test_opening_a_large_store_reads_two_objects(
    s3: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Opening a store of 1,000 ranks without a cache reads only its manifest and its catalog."""
    store = f"{s3}/e/job.store"
    use_cache(monkeypatch, tmp_path / "cache")
    hta_sql.ingest(put_traces(f"{s3}/e/job", {0: 100.0}), store).close()
    manifest = read_manifest(store)
    more = [replace(manifest.entries[0], rank=rank) for rank in range(1000)]
    store_folder(store).replace(MANIFEST, manifest_content(manifest.with_entries(more)))
    requests = counted_requests(monkeypatch)
    build.write_catalog(store_folder(store))
    # s3fs requests the size of an object before the object itself. A catalog also contains the user
    # analyses of the store; to find that there are none, s3fs lists at most one key.
    write = {"head_object": 2, "get_object": 1, "put_object": 1, "list_objects_v2": 1}
    assert requests() == write
    use_cache(monkeypatch, tmp_path / "new-cache")
    with hta_sql.open(store) as opened:
        assert len(opened.ranks()) == 1000
    assert requests() == {"head_object": 2, "get_object": 2}
    hta_sql.open(store).close()
    assert requests() == {"head_object": 1, "get_object": 1}


def counted_requests(monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, int]]:
    """Return a function that counts the S3 requests of each kind since its last call."""
    import s3fs  # noqa: PLC0415 - an extra

    counts: Counter[str] = Counter()
    call = s3fs.S3FileSystem._call_s3

    async def counting(self: Any, method: str, *arguments: Any, **options: Any) -> Any:
        counts[method] += 1
        return await call(self, method, *arguments, **options)

    def counted() -> dict[str, int]:
        now = dict(counts)
        counts.clear()
        return now

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", counting)
    return counted
