"""Tests of HTA's methods for steps, stragglers and CUPTI counters, on jobs with known results."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_sql.authoring.golden_messages import render
from hta_sql.errors import ParameterError
from hta_sql.hta.analyzers.cupti_counter_analysis import CUDA_SASS_INSTRUCTION_COUNTER_FLOPS
from hta_sql.hta.common.trace_call_graph import CALL_GRAPH_DEFAULTS
from hta_sql.hta.trace_analysis import TraceAnalysis
from hta_sql.synthetic import JobSpec, write_job

TRACES = Path(__file__).parent / "traces"
SIGNATURES = {
    "get_profiler_steps": [],
    "get_potential_stragglers": [
        "profiler_steps",
        "num_candidates",
        "visualize",
        "straggler_identification_impl",
    ],
    "get_cupti_counter_data_with_operators": ["ranks"],
}


@pytest.mark.parametrize(("method", "parameters"), SIGNATURES.items())
def test_methods_take_htas_parameters(method: str, parameters: list[str]) -> None:
    """Positional parameters have HTA's names and order, and additional ones are keyword-only."""
    signature = inspect.signature(getattr(TraceAnalysis, method)).parameters
    by_position = [p.name for p in signature.values() if p.kind is not p.KEYWORD_ONLY]
    assert by_position[1:] == parameters


@pytest.mark.parametrize(
    ("planted", "options"),
    [
        ({2: 3_000_000}, {}),
        ({0: 2_000_000}, {"nccl_names": "old"}),
        ({3: 2_000_000}, {"collective_metadata": False}),
        ({1: 4_000_000}, {"comm_streams": 2, "first_step": 0}),
        ({1: 3_000_000, 3: 2_500_000}, {}),
    ],
)
def test_a_planted_straggler_is_found(
    planted: dict[int, int], options: dict[str, Any], tmp_path: Path
) -> None:
    """Ranks that load data longer in every step are found, however kernels are named."""
    spec = JobSpec(ranks=4, steps=4, layers=2, stragglers=planted, **options)
    write_job(tmp_path, spec)
    with TraceAnalysis(trace_dir=tmp_path) as analysis:
        found = analysis.get_potential_stragglers(num_candidates=len(planted))
        first = spec.first_step
        assert analysis.get_profiler_steps() == [first, first + 1, first + 2]
        one_step = analysis.get_potential_stragglers([first + 1], num_candidates=len(planted))
        table = analysis.store.run("potential_stragglers").df()
    assert sorted(found) == sorted(planted)
    assert sorted(one_step) == sorted(planted)
    late = table.set_index("rank")["max_late_ns"]
    assert late.idxmax() == max(planted, key=lambda rank: planted[rank])


def copied(folder: Path, *names: str) -> Path:
    """Copy trace files as ranks 0, 1, … and return their folder."""
    for rank, name in enumerate(names):
        shutil.copy(TRACES / name, folder / f"rank{rank}.json")
    return folder


def test_what_cannot_be_told_is_empty_and_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without communication, or with a single rank, the list is empty and a warning says why.

    HTA raises an exception (Q45).
    """
    with TraceAnalysis(trace_dir=copied(tmp_path, "straggler_0.json")) as alone:
        assert alone.get_potential_stragglers() == []
    assert render("potential_stragglers.single_rank") in caplog.text
    (tmp_path / "quiet").mkdir()
    quiet = copied(tmp_path / "quiet", "gap_causes.json", "gap_causes.json")
    with TraceAnalysis(trace_dir=quiet) as analysis:
        assert analysis.get_potential_stragglers() == []
        assert analysis.get_profiler_steps() == []
    assert "no rank communicates" in caplog.text


@pytest.fixture(scope="module")
def late_traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy three ranks of which rank 1 is late in both steps.

    The first test that opens them ingests them.
    """
    names = [f"straggler_{rank}.json" for rank in range(3)]
    return copied(tmp_path_factory.mktemp("late"), *names)


@pytest.fixture
def late(late_traces: Path) -> TraceAnalysis:
    """Open the traces with the late rank."""
    return TraceAnalysis(trace_dir=late_traces)


def test_steps_and_candidates_choose(late: TraceAnalysis) -> None:
    """Unknown steps are ignored unless no step remains, and the candidate count is clamped."""
    with late as analysis:
        assert analysis.get_profiler_steps() == [0, 1]
        assert analysis.get_potential_stragglers() == [1, 2]
        assert analysis.get_potential_stragglers([0, 77], num_candidates=1) == [1]
        assert analysis.get_potential_stragglers(num_candidates=-3) == [1]
        assert analysis.get_potential_stragglers(num_candidates=9) == [0, 1, 2]
        with pytest.raises(ParameterError, match=r"None of the profiler steps \[77\].*\[0, 1\]"):
            analysis.get_potential_stragglers([77])


def test_another_way_to_count_can_be_given(late: TraceAnalysis) -> None:
    """A custom function gets the metric with HTA's columns, and its result ranks the candidates."""
    seen: list[Any] = []

    def latest_start(metric: pd.DataFrame, *rest: Any) -> pd.Series:
        seen.extend([list(metric.columns), *rest])
        return -metric.groupby("rank")["normalized_start_time"].max()

    with late as analysis:
        found = analysis.get_potential_stragglers(straggler_identification_impl=latest_start)
    assert found == [0, 2]
    assert seen == [
        ["rank", "stream", "iteration", "name", "ts", "dur", "normalized_start_time"],
        None,
        2,
        False,
    ]


def test_counters_have_a_row_per_range_and_a_column_per_counter(tmp_path: Path) -> None:
    """Each profiler range has a row, with its operators outermost first.

    Ranks without counters are omitted, whereas HTA raises an exception (Q44).
    """
    folder = copied(tmp_path, "cupti_by_position.json", "cupti_more_ranges.json", "host_only.json")
    with TraceAnalysis(trace_dir=folder) as analysis:
        frames: Any = analysis.get_cupti_counter_data_with_operators([0, 1, 2])
        assert analysis.get_cupti_counter_data_with_operators([2]) == []
        events = analysis.t.get_trace(0).columns
    assert len(frames) == 2
    fadd, ffma = (f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in ("fadd", "ffma"))
    first = frames[0]
    assert list(first.columns) == [
        *(*events, *CALL_GRAPH_DEFAULTS),
        *("l2__hit_rate.pct", "note", fadd, ffma),
        *("index_runtime", "op_stack", "top_level_op", "bottom_level_op"),
    ]
    assert set(first["cat"]) == {"cuda_profiler_range"}
    assert set(first["depth"]) == {-1}
    assert first["op_stack"].tolist() == [["aten::conv2d", "aten::cudnn > fast"], []]
    assert first["top_level_op"].tolist() == ["aten::conv2d", None]
    assert first["bottom_level_op"].tolist() == ["aten::cudnn > fast", None]
    assert (first["ts"].tolist(), first["dur"].tolist()) == ([100.0, 110.0], [10.0, 10.0])
    assert first[ffma].tolist() == [30, 0]
    assert first[fadd].tolist()[0] == 7
    assert first["index_runtime"].tolist() == [2, 4]
    assert frames[1]["name"].tolist() == ["known", "unknown", "without", "bare"]
    assert frames[1]["index_runtime"].isna().tolist() == [False, True, True, True]


def test_the_weights_of_counters_are_htas(tmp_path: Path) -> None:
    """The analysis weights counters like HTA's dictionary, in which an fma counts twice."""
    assert len(CUDA_SASS_INSTRUCTION_COUNTER_FLOPS) == 9
    with TraceAnalysis(trace_dir=copied(tmp_path, "cupti_by_position.json")) as analysis:
        table = analysis.store.run("cupti_counters_by_operator").df()
    rows: Any = zip(table["counter"], table["flop_weight"], strict=True)
    for counter, weight in rows:
        want = CUDA_SASS_INSTRUCTION_COUNTER_FLOPS.get(counter)
        assert pd.isna(weight) if want is None else weight == want
