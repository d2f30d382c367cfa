"""Each rank ingests its own trace, and the last rank publishes the run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import fsspec
import pytest

import hta_sql
from hta_sql.ingestion import recorded_rank
from hta_sql.ingestion.ingest import ingest_shard
from hta_sql.ingestion.options import ShardOptions
from hta_sql.ingestion.recorded_rank import PublishedRanks, RecordedRank, ingest_recorded
from hta_sql.store.catalog.last_shard import publish_last
from hta_sql.store.disk import remote_lock
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.locks import store_lock
from hta_sql.store.disk.reports import IngestReport
from hta_sql.store.disk.shard_files import Shard, write_shard
from tests.safety.conftest import busy_times_of

if TYPE_CHECKING:
    from tests.cli.conftest import Cli
    from tests.safety.conftest import BusyTimes, WriteTraces


@pytest.fixture
def memory() -> Iterator[str]:
    """Return the URL of an in-memory bucket."""
    yield "memory://recorded"
    fsspec.filesystem("memory").store.clear()


def together(recorded: list[RecordedRank]) -> list[PublishedRanks | None]:
    """Ingest ranks at the same time."""
    with ThreadPoolExecutor(len(recorded)) as pool:
        return list(pool.map(ingest_recorded, recorded))


def ranks_in(traces: Path, store: Path, durations: dict[int, float]) -> list[RecordedRank]:
    """Return the traces of ranks of one run."""
    size = len(durations)
    return [
        RecordedRank(str(traces / f"rank{rank}.json"), str(store), "job", rank, size)
        for rank in durations
    ]


def test_the_last_rank_publishes_the_run_once(
    write_traces: WriteTraces, tmp_path: Path, busy_times: BusyTimes
) -> None:
    """All ranks become visible at once, published by one of them."""
    durations = {0: 100.0, 1: 101.0, 2: 102.0}
    store = tmp_path / "job.store"
    done = together(ranks_in(write_traces(durations), store, durations))
    published = [one for one in done if one]
    assert published == [PublishedRanks([0, 1, 2], [], [])]
    assert busy_times(store) == durations
    assert not list(store.glob("shards/*"))


def test_two_ranks_may_publish_at_once(write_traces: WriteTraces, tmp_path: Path) -> None:
    """If two ranks see that the run is complete, one publishes it and the other has nothing to do."""
    traces, store = write_traces({0: 1.0, 1: 2.0}), tmp_path / "job.store"
    for number in (1, 2):
        hta_sql.ingest_shard(traces, store, run="job", shard=(number, 2))
    folder = store_folder(store)
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda n: publish_last(folder, "job", (n, 2), wait_s=60), (1, 2)))
    assert sum(report is not None for report in done) == 1


def test_missing_ranks_are_named_and_later_ones_are_added(
    write_traces: WriteTraces, tmp_path: Path, cli: Cli, busy_times: BusyTimes
) -> None:
    """After the timeout, the available ranks are published; a later rank publishes itself."""
    traces, store = write_traces({0: 1.0, 2: 3.0}), tmp_path / "job.store"
    options = ("-o", store, "--run", "job", "--world-size", "4", "--wait", "0")
    early = cli("ingest-rank", traces / "rank0.json", *options, "--rank", "0")
    assert early.code == 0
    assert "warning: run job: no trace of ranks 1-3 after 0 s" in early.err
    assert "Published run job (rank 0 of 4). Next: hta-sql advice " in early.err
    late = cli("ingest-rank", traces / "rank2.json", *options, "--rank", "2")
    assert "no trace of ranks 1, 3 after" in late.err
    assert "Published run job (ranks 0, 2 of 4)" in late.err
    assert busy_times(store) == {0: 1.0, 2: 3.0}


def test_a_rank_that_is_being_ingested_is_waited_for(
    write_traces: WriteTraces, tmp_path: Path
) -> None:
    """A rank that takes long is not missing, until its process ends without its trace."""
    traces, store = write_traces({0: 1.0}), tmp_path / "job.store"
    folder = store_folder(store)
    write_shard(folder, Shard("job", 2, 2, "writer-"))
    recorded = RecordedRank(str(traces / "rank0.json"), str(store), "job", 0, 2, wait_s=0)
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        with store_lock(folder, 0, "shards/.job.2-of-2.lock"):
            waiting = pool.submit(ingest_recorded, recorded)
            time.sleep(3)
            assert not waiting.done()
        assert waiting.result() == PublishedRanks([0], [1], [])
    assert time.monotonic() - began >= 3


def test_a_rank_that_died_at_a_url_is_not_waited_for_forever(
    write_traces: WriteTraces, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of a dead process at a URL stays; it counts until it has not been renewed for long."""
    monkeypatch.setattr(remote_lock, "STALE_S", 1.0)
    monkeypatch.setattr(remote_lock, "BEAT_S", 1.0)
    monkeypatch.setattr(remote_lock, "SETTLE_S", 0.1)
    folder = store_folder(memory)
    write_shard(folder, Shard("job", 2, 2, "writer-"))
    folder.replace("shards/.job.2-of-2.lock", b'{"holder": "process 1", "token": "x", "beats": 3}')
    trace = write_traces({0: 7.0}) / "rank0.json"
    done = ingest_recorded(RecordedRank(str(trace), memory, "job", 0, 2, wait_s=0))
    assert done == PublishedRanks([0], [1], [])


def test_recording_again_replaces_the_run_when_all_ranks_are_there(
    write_traces: WriteTraces, tmp_path: Path, busy_times: BusyTimes
) -> None:
    """A second recording under the same name is never mixed with the first one."""
    store, first, second = tmp_path / "job.store", {0: 1.0, 1: 2.0}, {0: 3.0, 1: 4.0}
    together(ranks_in(write_traces(first), store, first))
    again = ranks_in(write_traces(second, "again"), store, second)
    with ThreadPoolExecutor(1) as pool:
        early = pool.submit(ingest_recorded, again[0])
        time.sleep(2)
        assert busy_times(store) == first
        assert ingest_recorded(again[1]) == PublishedRanks([0, 1], [], [])
        assert early.result() is None
    assert busy_times(store) == second


def test_other_runs_are_not_published(write_traces: WriteTraces, tmp_path: Path, cli: Cli) -> None:
    """The last rank of a run does not publish a part of another run that is being recorded."""
    traces, store = write_traces({0: 1.0, 1: 2.0}), tmp_path / "job.store"
    hta_sql.ingest_shard(traces, store, run="other", shard=(1, 2))
    ingest_recorded(RecordedRank(str(traces / "rank0.json"), str(store), "job", 0, 1))
    with hta_sql.open(store) as opened:
        assert opened.runs() == ["job"]
    third = cli("publish", store, "--run", "third")
    assert "Nothing to publish" in third.err
    assert "missing" not in third.err
    other = cli("publish", store, "--run", "other")
    assert "warning: 1 shard missing: other.2-of-2" in other.err
    with hta_sql.open(store) as opened:
        assert opened.runs() == ["job", "other"]


def test_an_unreadable_trace_does_not_hold_back_the_other_ranks(
    write_traces: WriteTraces, tmp_path: Path, cli: Cli, busy_times: BusyTimes
) -> None:
    """The rank of a corrupt trace fails; the run is published without it."""
    traces, store = write_traces({0: 1.0}), tmp_path / "job.store"
    (traces / "rank1.json").write_text('{"distributedInfo": {"rank": 1}, "traceEvents": 7}')
    options = ("-o", store, "--run", "job", "--world-size", "2", "--wait", "0")
    broken = cli(
        *("ingest-rank", traces / "rank1.json", *options, "--rank", "1", "--afterwards", "delete")
    )
    assert broken.code == 1
    assert "rank1.json" in broken.err
    assert (traces / "rank1.json").exists()
    done = cli("ingest-rank", traces / "rank0.json", *options, "--rank", "0")
    assert done.code == 0
    assert "Published run job (rank 0 of 2)" in done.err
    assert busy_times(store) == {0: 1.0}


def test_the_failure_of_another_rank_is_reported(
    write_traces: WriteTraces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rank that publishes names the traces of all ranks that could not be read."""

    def strictly(options: ShardOptions, *, is_whole: bool) -> IngestReport:
        return ingest_shard(replace(options, strict=True), is_whole=is_whole)

    monkeypatch.setattr(recorded_rank, "ingest_shard", strictly)
    traces, store = write_traces({0: 1.0}), tmp_path / "job.store"
    (traces / "rank1.json").write_text('{"distributedInfo": {"rank": 1}, "traceEvents": [')
    first, second = ranks_in(traces, store, {0: 1.0, 1: 0.0})
    with ThreadPoolExecutor(1) as pool:
        broken = pool.submit(ingest_recorded, second)
        time.sleep(2)
        done = ingest_recorded(first)
        with pytest.raises(hta_sql.TraceError, match=r"rank1\.json"):
            broken.result()
    assert done
    assert (done.ranks, done.missing) == ([0], [])
    assert "rank1.json" in done.failures[0]


def test_the_trace_is_kept_or_deleted(write_traces: WriteTraces, tmp_path: Path, cli: Cli) -> None:
    """``--afterwards delete`` removes the file of the trace once it is ingested."""
    traces = write_traces({0: 1.0})
    given = ("ingest-rank", traces / "rank0.json", "--run", "job", "--rank", "0")
    for number, (afterwards, exists) in enumerate({"keep": True, "delete": False}.items()):
        place = ("-o", tmp_path / f"{number}.store", "--world-size", "1")
        assert cli(*given, *place, "--afterwards", afterwards).code == 0
        assert (traces / "rank0.json").exists() == exists


def test_the_trace_is_moved_into_a_store_at_a_url(write_traces: WriteTraces, memory: str) -> None:
    """``--afterwards move`` uploads the trace, and the store names its new location."""
    trace = write_traces({0: 7.0}) / "rank0.json"
    ingest_recorded(RecordedRank(str(trace), memory, "job", 0, 1, afterwards="move"))
    assert not trace.exists()
    assert fsspec.filesystem("memory").exists("/recorded/traces/job/rank0.json")
    with hta_sql.open(memory) as opened:
        assert busy_times_of(opened) == {0: 7.0}


def test_a_trace_that_could_not_be_ingested_stays(
    write_traces: WriteTraces, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command of a failed ingest can be repeated, because its trace is deleted last."""

    def full(*_: object, **__: object) -> None:
        raise hta_sql.StoreError("No space left on device")

    recorded = RecordedRank(
        str(write_traces({0: 7.0}) / "rank0.json"), memory, "job", 0, 1, afterwards="move"
    )
    with monkeypatch.context() as patched:
        patched.setattr(recorded_rank, "ingest_shard", full)
        with pytest.raises(hta_sql.StoreError):
            ingest_recorded(recorded)
    assert ingest_recorded(recorded) == PublishedRanks([0], [], [])
    assert not Path(recorded.trace).exists()


def test_the_rank_is_the_one_that_is_given(
    write_traces: WriteTraces, tmp_path: Path, busy_times: BusyTimes
) -> None:
    """The rank of the caller takes precedence over the name of the file and its content."""
    trace = write_traces({5: 7.0}) / "rank5.json"
    store = str(tmp_path / "job.store")
    ingest_recorded(RecordedRank(str(trace), store, "job", 3, 4, role="trainer", wait_s=0))
    assert busy_times(store) == {3: 7.0}
    with hta_sql.open(store) as opened:
        assert [row["role"] for row in opened.table("ranks").arrow().to_pylist()] == ["trainer"]


def test_the_advice_is_printed_by_the_rank_that_publishes(
    write_traces: WriteTraces, tmp_path: Path, cli: Cli
) -> None:
    """``--advice`` writes the recommendations to stdout."""
    trace = write_traces({0: 7.0}) / "rank0.json"
    given = ("ingest-rank", trace, "-o", tmp_path / "job.store", "--run", "job", "--rank", "0")
    done = cli(*given, "--world-size", "1", "--advice")
    assert done.code == 0
    assert "recommendation" in done.out + done.err


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--rank", "2"), "Rank 2 of 2"),
        (("--run", "../job"), "Run name '../job'"),
        (("--role", "a=b"), "Role 'a=b'"),
    ],
)
def test_wrong_options_are_refused(
    write_traces: WriteTraces, tmp_path: Path, cli: Cli, wrong: tuple[str, str], message: str
) -> None:
    """A wrong rank, run or role is an error that names it, and nothing is written."""
    trace = write_traces({0: 7.0}) / "rank0.json"
    given = {"--rank": "0", "--run": "job", "--role": "trainer"} | dict([wrong])
    named = [text for pair in given.items() for text in pair]
    place = ("-o", tmp_path / "job.store", "--world-size", "2")
    cli("ingest-rank", trace, *place, *named).fails(1, message)
    assert not (tmp_path / "job.store").exists()


def test_a_missing_trace_is_an_error_at_once(tmp_path: Path, cli: Cli) -> None:
    """A path without a file does not wait for other ranks."""
    place = ("-o", tmp_path / "job.store", "--run", "job", "--rank", "0", "--world-size", "2")
    cli("ingest-rank", tmp_path / "no.json", *place).fails(1, "no.json")


def test_each_rank_of_a_machine_gets_a_share_of_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All ingests of a machine together use a quarter of its memory."""
    monkeypatch.setattr(recorded_rank, "memory_bytes", lambda: 64 << 30)
    limits = {}
    for ranks in ("", "1", "8", "1000", "eight"):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", ranks)
        limits[ranks] = recorded_rank._memory_limit()
    assert limits == {
        "": "16384MiB",
        "1": "16384MiB",
        "8": "2048MiB",
        "1000": "512MiB",
        "eight": "16384MiB",
    }
