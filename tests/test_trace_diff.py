"""Tests of TraceDiff and LabeledTrace: HTA's methods, multiple ranks and steps, and two stores.

The trace is tests/traces/annotated_operators.json, whose rows the golden tests explain.
"""

from __future__ import annotations

import inspect
import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql import LabeledTrace, TraceAnalysis, TraceDiff
from hta_sql.comparison.sides import Side, compare
from hta_sql.errors import ParameterError, RankError
from hta_sql.hta.trace_diff import DeviceType
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hta_sql.store.query.trace_store import TraceStore

TRACES = Path(__file__).parent / "traces"
OPERATORS = TRACES / "annotated_operators.json"
ROCM = TRACES / "rocm_stream_zero.json"
SIDES = ["control_rank", "test_rank", "control_iteration", "test_iteration", "device_type"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest run ``one`` with one rank, and run ``three`` with three ranks of the same trace."""
    path = tmp_path_factory.mktemp("diff") / "job.store"
    trace = str(OPERATORS)
    ingest_only({0: trace}, path, run="one")
    ingest_only({0: trace, 1: trace, 5: trace}, path, run="three")
    with hta_sql.open(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def one(store: TraceStore) -> LabeledTrace:
    """Return the run with one rank, labeled ``before``."""
    return LabeledTrace("before", store, run="one")


@pytest.fixture(scope="module")
def three(store: TraceStore) -> LabeledTrace:
    """Return the run with three ranks, labeled ``after``."""
    return LabeledTrace("after", store, run="three")


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        (TraceDiff.compare_traces, ["control", "test", *SIDES, "use_short_name"]),
        (TraceDiff.ops_diff, ["control", "test", *SIDES]),
        (TraceDiff.visualize_counts_diff, ["df", "show_image", "export_image_path"]),
        (TraceDiff.visualize_duration_diff, ["df", "show_image", "export_image_path"]),
    ],
)
def test_methods_take_htas_parameters(method: object, parameters: list[str]) -> None:
    """Parameters have HTA's names and order, and additional ones are keyword-only."""
    found = inspect.signature(method).parameters  # type: ignore[arg-type]
    assert [p.name for p in found.values() if p.kind is not p.KEYWORD_ONLY] == parameters


def test_a_labeled_trace_knows_its_ranks_and_steps(three: LabeledTrace, store: TraceStore) -> None:
    """Iterations include the last step, and the default label is the run name."""
    assert three.ranks() == [0, 1, 5]
    assert three.iterations() == [1, 2]
    assert LabeledTrace(t=store, run="three").label == "three"
    assert "'after', run='three'" in repr(three)


def test_steps_are_compared_under_their_labels(one: LabeledTrace, three: LabeledTrace) -> None:
    """Comparing step 1 of rank 0 with step 2 of rank 5 gives HTA's columns, in µs."""
    frame = TraceDiff.compare_traces(
        one,
        three,
        test_rank=5,
        test_iteration=2,
        device_type=DeviceType.GPU,
        use_short_name=True,
    )
    assert frame.index.name == "short_name"
    assert list(frame.columns) == [
        "before_counts",
        "before_total_duration",
        "after_counts",
        "after_total_duration",
        "diff_counts",
        "diff_duration",
        "counts_change_categories",
    ]
    assert list(frame.loc["gemm"]) == [2, 22.0, 1, 9.0, -1, -13.0, "-"]
    assert list(frame.index) == ["Memset (Device)", "bias", "gemm", "sgemm"]


def test_several_ranks_and_steps_are_added_up(one: LabeledTrace, three: LabeledTrace) -> None:
    """Selected ranks and steps are summed on each side."""
    frame = TraceDiff.compare_traces(
        one, three, test_rank=[1, 5], control_iteration=[1, 2], test_iteration=[1, 2]
    )
    assert frame.index.name == "name"
    assert list(frame.loc["aten::linear"])[:5] == [3, 56.0, 6, 112.0, 3]
    assert set(frame["counts_change_categories"]) == {"+"}


def test_names_come_and_go(one: LabeledTrace) -> None:
    """Each name is in exactly one of HTA's five lists."""
    changes = TraceDiff.ops_diff(one, one, test_iteration=2, device_type=DeviceType.CPU)
    assert changes == {
        "added": ["ProfilerStep#2"],
        "deleted": [
            "ProfilerStep#1",
            "aten::addmm",
            "aten::mm",
            "autograd::AddmmBackward0",
            "cudaMemsetAsync",
            "inner",
        ],
        "increased": [],
        "decreased": ["aten::linear", "cudaLaunchKernel"],
        "unchanged": ["outer"],
    }
    back = TraceDiff.ops_diff(
        one, one, control_iteration=2, test_iteration=1, device_type=DeviceType.CPU
    )
    assert back["increased"] == changes["decreased"]
    folded = TraceDiff.ops_diff(
        one, one, test_iteration=2, device_type=DeviceType.CPU, by_step_number=False
    )
    assert folded["added"] == []
    assert folded["unchanged"] == ["ProfilerStep", "outer"]
    steps = TraceDiff.compare_traces(one, one, test_iteration=2, by_step_number=False)
    assert list(steps.loc["ProfilerStep"])[:4] == [1, 200.0, 1, 100.0]


def test_equal_labels_are_told_apart(one: LabeledTrace, caplog: pytest.LogCaptureFixture) -> None:
    """If labels are equal, the test label gets a suffix, and a warning is logged."""
    with caplog.at_level(logging.WARNING):
        frame = TraceDiff.compare_traces(one, one)
    assert "before_test_counts" in frame
    assert "labeled 'before'" in caplog.text
    assert (frame["diff_counts"] == 0).all()


def test_the_trace_of_an_analysis_is_compared_as_the_analysis_is(store: TraceStore) -> None:
    """Comparing the ``t`` of two TraceAnalysis objects equals comparing the objects themselves."""
    one = TraceAnalysis(store=store.path, run="one")
    three = TraceAnalysis(store=store.path, run="three")
    whole = TraceDiff.compare_traces(one, three)
    assert len(whole)
    assert TraceDiff.compare_traces(one.t, three.t).equals(whole)
    labeled = [LabeledTrace(label, t=job.t) for label, job in (("a", one), ("b", three))]
    assert [trace.run for trace in labeled] == ["one", "three"]


def test_folders_are_compared_wherever_their_stores_are(tmp_path: Path) -> None:
    """Two trace folders with separate stores can be compared.

    Operations on ROCm's stream 0 count, even in a trace without steps.
    """
    folders = []
    for name, trace in (("a", OPERATORS), ("b", ROCM)):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(trace, folder / "rank-0.json")
        folders.append(folder)
    frame = TraceDiff.compare_traces(str(folders[0]), folders[1], device_type=DeviceType.GPU)
    assert list(frame.columns[:4]) == [
        "Control_counts",
        "Control_total_duration",
        "Test_counts",
        "Test_total_duration",
    ]
    with TraceAnalysis(trace_dir=folders[1]) as rocm:
        on_stream_0 = rocm.store.sql("SELECT count(*) FROM gpu_ops WHERE stream = 0").rows()
        same = TraceDiff.compare_traces(
            rocm, LabeledTrace("Test", rocm), device_type=DeviceType.GPU
        )
    assert frame["Test_counts"].sum() == on_stream_0[0][0] > 0
    assert (same["diff_counts"] == 0).all()


@pytest.mark.parametrize("by_category", [True, False])
def test_two_stores_give_what_one_store_gives(
    store: TraceStore, tmp_path: Path, *, by_category: bool
) -> None:
    """Comparing two runs in separate stores gives the same rows as in one store."""
    options: dict[str, Any] = {
        "by_short_name": True,
        "by_category": by_category,
        "by_shapes": by_category,
    }
    expected = store.run("trace_diff", runs=["three", "one"], **options)
    with hta_sql.ingest({0: str(OPERATORS)}, tmp_path / "other.store", run="one") as other:
        found = compare(Side(store, "three"), Side(other, "one"), **options)
    assert found.columns == expected.columns
    assert found.rows() == expected.rows()
    assert len(found.rows()) > 10


def test_what_is_not_there_is_named(
    one: LabeledTrace, three: LabeledTrace, store: TraceStore
) -> None:
    """The error names the missing rank, step, run or argument."""
    with pytest.raises(RankError, match=r"No rank 2 in after; available ranks: \[0, 1, 5\]"):
        TraceDiff.compare_traces(one, three, test_rank=2)
    with pytest.raises(
        ParameterError, match=r"No iteration 9 in before; available iterations: \[1, 2\]"
    ):
        TraceDiff.compare_traces(one, three, control_iteration=[1, 9])
    with pytest.raises(ParameterError, match="has 2 runs; pass one of them as run: one, three"):
        LabeledTrace(t=store)
    with pytest.raises(RankError, match="No run 'two'"):
        LabeledTrace(t=store, run="two")
    with pytest.raises(ParameterError, match="Pass t"):
        LabeledTrace("x")
    with pytest.raises(ParameterError, match="not a LabeledTrace, TraceAnalysis, Trace or folder"):
        TraceDiff.compare_traces(one, 7)  # type: ignore[arg-type]
    with pytest.raises(RankError, match="No rank 5; available ranks: 0 in run one"):
        compare(Side(store, "one", ranks=[5]), Side(store, "three"))


@pytest.mark.parametrize("name", ["visualize_counts_diff", "visualize_duration_diff"])
def test_charts_are_drawn_into_files(name: str, one: LabeledTrace, tmp_path: Path) -> None:
    """Charts are drawn from the result of a comparison only; other data frames are errors."""
    frame = TraceDiff.compare_traces(one, one, test_iteration=2)
    path = tmp_path / "diff.html"
    getattr(TraceDiff, name)(frame, show_image=True, export_image_path=str(path))
    assert "aten::linear" in path.read_text(encoding="utf-8")
    getattr(TraceDiff, name)(frame)
    with pytest.raises(ParameterError, match="that compare_traces returned"):
        getattr(TraceDiff, name)(frame[["diff_counts"]])
