"""Tests of HTA's counter methods, and of traces with added counter tracks."""

from __future__ import annotations

import gzip
import inspect
import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import hta_sql
from hta_sql.errors import ParameterError, RankError, TraceError
from hta_sql.hta.trace_analysis import TimeSeriesTypes, TraceAnalysis
from hta_sql.overlay.counters import write_counters
from hta_sql.synthetic import Job, JobSpec, write_job

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNATURES = {
    "get_queue_length_time_series": ["ranks"],
    "get_queue_length_series": ["ranks"],
    "get_queue_length_summary": ["ranks"],
    "get_queue_length_summary_from_time_series": ["queue_length_dict"],
    "get_time_spent_blocked_on_full_queue": ["queue_length_dict", "max_queue_length"],
    "get_memory_bw_time_series": ["ranks"],
    "get_memory_bw_summary": ["ranks"],
    "generate_trace_with_counters": ["time_series", "ranks", "output_suffix"],
}
DESCRIBED = ["count", "mean", "std", "min", "25%", "50%", "75%", "max"]
TRACES = Path(__file__).parent / "traces"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Write a job of two ranks whose clocks start at different times."""
    spec = JobSpec(ranks=2, steps=3, layers=2, clock_offsets_ns={1: 1_234_567})
    return write_job(tmp_path_factory.mktemp("job") / "traces", spec)


@pytest.fixture(scope="module")
def analysis(job: Job) -> Iterator[TraceAnalysis]:
    """Open the job with HTA's class."""
    with TraceAnalysis(trace_dir=job.files[0].parent) as opened:
        yield opened


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceAnalysis]:
    """Ingest a rank with three kinds of copies and a rank without device activity.

    One copy has no bandwidth.
    """
    folder = tmp_path_factory.mktemp("copies")
    shutil.copy(TRACES / "copies_at_once.json", folder / "rank0.json")
    shutil.copy(TRACES / "host_only.json", folder / "rank1.json")
    with TraceAnalysis(trace_dir=folder) as opened:
        yield opened


@pytest.mark.parametrize(("method", "parameters"), SIGNATURES.items())
def test_methods_take_htas_parameters(method: str, parameters: list[str]) -> None:
    """Positional parameters have HTA's names and order, and additional ones are keyword-only."""
    signature = inspect.signature(getattr(TraceAnalysis, method)).parameters
    by_position = [p.name for p in signature.values() if p.kind is not p.KEYWORD_ONLY]
    assert by_position[1:] == parameters


def test_queue_series_have_htas_columns_and_only_changes(analysis: TraceAnalysis) -> None:
    """Each rank has a data frame in µs, indexed by event id, that never repeats a value."""
    series: Any = analysis.get_queue_length_time_series(ranks=[0, 1])
    assert list(series) == [0, 1]
    for frame in series.values():
        assert list(frame.columns) == ["ts", "pid", "tid", "stream", "queue_length"]
        assert frame.index.name == "index"
        for _, points in frame.groupby("stream"):
            assert points["ts"].is_monotonic_increasing
            assert (points["queue_length"] >= 0).all()
            assert (points["queue_length"].diff() != 0).all()
            assert points["queue_length"].iloc[-1] == 0
    pd.testing.assert_frame_equal(analysis.get_queue_length_series()[0], series[0])


def test_queue_summaries_describe_the_series(analysis: TraceAnalysis) -> None:
    """The summary that SQL computes equals the one that pandas computes from the series."""
    series: Any = analysis.get_queue_length_time_series(ranks=[0, 1])
    before = {rank: frame.copy() for rank, frame in series.items()}
    summary: Any = analysis.get_queue_length_summary(ranks=[0, 1])
    assert summary is not None
    assert list(summary.columns) == [("queue_length", name) for name in DESCRIBED]
    described: Any = analysis.get_queue_length_summary_from_time_series(series)
    pd.testing.assert_frame_equal(summary, described, check_index_type=False)
    for rank, frame in series.items():
        pd.testing.assert_frame_equal(frame, before[rank])  # HTA adds a column to the frame


def test_every_stream_with_a_full_queue_has_a_row(analysis: TraceAnalysis) -> None:
    """Each stream with a full queue has a row, whereas HTA returns one row per rank (Q33)."""
    series: Any = analysis.get_queue_length_time_series(ranks=[0, 1])
    full: Any = analysis.get_time_spent_blocked_on_full_queue(series, max_queue_length=1)
    assert list(full.columns) == [
        "rank",
        "stream",
        "duration_at_max_queue_length",
        "relative_duration_at_max_queue_length",
    ]
    streams = {(rank, stream) for rank, frame in series.items() for stream in frame["stream"]}
    assert {tuple(pair) for pair in full[["rank", "stream"]].to_numpy()} == streams
    assert len(streams) > 2
    for row in full.itertuples():
        points = series[row.rank][series[row.rank]["stream"] == row.stream]
        waiting = (points["ts"].shift(-1) - points["ts"])[points["queue_length"] > 0].sum()
        assert row.duration_at_max_queue_length == pytest.approx(waiting)
        assert 0 < row.relative_duration_at_max_queue_length < 1
    one = {0: series[0][series[0]["stream"] == 7]}
    assert len(analysis.get_time_spent_blocked_on_full_queue(one, 1)) == 1
    assert analysis.get_time_spent_blocked_on_full_queue(series).empty
    assert analysis.get_time_spent_blocked_on_full_queue({}).empty


def test_bandwidth_series_and_summary_have_htas_columns(copies: TraceAnalysis) -> None:
    """Units are µs and GB/s, and an unknown bandwidth is NaN and not in the summary."""
    series: Any = copies.get_memory_bw_time_series(ranks=[0, 1])
    assert list(series) == [0]
    assert list(series[0].columns) == ["ts", "pid", "name", "memory_bw_gbps"]
    htod = series[0][series[0]["name"] == "Memcpy HtoD"]
    assert list(zip(htod["ts"], htod["memory_bw_gbps"], strict=True)) == [
        *((0.0, 1.0), (5.0, 1.1), (10.0, 0.1), (15.0, 0.1), (20.0, 0.0))
    ]
    assert series[0][series[0]["name"] == "Memcpy DtoH"]["memory_bw_gbps"].isna().tolist() == [
        True,
        False,
    ]
    summary: Any = copies.get_memory_bw_summary()
    assert summary is not None
    assert list(summary.columns) == [("memory_bw_gbps", name) for name in DESCRIBED]
    assert list(summary.index) == [(0, "Memcpy HtoD"), (0, "Memset")]
    assert summary["memory_bw_gbps", "count"].tolist() == [3, 1]


def test_a_host_without_a_device_has_no_series(copies: TraceAnalysis) -> None:
    """A rank without a device gives an empty result as in HTA, but an unknown rank is an error."""
    assert copies.get_queue_length_time_series([1]) == {}
    assert copies.get_queue_length_summary([1]) is None
    assert copies.get_memory_bw_time_series([1]) == {}
    assert copies.get_memory_bw_summary([1]) is None
    assert copies.get_queue_length_summary_from_time_series({}) is None
    with pytest.raises(RankError, match="No rank 7"):
        copies.get_memory_bw_summary([7])


def load(path: str) -> dict[str, Any]:
    """Parse a gzip-compressed trace with exact decimal numbers."""
    trace: dict[str, Any] = json.loads(
        gzip.decompress(Path(path).read_bytes()), parse_float=Decimal
    )
    return trace


def test_a_trace_with_counters_is_the_trace_and_its_counters(
    job: Job, analysis: TraceAnalysis, tmp_path: Path
) -> None:
    """The written trace has all original events, plus counters on the file's own clock."""
    written = analysis.generate_trace_with_counters(ranks=[1], output_dir=tmp_path)
    assert list(written) == [1]
    source = load(str(job.files[1]))
    result = load(written[1])
    events = source.pop("traceEvents")
    assert result["traceEvents"][: len(events)] == events
    counters = result.pop("traceEvents")[len(events) :]
    assert result == source
    assert {event["ph"] for event in counters} == {"C"}
    device = {event["pid"] for event in events if event.get("cat") == "kernel"}
    assert {event["pid"] for event in counters} == device

    ((zero,),) = analysis.store.sql("SELECT first_ts - offset_ns FROM ranks WHERE rank = 1").rows()
    queue = analysis.store.run("queue_length_series", ranks=[1]).arrow().to_pylist()
    wanted = [
        {
            "ph": "C",
            "name": "Queue Length",
            "ts": Decimal(row["ts"] + zero) / 1000,
            "pid": row["device"],
            "id": row["stream"],
            "args": {"Queue Length": row["queue_length"]},
        }
        for row in queue
    ]
    assert [event for event in counters if event["name"] == "Queue Length"] == wanted
    # These are the times of launches, kernels and copies in the trace.
    kinds = ("cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset")
    timed = [event for event in events if event.get("cat") in kinds]
    assert {event["ts"] for event in wanted} <= {event["ts"] for event in timed}
    ends = {e["ts"] + d for e in timed for d in (0, e["dur"]) if e["cat"] == "gpu_memcpy"}
    copied = [event for event in counters if event["name"].startswith("Memcpy")]
    assert {event["ts"] for event in copied} <= ends
    assert {next(iter(event["args"])) for event in copied} == {"Memcpy BW"}


def test_counters_lie_beside_the_trace_and_are_no_input(tmp_path: Path) -> None:
    """Files with counters have HTA's name, which the next ingest ignores."""
    for rank in (0, 1):
        shutil.copy(TRACES / "copies_at_once.json", tmp_path / f"rank{rank}.json")
    with TraceAnalysis(trace_dir=tmp_path) as analysis:
        written = analysis.generate_trace_with_counters(
            TimeSeriesTypes.MEMCPY_BANDWIDTH, ranks=[0, 1]
        )
    assert written == {rank: str(tmp_path / f"rank{rank}_with_counters.json.gz") for rank in (0, 1)}
    counters = [event for event in load(written[0])["traceEvents"] if event["ph"] == "C"]
    # A missing bandwidth is computed. A copy without known bytes only has an end.
    memset = [e["args"]["Memcpy BW"] for e in counters if e["name"] == "Memset"]
    assert memset == [2, 2, 0]
    assert [e["args"] for e in counters if e["name"] == "Memcpy DtoH"] == [{"Memcpy BW": 0}]
    with hta_sql.ingest(tmp_path, tmp_path / "again.store") as store:
        assert store.ranks() == [0, 1]
        assert len(store.runs()) == 1


def test_another_suffix_is_taken_with_a_warning(
    copies: TraceAnalysis, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A different suffix causes a warning, because an ingest would read the file as a trace."""
    written = copies.generate_trace_with_counters(output_suffix="_more", output_dir=tmp_path)
    assert written == {0: str(tmp_path / "rank0_more.json.gz")}
    assert "will be read as traces" in caplog.text
    written = copies.generate_trace_with_counters(output_suffix="", output_dir=tmp_path)
    assert written == {0: str(tmp_path / "rank0_with_counters.json.gz")}


def test_series_are_flags(copies: TraceAnalysis, tmp_path: Path) -> None:
    """A string instead of flags, as on the command line, is an error that lists the valid flags."""
    wanted: Any = "queue"
    with pytest.raises(ParameterError, match=r"TimeSeriesTypes\.QUEUE_LENGTH.* not 'queue'"):
        copies.generate_trace_with_counters(wanted, output_dir=tmp_path)
    assert list(tmp_path.glob("*.gz")) == []


def test_a_changed_trace_is_refused(tmp_path: Path) -> None:
    """A trace that changed since it was ingested is an error."""
    source = tmp_path / "rank0.json"
    shutil.copy(TRACES / "copies_at_once.json", source)
    with hta_sql.ingest(tmp_path, tmp_path / "job.store") as store:
        trace = json.loads(source.read_text(encoding="utf-8"))
        trace["traceEvents"].append(trace["traceEvents"][0])
        source.write_text(json.dumps(trace), encoding="utf-8")
        with pytest.raises(TraceError, match="7 events, but had 6 when it was ingested"):
            write_counters(store, store.runs()[0], 0)
        with pytest.raises(RankError, match="No rank 5"):
            write_counters(store, store.runs()[0], 5)
        with pytest.raises(
            ParameterError, match="Unknown series 'power'; available: queue, memory"
        ):
            write_counters(store, store.runs()[0], 0, ["power"])
    assert not list(tmp_path.glob("*_with_counters*"))


@pytest.mark.parametrize("name", ["broken_event.json", "bare_list.json", "cut_off.json"])
def test_broken_traces_get_counters_too(name: str, tmp_path: Path) -> None:
    """Traces that are broken, truncated or a bare list give valid JSON with counters."""
    whole = json.loads((TRACES / "queue_ties.json").read_text(encoding="utf-8"))
    text = json.dumps(whole)
    broken = {
        "broken_event.json": text.replace('"second", "pid"', '"second" "pid"'),
        "bare_list.json": json.dumps(whole["traceEvents"]),
        "cut_off.json": text[: text.index("starts_with_its_launch")],
    }
    (tmp_path / f"rank0_{name}").write_text(broken[name], encoding="utf-8")
    with TraceAnalysis(trace_dir=tmp_path) as analysis:
        written = analysis.generate_trace_with_counters()
    result: Any = load(written[0])
    events = result if isinstance(result, list) else result["traceEvents"]
    assert isinstance(result, list) == (name == "bare_list.json")
    counters = [event for event in events if event["ph"] == "C"]
    originals = [event for event in events if event["ph"] != "C"]
    assert counters
    assert len(originals) == len(whole["traceEvents"]) - (name != "bare_list.json")
    # The broken event is the kernel that would have waited at the same time as another.
    longest = max(event["args"]["Queue Length"] for event in counters)
    assert longest == (1 if name == "broken_event.json" else 2)
