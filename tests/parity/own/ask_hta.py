"""Run HolisticTraceAnalysis on the project's own jobs, using a Python that has HTA installed.

::

    python -m tests.parity.own.jobs /tmp/jobs     # ours: writes the traces
    HTA_DISABLE_NS_ROUNDING=1 PYTHONPATH=<HTA> python tests/parity/own/ask_hta.py /tmp/jobs

The program imports HTA and pandas, but nothing from hta_sql. It writes ``answers/<job>.json`` with
the columns and rows of each frame; the calls are those of ``our_answers.py``. For a call that
raises an error, the file has the name of the error instead. The results contain only numbers, and
names from our own traces.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import math
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from hta.common.trace import Trace
from hta.trace_analysis import TraceAnalysis
from hta.trace_diff import DeviceType, LabeledTrace, TraceDiff
from hta.version import __version__

ANSWERS = Path(__file__).with_name("answers")
EVERYTHING = 1_000_000_000
SEQUENCES_OF = "aten::linear"
FULL_QUEUES = (1024, 100, 4)
WINDOWS: dict[str, tuple[str, int | None]] = {
    "critical_path_step0": ("ProfilerStep", 0),
    "critical_path_step1": ("ProfilerStep", 1),
    "critical_path_full": ("", None),
}
COLUMNS = {
    "gpu_kernels_with_user_annotations": (
        *("index", "rank", "dur", "stream", "correlation", "s_name", "s_user_annotation"),
    ),
    "queue_length_time_series": ("rank", "stream", "index", "ts", "queue_length"),
    "memory_bw_time_series": ("rank", "name", "ts", "memory_bw_gbps"),
    "cupti_counters": (
        *("rank", "index", "cat", "name", "ts", "dur", "index_runtime"),
        *("op_stack", "top_level_op", "bottom_level_op"),
    ),
}
"""Compared columns of frames whose other columns are HTA's internal ids or links to host events."""

BREAKDOWN = ("rank", "type", "event_idx", "duration", "s_name", "bound_by")

Frames = dict[str, Any]


def main(folder: Path) -> None:
    """Run HTA on every job and pair that jobs.json lists."""
    assert os.environ.get("HTA_DISABLE_NS_ROUNDING") == "1", "see the head of this file"
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    about = json.loads((folder / "jobs.json").read_text(encoding="utf-8"))
    ANSWERS.mkdir(exist_ok=True)
    files = {
        job: {int(rank): path for rank, path in listed["files"].items()}
        for job, listed in about["jobs"].items()
    }
    for job, listed in about["jobs"].items():
        with contextlib.redirect_stdout(io.StringIO()):
            found = answers_of(files[job])
        _write(job, listed["digest"], found)
    for pair, (control, test) in about["pairs"].items():
        both = " ".join(about["jobs"][job]["digest"] for job in (control, test))
        _write(pair, both, answers_of_pair(files[control], files[test]))


def answers_of(files: dict[int, str]) -> Frames:
    """Return all of HTA's frames for a job."""
    analysis = TraceAnalysis(trace_files=files)
    everything = TraceAnalysis(trace_files=files, include_last_profiler_step=True)
    ranks = sorted(files)
    queues = _asked(lambda: analysis.get_queue_length_time_series(ranks))
    frames: Frames = {
        "temporal_breakdown": _asked(lambda: analysis.get_temporal_breakdown(visualize=False)),
        "incl_last_temporal_breakdown": _asked(
            lambda: everything.get_temporal_breakdown(visualize=False)
        ),
        **_kernels(analysis),
        **_idle(analysis, ranks),
        "comm_comp_overlap": _asked(lambda: analysis.get_comm_comp_overlap(visualize=False)),
        "cuda_kernel_launch_stats": _asked(
            lambda: _by_rank(analysis.get_cuda_kernel_launch_stats(ranks, visualize=False))
        ),
        **_operators(analysis, ranks),
        "queue_length_summary": _asked(lambda: _flat(analysis.get_queue_length_summary(ranks))),
        "queue_length_time_series": _asked(
            lambda: _by_rank({r: f.reset_index() for r, f in queues.items()})
        ),
        "memory_bw_summary": _asked(lambda: _flat(analysis.get_memory_bw_summary(ranks))),
        "memory_bw_time_series": _asked(
            lambda: _by_rank(analysis.get_memory_bw_time_series(ranks))
        ),
        "profiler_steps": _asked(lambda: pd.DataFrame({"step": analysis.get_profiler_steps()})),
        "potential_stragglers": _asked(lambda: _ordered(analysis.get_potential_stragglers())),
        "cupti_counters": _asked(
            lambda: _by_rank(
                dict(
                    zip(
                        ranks,
                        analysis.get_cupti_counter_data_with_operators(ranks),
                        strict=False,
                    )
                )
            )
        ),
    }
    for length in FULL_QUEUES:
        frames[f"time_spent_blocked_on_full_queue_{length}"] = _asked(
            analysis.get_time_spent_blocked_on_full_queue, queues, length
        )
    for name, window in WINDOWS.items():
        frames.update(_critical_path(analysis, ranks, name, window))
    return frames


def _kernels(analysis: TraceAnalysis) -> Frames:
    asked = _asked(
        lambda: analysis.get_gpu_kernel_breakdown(
            visualize=False, num_kernels=EVERYTHING, duration_ratio=1
        )
    )
    types, kernels = (asked, asked) if isinstance(asked, str) else asked
    names = ("gpu_kernel_breakdown_all_types", "gpu_kernel_breakdown_all_kernels")
    return dict(zip(names, (types, kernels), strict=True))


def _idle(analysis: TraceAnalysis, ranks: list[int]) -> Frames:
    asked = _asked(
        lambda: analysis.get_idle_time_breakdown(
            ranks=ranks, visualize=False, show_idle_interval_stats=True
        )
    )
    if isinstance(asked, str):
        return {"idle_time_breakdown": asked, "idle_time_interval_stats": asked}
    idle, stats = asked
    return {
        "idle_time_breakdown": idle,
        "idle_time_interval_stats": None if stats is None else stats.reset_index(),
    }


def _operators(analysis: TraceAnalysis, ranks: list[int]) -> Frames:
    def sequences() -> pd.DataFrame:
        with tempfile.TemporaryDirectory() as folder:
            found = {
                rank: analysis.get_frequent_cuda_kernel_sequences(SEQUENCES_OF, folder, 1, rank)
                for rank in ranks
            }
        return _by_rank(found).assign(operator_name=SEQUENCES_OF)

    return {
        "gpu_user_annotation_breakdown": _asked(
            lambda: analysis.get_gpu_user_annotation_breakdown(
                visualize=False, num_kernels=EVERYTHING, duration_ratio=1
            )
        ),
        "cpu_user_annotation_breakdown": _asked(
            lambda: analysis.get_gpu_user_annotation_breakdown(
                use_gpu_annotation=False,
                visualize=False,
                num_kernels=EVERYTHING,
                duration_ratio=1,
            )
        ),
        "gpu_kernels_with_user_annotations": _asked(
            lambda: _by_rank(
                {rank: analysis.get_gpu_kernels_with_user_annotations(rank) for rank in ranks}
            )
        ),
        "aten_op_kernels_and_delay": _asked(
            lambda: _by_rank(analysis.get_aten_op_kernels_and_delay(ranks))
        ),
        "frequent_cuda_kernel_sequences": _asked(sequences),
    }


def _critical_path(
    analysis: TraceAnalysis, ranks: list[int], name: str, window: tuple[str, int | None]
) -> Frames:
    graphs: dict[int, Any] = {}
    error = ""
    for rank in ranks:
        found = _asked(analysis.critical_path_analysis, rank, *window)
        if isinstance(found, str):
            error = found
        elif found is not None and found[1]:
            graphs[rank] = found[0]
    if error and not graphs:
        return {f"{name}_{part}": error for part in ("length", "summary", "breakdown")}
    lengths = {
        rank: sum(graph.edges[e.begin, e.end]["weight"] for e in graph.critical_path_edges_set)
        for rank, graph in graphs.items()
    }
    return {
        f"{name}_length": pd.DataFrame({"rank": list(lengths), "cp_weight": lengths.values()}),
        f"{name}_summary": _asked(
            lambda: _by_rank(
                {
                    rank: graph.summary().rename("pct").rename_axis("bound_by").reset_index()
                    for rank, graph in graphs.items()
                }
            )
        ),
        f"{name}_breakdown": _asked(
            lambda: _by_rank({r: g.get_critical_path_breakdown() for r, g in graphs.items()})
        ),
    }


def answers_of_pair(control: dict[int, str], test: dict[int, str]) -> Frames:
    """Return all of HTA's frames and lists that compare two jobs."""
    left = LabeledTrace("Control", Trace(trace_files=control))
    right = LabeledTrace("Test", Trace(trace_files=test))
    frames: Frames = {}
    for device in DeviceType:
        for ending, short in (("", False), ("_short", True)):
            frames[f"trace_diff_{device.name.lower()}{ending}"] = _asked(
                _compared, left, right, device, short=short
            )
        frames[f"trace_diff_ops_{device.name.lower()}"] = _asked(_changes, left, right, device)
    lists = {"control": left.iterations(), "test": right.iterations()}
    lists |= {"control_ranks": left.ranks(), "test_ranks": right.ranks()}
    frames["trace_diff_iterations"] = _items(lists)
    return frames


def _compared(
    left: LabeledTrace, right: LabeledTrace, device: DeviceType, *, short: bool
) -> pd.DataFrame:
    found: pd.DataFrame = TraceDiff.compare_traces(
        left, right, device_type=device, use_short_name=short
    )
    return found.rename_axis("item").reset_index()


def _changes(left: LabeledTrace, right: LabeledTrace, device: DeviceType) -> pd.DataFrame:
    return _items(TraceDiff.ops_diff(left, right, device_type=device))


def _asked(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return the result of a call, or the name of its exception."""
    try:
        return call(*arguments, **options)
    except Exception as error:  # noqa: BLE001 - HTA may raise anything
        return type(error).__name__


def _ordered(ranks: list[int]) -> pd.DataFrame:
    return pd.DataFrame({"place": range(len(ranks)), "rank": ranks})


def _items(lists: dict[str, list[Any]]) -> pd.DataFrame:
    rows = [(f"{name}: {item}", name) for name, items in lists.items() for item in items]
    return pd.DataFrame(rows, columns=["item", "list"])


def _flat(frame: pd.DataFrame | None) -> pd.DataFrame:
    if frame is None:
        return pd.DataFrame()
    return frame.set_axis(["_".join(column) for column in frame.columns], axis=1).reset_index()


def _by_rank(frames: dict[int, pd.DataFrame | None] | None) -> pd.DataFrame:
    found = [f.assign(rank=rank) for rank, f in (frames or {}).items() if f is not None]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def _write(job: str, digest: str, frames: Frames) -> None:
    path = ANSWERS / f"{job}.json"
    found = {name: _plain(name, frame) for name, frame in sorted(frames.items())}
    head = json.dumps({"hta": __version__, "pandas": pd.__version__, "traces": digest})[1:-1]
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(f)}" for name, f in found.items())
    path.write_text(f'{{{head},\n "frames": {{\n{lines}\n }}}}\n', encoding="utf-8")


def _plain(name: str, frame: Any) -> Any:
    """Return a frame as columns and rows, or the name of an error."""
    if isinstance(frame, str):
        return {"error": frame}
    if frame is None or not len(frame):
        return {"columns": [], "rows": []}
    wanted = BREAKDOWN if name.endswith("_breakdown") and "path" in name else COLUMNS.get(name)
    columns = [c for c in frame.columns if wanted is None or c in wanted or c.startswith("smsp__")]
    rows = [[_cell(value) for value in row] for row in frame[columns].itertuples(index=False)]
    if wanted is BREAKDOWN:
        rows.sort(key=repr)  # HTA stores the edges of a path in a set
    return {"columns": columns, "rows": rows}


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return [str(part) for part in value]
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, bool | int | float) else str(value)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
