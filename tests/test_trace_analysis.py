"""TraceAnalysis: HTA's calls and frames; where its store lies; when a chart appears.

That its numbers are right is shown here against the truth of a simulated job, and against
HTA itself in parity/test_hta.py.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import hta_sql
from hta_sql import charts, trace_places
from hta_sql.errors import ParameterError, RankError, TraceNotFoundError
from hta_sql.synthetic import Job, JobSpec, write_job
from hta_sql.trace_analysis import TraceAnalysis

if TYPE_CHECKING:
    from collections.abc import Iterator

SPEC = JobSpec(ranks=2, steps=3, layers=2)

SIGNATURES = {
    "get_temporal_breakdown": ["visualize"],
    "get_gpu_kernel_breakdown": [
        "visualize",
        "duration_ratio",
        "num_kernels",
        "include_memory_kernels",
        "image_renderer",
    ],
    "get_idle_time_breakdown": [
        "ranks",
        "streams",
        "visualize",
        "visualize_pctg",
        "show_idle_interval_stats",
        "consecutive_kernel_delay",
    ],
    "get_comm_comp_overlap": ["visualize"],
    "get_cuda_kernel_launch_stats": [
        "ranks",
        "runtime_cutoff",
        "launch_delay_cutoff",
        "include_memory_events",
        "visualize",
    ],
}
"""HTA's parameters in HTA's order: calls by position work too."""


@pytest.fixture(scope="session")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A job of two ranks and three steps, and the truth about it."""
    return write_job(tmp_path_factory.mktemp("job") / "traces", SPEC)


@pytest.fixture(scope="module")
def analysis(job: Job) -> Iterator[TraceAnalysis]:
    """The job, opened."""
    with TraceAnalysis(trace_dir=job.files[0].parent) as opened:
        yield opened


def kernel(ts: float, dur: float, **more: Any) -> dict[str, Any]:
    """One kernel on stream 7 [µs]."""
    args = {"stream": 7, "device": 0}
    return {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "ts": ts, "dur": dur} | {
        "name": "gemm",
        "args": args,
        **more,
    }


def write_trace(folder: Path, name: str, events: list[dict[str, Any]], rank: int = 0) -> Path:
    """Write a trace that states its rank."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    trace = {"distributedInfo": {"rank": rank}, "traceEvents": events}
    path.write_text(json.dumps(trace), encoding="utf-8")
    return path


@pytest.mark.parametrize(("method", "parameters"), SIGNATURES.items())
def test_methods_take_htas_parameters(method: str, parameters: list[str]) -> None:
    """Names and order of the parameters are HTA's."""
    signature = inspect.signature(getattr(TraceAnalysis, method))
    assert list(signature.parameters)[1:] == parameters


def test_the_constructor_takes_htas_parameters() -> None:
    """trace_files, trace_dir and include_last_profiler_step come first; ours are keywords."""
    parameters = inspect.signature(TraceAnalysis).parameters
    by_position = [p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    assert by_position == ["trace_files", "trace_dir", "include_last_profiler_step"]


def test_temporal_breakdown_is_the_truth_in_microseconds(analysis: TraceAnalysis, job: Job) -> None:
    """Each rank has HTA's columns; times are those of the simulator, without the last step."""
    frame = analysis.get_temporal_breakdown()
    assert list(frame.columns) == [
        "rank",
        "idle_time(us)",
        "compute_time(us)",
        "non_compute_time(us)",
        "kernel_time(us)",
        "idle_time_pctg",
        "compute_time_pctg",
        "non_compute_time_pctg",
    ]
    assert job.truth is not None
    for row, truth in zip(frame.to_dict(orient="records"), job.truth.ranks, strict=True):
        want = truth.default.time
        assert row["rank"] == truth.rank
        assert row["idle_time(us)"] == want.idle_ns / 1000
        assert row["compute_time(us)"] == want.compute_ns / 1000
        assert row["non_compute_time(us)"] == want.non_compute_ns / 1000
        assert row["kernel_time(us)"] == want.span_ns / 1000
        assert row["idle_time_pctg"] == round(100 * want.idle_ns / want.span_ns, 2)


def test_the_last_profiler_step_is_included_on_request(job: Job) -> None:
    """include_last_profiler_step=True covers the whole trace."""
    with TraceAnalysis(
        trace_dir=job.files[0].parent, include_last_profiler_step=True
    ) as everything:
        frame = everything.get_temporal_breakdown()
    assert job.truth is not None
    assert list(frame["kernel_time(us)"]) == [
        rank.all.time.span_ns / 1000 for rank in job.truth.ranks
    ]


def test_kernel_types_are_summed_over_ranks(analysis: TraceAnalysis, job: Job) -> None:
    """Types have HTA's names, the longest first, and add up to the busy time of all ranks."""
    types, _ = analysis.get_gpu_kernel_breakdown()
    assert list(types.columns) == ["kernel_type", "sum", "percentage"]
    assert types["sum"].is_monotonic_decreasing
    assert "COMPUTATION overlapping MEMORY" in set(types["kernel_type"])
    assert job.truth is not None
    sums: Counter[frozenset[str]] = Counter()
    for rank in job.truth.ranks:
        for classes, time_ns in rank.default.time.class_sets.items():
            sums[frozenset(classes.upper().split("+"))] += time_ns
    assert {
        frozenset(kind.split(" overlapping ")): round(time_us * 1000)
        for kind, time_us in zip(types["kernel_type"], types["sum"], strict=True)
    } == {classes: time_ns for classes, time_ns in sums.items() if time_ns}


def test_without_memory_kernels_what_runs_beside_a_copy_runs_alone(
    analysis: TraceAnalysis,
) -> None:
    """include_memory_kernels=False removes MEMORY from both frames, not the time of others."""
    types, kernels = analysis.get_gpu_kernel_breakdown(include_memory_kernels=False)
    assert not types["kernel_type"].str.contains("MEMORY").any()
    assert set(kernels["kernel_type"]) == {"COMPUTATION", "COMMUNICATION"}
    compute = analysis.get_temporal_breakdown()["compute_time(us)"].sum()
    computing = types[types["kernel_type"].str.contains("COMPUTATION")]["sum"].sum()
    assert computing == pytest.approx(compute, rel=1e-12)


def test_others_is_a_true_row(analysis: TraceAnalysis) -> None:
    """Kernels beyond num_kernels become one row computed from launches; the rest is unchanged."""
    _, every = analysis.get_gpu_kernel_breakdown(num_kernels=1000)
    _, few = analysis.get_gpu_kernel_breakdown(num_kernels=2)
    assert list(few.columns) == [
        "name",
        "sum (us)",
        "max (us)",
        "min (us)",
        "stddev",
        "mean (us)",
        "kernel_type",
        "rank",
    ]
    keys = ["kernel_type", "name", "rank"]
    kept = few[few["name"] != "others"].merge(every, on=keys, suffixes=("", "_every"))
    assert (kept["max (us)"] == kept["max (us)_every"]).all()
    assert (kept["mean (us)"] == kept["mean (us)_every"]).all()
    totals = [frame.groupby(["kernel_type", "rank"])["sum (us)"].sum() for frame in (every, few)]
    assert np.allclose(totals[0], totals[1], rtol=1e-12)
    others = few[few["name"] == "others"]
    assert (others["max (us)"] < others["sum (us)"]).all()


def test_duration_ratio_counts_where_num_kernels_is_none(analysis: TraceAnalysis) -> None:
    """The kept kernels make up the wanted share of their type's time."""
    _, half = analysis.get_gpu_kernel_breakdown(num_kernels=None, duration_ratio=0.5)
    for _, group in half.groupby(["kernel_type", "rank"]):
        kept = group[group["name"] != "others"]["sum (us)"].sum()
        assert kept >= 0.5 * group["sum (us)"].sum()
    assert "others" in set(half["name"])


def test_idle_time_has_a_row_per_cause_that_occurs(analysis: TraceAnalysis, job: Job) -> None:
    """Rank 0 by default; times are those of the simulator to HTA's two decimals."""
    frame, stats = analysis.get_idle_time_breakdown()
    assert stats is None
    assert list(frame.columns) == [
        "rank",
        "stream",
        "idle_category",
        "idle_time",
        "idle_time_ratio",
    ]
    assert set(frame["rank"]) == {0}
    assert job.truth is not None
    gaps = {
        (gap.stream, gap.cause): round(gap.sum_ns / 1000, 2)
        for gap in job.truth.ranks[0].default.idle_gaps
        if gap.count or gap.cause == "other"
    }
    got = {
        (row.stream, row.idle_category): row.idle_time
        for row in frame.itertuples(index=False)
        if row.idle_time or (row.stream, row.idle_category) in gaps
    }
    assert got == gaps


def test_idle_interval_stats_describe_the_gaps(tmp_path: Path) -> None:
    """Three gaps of 5, 10 and 40 µs without a launch: two below 30 µs, one above."""
    starts = [0.0, 15.0, 35.0, 85.0]
    write_trace(tmp_path, "a.json", [kernel(ts, 10) for ts in starts])
    with TraceAnalysis(trace_dir=tmp_path) as analysis:
        frame, stats = analysis.get_idle_time_breakdown(show_idle_interval_stats=True)
        below_50, _ = analysis.get_idle_time_breakdown(consecutive_kernel_delay=50)
    assert frame.to_dict(orient="records") == [
        {"rank": 0, "stream": 7, "idle_category": name, "idle_time": idle, "idle_time_ratio": ratio}
        for name, idle, ratio in (("kernel_wait", 15.0, 0.27), ("other", 40.0, 0.73))
    ]
    assert stats is not None
    assert list(stats.columns) == [
        *("rank", "stream", "count", "mean", "std", "min", "25%", "50%", "75%", "max")
    ]
    assert list(stats.loc["kernel_wait"])[2:] == [2, 7.5, 3.54, 5, 6.25, 7.5, 8.75, 10]
    assert dict(zip(below_50["idle_category"], below_50["idle_time"], strict=True)) == {
        "kernel_wait": 55.0,
        "other": 0.0,
    }


def test_overlap_has_a_row_for_each_rank(analysis: TraceAnalysis, job: Job) -> None:
    """The percentage is that of the communication time."""
    frame = analysis.get_comm_comp_overlap()
    assert job.truth is not None
    assert frame.to_dict(orient="records") == [
        {
            "rank": rank.rank,
            "comp_comm_overlap_pctg": round(
                100
                * rank.default.time.overlapped_communication_ns
                / rank.default.time.communication_ns,
                2,
            ),
        }
        for rank in job.truth.ranks
    ]


def test_launch_stats_have_a_frame_per_rank(analysis: TraceAnalysis, job: Job) -> None:
    """Every launch counts, in µs; without memory events the copies are left out."""
    frames = analysis.get_cuda_kernel_launch_stats(ranks=[0, 1])
    assert job.truth is not None
    for truth in job.truth.ranks:
        frame = frames[truth.rank]
        assert list(frame.columns) == [
            "correlation",
            "cpu_duration",
            "gpu_duration",
            "launch_delay",
        ]
        launches = truth.default.launches
        assert len(frame) == sum(launch.count for launch in launches)
        delay = sum(launch.delay_ns for launch in launches)
        assert round(frame["launch_delay"].sum() * 1000) == delay
    fewer = analysis.get_cuda_kernel_launch_stats(include_memory_events=False)
    assert list(fewer) == [0]
    assert len(fewer[0]) < len(frames[0])


def test_a_rank_without_gpu_has_nan(tmp_path: Path) -> None:
    """A ratio of nothing is NaN; the rank keeps its row, and nothing crashes."""
    event = kernel(0, 1) | {"cat": "cpu_op", "args": {}}
    write_trace(tmp_path, "a.json", [event])
    with TraceAnalysis(trace_dir=tmp_path) as analysis:
        temporal = analysis.get_temporal_breakdown(visualize=True)
        types, kernels = analysis.get_gpu_kernel_breakdown(visualize=True)
        idle, stats = analysis.get_idle_time_breakdown(
            visualize=True, show_idle_interval_stats=True
        )
        overlap = analysis.get_comm_comp_overlap(visualize=True)
        launches = analysis.get_cuda_kernel_launch_stats(visualize=True)
    assert list(temporal["rank"]) == [0]
    assert temporal["kernel_time(us)"].isna().all()
    assert overlap["comp_comm_overlap_pctg"].isna().all()
    assert stats is not None
    assert [len(frame) for frame in (types, kernels, idle, stats, launches[0])] == [0] * 5


def test_an_unknown_rank_is_refused(analysis: TraceAnalysis) -> None:
    """The message lists the ranks there are."""
    with pytest.raises(RankError, match=r"No rank 9 in .*\[0, 1\]"):
        analysis.get_idle_time_breakdown(ranks=[9])


def test_the_first_rank_stands_for_a_missing_rank_zero(tmp_path: Path) -> None:
    """ranks=None means rank 0 where there is one, else the first."""
    write_trace(tmp_path, "a.json", [kernel(0, 10), kernel(20, 10)], rank=3)
    with TraceAnalysis(trace_dir=tmp_path) as analysis:
        frame, _ = analysis.get_idle_time_breakdown()
    assert set(frame["rank"]) == {3}


def test_the_store_lies_beside_the_traces(tmp_path: Path) -> None:
    """A hidden folder, so that it is not taken for traces next time."""
    write_trace(tmp_path, "a.json", [kernel(0, 10)])
    for _ in range(2):
        with TraceAnalysis(trace_dir=tmp_path) as analysis:
            assert analysis.store.path == tmp_path / ".hta_sql"
            assert analysis.store.ranks() == [0]


def test_the_second_opening_reads_no_trace(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is ingested again, and the Parquet files stay the same."""
    folder = job.files[0].parent
    TraceAnalysis(trace_dir=folder).close()
    files = {path: path.stat().st_mtime_ns for path in (folder / ".hta_sql").rglob("*.parquet")}
    with caplog.at_level(logging.INFO, logger="hta_sql"):
        started = time.perf_counter()
        TraceAnalysis(trace_dir=folder).close()
    assert time.perf_counter() - started < 5
    assert "Ingested" not in caplog.text
    again = {path: path.stat().st_mtime_ns for path in (folder / ".hta_sql").rglob("*.parquet")}
    assert again == files


def test_a_read_only_folder_has_its_store_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same traces find the same store again; other traces have another one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(trace_places, "is_writable", lambda _: False)
    places = []
    for name in ("one", "one", "two"):
        write_trace(tmp_path / name, "a.json", [kernel(0, 10)])
        with TraceAnalysis(trace_dir=tmp_path / name) as analysis:
            places.append(analysis.store.path)
    assert places[0] == places[1] != places[2]
    assert all(place.parent == tmp_path / "cache" / "hta_sql" for place in places)
    assert not (tmp_path / "one" / ".hta_sql").exists()


def test_the_cache_is_in_the_home_folder_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without XDG_CACHE_HOME it is ~/.cache/hta_sql."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    place = trace_places.store_beside("s3://bucket/traces")
    assert place.parent == tmp_path / ".cache" / "hta_sql"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_permissions_decide_where_the_store_lies(tmp_path: Path) -> None:
    """A folder without write permission is found out by trying."""
    tmp_path.chmod(0o555)
    try:
        assert not trace_places.is_writable(tmp_path)
    finally:
        tmp_path.chmod(0o755)


def test_files_and_ranks_can_be_given(tmp_path: Path) -> None:
    """{rank: path}: the rank is the caller's, relative paths are looked for in trace_dir."""
    write_trace(tmp_path, "a.json", [kernel(0, 10)], rank=0)
    write_trace(tmp_path, "b.json", [kernel(0, 30)], rank=1)
    files = {5: "b.json", 6: str(tmp_path / "a.json")}
    with TraceAnalysis(trace_files=files, trace_dir=str(tmp_path)) as analysis:
        frame = analysis.get_temporal_breakdown()
        assert analysis.store.path == tmp_path / ".hta_sql"
    assert dict(zip(frame["rank"], frame["kernel_time(us)"], strict=True)) == {5: 30.0, 6: 10.0}


def test_one_selection_of_files_does_not_leak_into_the_next(tmp_path: Path) -> None:
    """Opening rank 1 after rank 0 from the same folder shows rank 1 alone."""
    paths = [write_trace(tmp_path, f"{rank}.json", [kernel(0, 10)], rank=rank) for rank in range(2)]
    for rank, path in enumerate(paths):
        with TraceAnalysis(trace_files={rank: str(path)}) as analysis:
            assert list(analysis.get_temporal_breakdown()["rank"]) == [rank]


def test_a_list_of_files_finds_its_ranks(tmp_path: Path) -> None:
    """As HTA's Trace, a list takes the ranks from the files."""
    paths = [write_trace(tmp_path, f"{n}.json", [kernel(0, 10)], rank=n + 2) for n in range(2)]
    with TraceAnalysis(trace_files=[str(path) for path in paths]) as analysis:
        assert list(analysis.get_temporal_breakdown()["rank"]) == [2, 3]


def test_a_removed_trace_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The store still holds the rank, but it is no part of the job any more; a warning says so."""
    paths = [write_trace(tmp_path, f"{n}.json", [kernel(0, 10)], rank=n) for n in range(2)]
    TraceAnalysis(trace_dir=tmp_path).close()
    paths[1].unlink()
    with TraceAnalysis(trace_dir=tmp_path) as analysis:
        assert list(analysis.get_temporal_breakdown()["rank"]) == [0]
    assert "left out: [1]" in caplog.text


def test_a_folder_without_traces_is_an_error(tmp_path: Path) -> None:
    """HTA returns an analysis of nothing."""
    with pytest.raises(TraceNotFoundError):
        TraceAnalysis(trace_dir=tmp_path)


def test_a_named_store_is_opened_or_filled(tmp_path: Path) -> None:
    """With traces they are ingested into it; without, it is opened as it is."""
    write_trace(tmp_path / "traces", "a.json", [kernel(0, 10)])
    place = tmp_path / "x.store"
    with TraceAnalysis(trace_dir=tmp_path / "traces", store=place) as first:
        want = first.get_temporal_breakdown()
    assert not (tmp_path / "traces" / ".hta_sql").exists()
    with TraceAnalysis(store=place) as second:
        assert second.get_temporal_breakdown().equals(want)


def test_several_captures_of_a_rank_are_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The first capture is taken, the others are named, and run= chooses one of them."""
    folder = tmp_path / "traces"
    write_trace(folder, "early.json", [kernel(0, 10)])
    write_trace(folder, "late.json", [kernel(1000, 30)])
    with TraceAnalysis(trace_dir=folder) as first:
        assert list(first.get_temporal_breakdown()["kernel_time(us)"]) == [10.0]
    assert "The others: traces-capture2." in caplog.text
    with TraceAnalysis(store=folder / ".hta_sql", run="traces-capture2") as second:
        assert list(second.get_temporal_breakdown()["kernel_time(us)"]) == [30.0]


def test_an_unknown_run_is_refused(analysis: TraceAnalysis) -> None:
    """The message lists the runs there are."""
    with pytest.raises(RankError, match="it has: traces"):
        TraceAnalysis(store=analysis.store.path, run="nothing")


def test_a_script_without_a_main_guard_runs_once(tmp_path: Path) -> None:
    """HTA users write plain scripts: ingesting in several processes must not run it again."""
    for rank in range(2):
        write_trace(tmp_path / "traces", f"{rank}.json", [kernel(0, 10)], rank=rank)
    script = tmp_path / "script.py"
    lines = [
        "import hta_sql, hta_sql.ingestion.workers as workers",
        "workers.SMALL_BYTES = 0",
        "workers.cpu_count = lambda: 2",
        "print('started')",
        f"hta_sql.ingest({str(tmp_path / 'traces')!r}, {str(tmp_path / 'x.store')!r}).close()",
    ]
    script.write_text("\n".join(lines), encoding="utf-8")
    root = str(Path(hta_sql.__file__).parents[1])
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr


def test_a_script_shows_no_chart_unless_asked(analysis: TraceAnalysis) -> None:
    """visualize=None draws in notebooks only."""
    analysis.get_temporal_breakdown()
    assert not (analysis.store.path / "charts").exists()


def test_a_script_gets_charts_as_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """visualize=True saves an HTML page that needs no network, and logs where."""
    write_trace(tmp_path, "a.json", [kernel(0, 10)])
    with (
        caplog.at_level(logging.INFO, logger="hta_sql"),
        TraceAnalysis(trace_dir=tmp_path) as analysis,
    ):
        analysis.get_temporal_breakdown(visualize=True)
    page = tmp_path / ".hta_sql" / "charts" / "temporal_breakdown.html"
    assert str(page) in caplog.text
    text = page.read_text(encoding="utf-8")
    assert "Where the time of each GPU goes" in text
    assert 'src="http' not in text


def test_a_notebook_displays_charts(
    analysis: TraceAnalysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """visualize=None displays; visualize=False does not."""
    displayed: list[Any] = []
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.__dict__["get_ipython"] = lambda: SimpleNamespace(kernel=object())
    display.__dict__["display"] = displayed.append
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    analysis.get_temporal_breakdown()
    analysis.get_temporal_breakdown(visualize=False)
    titles = [chart.to_dict()["title"]["text"] for chart in displayed]
    assert titles == ["Where the time of each GPU goes"]


@pytest.mark.parametrize("name", charts.FIGURES)
def test_every_figure_is_valid_and_titled(name: str, analysis: TraceAnalysis) -> None:
    """Each chart passes Vega-Lite's schema, has a title, and holds no more than a screenful."""
    chart = charts.draw(analysis.store.run(name, runs=[analysis.run]))
    content = chart.to_json()
    assert '"title"' in content
    assert len(content) < 200_000


def test_idle_charts_switch_between_shares_and_times(analysis: TraceAnalysis) -> None:
    """visualize_pctg=False draws times."""
    result = analysis.store.run("idle_time_breakdown", runs=[analysis.run])
    panels = [
        charts.draw(result, percent=percent).to_dict()["hconcat"] for percent in (True, False, None)
    ]
    axes = [[panel["layer"][0]["encoding"]["x"]["field"] for panel in few] for few in panels]
    assert axes == [["share"], ["time"], ["share", "time"]]


def test_an_unknown_result_has_no_chart(analysis: TraceAnalysis) -> None:
    """The message lists what has one."""
    with pytest.raises(ParameterError, match="temporal_breakdown"):
        charts.draw(analysis.store.sql("SELECT 1"))
