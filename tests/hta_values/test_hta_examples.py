"""Tests C1 to C19: values that HTA's tests expect for small examples.

If our answer differs from HTA's, the docstring states HTA's answer and the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from hta_sql import TraceStore
from hta_sql.hta.common.timeline import simplify_name
from hta_sql.hta.common.trace_filter import IterationIndexFilter
from hta_sql.hta.common.trace_symbol_table import TraceSymbolTable
from hta_sql.hta.utils.utils import shorten_name
from tests.hta_values.examples import Event, device, frame_of, host, overlapping, tree, write

if TYPE_CHECKING:
    from pathlib import Path

    from hta_sql.hta.common.trace import Trace

SUBMIT = "runFunction - job_prep_and_submit_for_execution"

Reading = Callable[..., "Trace"]


def test_c1_linked_events(reading: Reading) -> None:
    """The index is -1 without a correlation id, and 0 if no other event has that id.

    Otherwise, it is the index of the event with the same id.
    """
    events = [
        host("first", 0),
        host("launch", 1, cat="cuda_runtime", correlation=15),
        host("wait", 2, cat="cuda_runtime", correlation=16),
        host("lost", 3, cat="cuda_runtime", correlation=22),
        host("op", 4),
        device("Event Sync", 5, cat="cuda_sync", correlation=15, stream=-1),
        device("Context Sync", 6, cat="cuda_sync", correlation=16, stream=-1),
        device("k", 7, correlation=30),
        device("k", 8),
    ]
    linked = frame_of(reading(events))["index_correlation"].tolist()
    assert linked == [-1, 5, 6, 0, -1, 1, 2, 0, -1]


def test_c2_kernel_types(ingest_trace: Callable[..., TraceStore]) -> None:
    """The kernel type is derived from the name. Host events have no type (in HTA, it is OTHER)."""
    store = ingest_trace(
        [
            host("cudaDeviceSynchronize", 0, cat="cuda_runtime"),
            device("nccl:all_reduce", 1),
            device("Memcpy DtoH (Device)", 2, cat="gpu_memcpy"),
            device("custom_gemm_kernel", 3),
        ]
    )
    assert store.sql("SELECT name, class FROM gpu_ops ORDER BY event_id").rows() == [
        ("nccl:all_reduce", "communication"),
        ("Memcpy DtoH (Device)", "memory"),
        ("custom_gemm_kernel", "computation"),
    ]


def test_c3_kinds_of_copies(ingest_trace: Callable[..., TraceStore]) -> None:
    """Copies are named by their kind in the bandwidth series."""
    names = ["Memcpy DtoH (Device)", "Memcpy HtoD (Pinned)", "Memset (Device)", "custom_dma_op"]
    store = ingest_trace(
        [device(name, ts, cat="gpu_memcpy", bytes=1) for ts, name in enumerate(names)]
    )
    rows = store.sql("SELECT DISTINCT name FROM memory_bandwidth_series() ORDER BY name").rows()
    assert [name for (name,) in rows] == [
        *("Memcpy DtoH", "Memcpy HtoD", "Memcpy Unknown", "Memset"),
    ]


def test_c4_streams_that_are_no_numbers(reading: Reading) -> None:
    """A stream that is a string with a number is converted to this number.

    If it is not a number, the lane is used as the stream, or -1 if the lane is not a number either.
    """
    events = [device("k", ts, stream=s) for ts, s in enumerate([1, "2", None, "abc"])]
    for event in events[2:]:
        event["tid"] = "no number"
    assert frame_of(reading(events))["stream"].tolist() == [1, 2, -1, -1]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("a<int>(b)", "a"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::F<float>>(int, char*)",
            "at::native::vectorized_elementwise_kernel",
        ),
        ("Memcpy DtoD (Device -> Device)", "Memcpy DtoD (Device -> Device)"),
    ],
)
def test_c5_short_names(name: str, short: str) -> None:
    """A short name has no template arguments, no call arguments and no return type."""
    assert shorten_name(name) == short


@pytest.mark.parametrize(
    ("name", "simple"),
    [
        ("autograd::engine::evaluate_function: TBackward0", "autograd::TBackward0"),
        (
            "void permute_pooled_embs_kernel<float>(float const*, long const*)",
            "permute_pooled_embs_kernel<float>",
        ),
        ("## qat ##", "## qat ##"),
        ("x" * 60, "x" * 42 + "..."),
    ],
)
def test_c6_names_on_the_timeline(name: str, simple: str) -> None:
    """A name on the timeline has at most 45 characters."""
    assert simplify_name(name) == simple


@pytest.mark.parametrize(
    ("backend", "call", "kind"),
    [
        ("mtia:hccl", None, "MTIA"),
        (None, "cudaLaunchKernel", "NVIDIA GPU"),
        (None, "hipLaunchKernel", "AMD GPU"),
        (None, SUBMIT, "MTIA"),
        (None, None, None),
    ],
)
def test_c7_kinds_of_devices(
    reading: Reading, backend: str | None, call: str | None, kind: str | None
) -> None:
    """The device kind is derived from the backend, or else from the names of runtime calls.

    It is NULL if neither is known; in HTA, it is UNKNOWN GPU.
    """
    events = [host(call, 0, cat="cuda_runtime") if call else host("op", 0)]
    about = {"backend": backend} if backend else {}
    trace = reading(events, distributedInfo={"rank": 0, **about})
    assert trace.job.store.run("device_type").records()[0]["device_type"] == kind


def test_c8_call_stack(reading: Reading) -> None:
    """Parents, depths and heights match HTA, except for an event that partially overlaps another.

    The last event spans 16 to 19. It starts inside an event that ends at 18, so it is not nested in
    that event. Its parent is the event around both, and it is marked as overlapping. HTA nests it
    (parent 7, depth 2, heights 3 and 2 for 6 and 7; Q58).
    """
    trace = reading(tree([0, 1, 3, 3, 7, 8, 10, 12, 16], [10, 5, 2, 1, 3, 1, 11, 6, 3]))
    frame = frame_of(trace, with_stacks=True)
    assert frame["parent"].tolist() == [-1, 0, 1, 2, 0, 4, -1, 6, 6]
    assert frame["depth"].tolist() == [0, 1, 2, 3, 1, 2, 0, 1, 1]
    assert frame["height"].tolist() == [4, 3, 2, 1, 2, 1, 2, 1, 1]
    assert overlapping(trace, "cpu_ops") == [8]


@pytest.mark.parametrize(
    ("starts", "durations", "parents"),
    [
        pytest.param([0, 0, 5, 5], [10, 5, 1, 5], [-1, 0, 3, 0], id="c9"),
        pytest.param([0, 0, 4, 5], [0, 5, 0, 0], [1, -1, 1, 1], id="c10"),
        pytest.param(
            [55, 61, 62, 85, 86, 86, 90, 91],
            [0, 15, 0, 1, 0, 0, 225181, 0],
            [-1, -1, 1, -1, 3, 4, -1, 6],
            id="c11",
        ),
    ],
)
def test_c9_c10_c11_ties(
    reading: Reading, starts: list[int], durations: list[int], parents: list[int]
) -> None:
    """If two events start at the same time, the longer one is the parent.

    An event of zero length at the edge of an event is nested in that event. Of two equal events,
    the second is nested in the first.
    """
    frame = frame_of(reading(tree(starts, durations)), with_stacks=True)
    assert frame["parent"].tolist() == parents


def test_c12_kernels_of_an_operator(reading: Reading) -> None:
    """An operator with two kernels has their total time (7 µs) and their span (5 to 15 µs)."""
    events = [
        host("op", 0, 20),
        host("cudaLaunchKernel", 1, cat="cuda_runtime", correlation=1),
        host("cudaLaunchKernel", 3, cat="cuda_runtime", correlation=2),
        device("k", 5, 4, correlation=1),
        device("k", 12, 3, correlation=2),
    ]
    op = frame_of(reading(events), with_stacks=True).loc[0]
    columns = ["num_kernels", "kernel_dur_sum", "first_kernel_start", "last_kernel_end"]
    assert list(op[[*columns, "kernel_span"]]) == [2, 7, 5, 15, 10]


def test_c13_children_that_end_behind_their_parent(reading: Reading) -> None:
    """Children that end after their parent keep their times (HTA trims them to 15, 10, 8, 6 and 5).

    Two events are marked as overlapping: 4 to 14 and 6 to 26.
    """
    events: list[Event] = []
    spans = zip([0, 2, 4, 6, 7], [15, 10, 10, 20, 8], [None, 0, 1, 2, 2], strict=True)
    for number, (start, duration, parent) in enumerate(spans):
        about = {"Python id": number, "Python parent id": parent}
        events.append(host(f"f{number}", start, duration, cat="python_function", **about))
    trace = reading(events)
    assert frame_of(trace)["dur"].tolist() == [15, 10, 10, 20, 8]
    assert overlapping(trace, "python_calls") == [2, 3]


@pytest.mark.parametrize(
    ("index", "kept"),
    [(1, {551}), ([1, 2, 3], {551, 552, 553}), (-1, set()), (5, set())],
)
def test_c14_filters_by_iteration(index: int | list[int], kept: set[int]) -> None:
    """The filter selects iterations by index, starting at 0."""
    frame = pd.DataFrame({"iteration": [-1, *range(550, 555)]})
    assert set(IterationIndexFilter(index)(frame)["iteration"]) == kept
    outside = frame.assign(iteration=-1)
    assert len(IterationIndexFilter(index)(outside)) == len(outside)


def test_c15_iterations(reading: Reading) -> None:
    """Iterations are sorted and distinct, and events outside of steps have no iteration."""
    steps = [host(f"ProfilerStep#{n}", 10 * n, 10, cat="user_annotation") for n in (2, 1, 3)]
    trace = reading([*steps, host("op", 12), host("op", 13), host("before", 0)])
    assert trace.get_iterations() == [1, 2, 3]
    assert trace.get_iterations(7) == []


def test_c17_symbols() -> None:
    """A search in a symbol table returns the ids of the symbols that start with a string."""
    table = TraceSymbolTable(["a", "b", "c", "b1", "b2", "b3", "a1"])
    assert table.matching("b") == {1, 3, 4, 5}
    assert table.matching(r"b\.") == set()


@pytest.mark.parametrize(
    ("events", "kept"),
    [
        ([{"ph": "M", "name": "process_name", "pid": 1}], 0),
        ([{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": t, "dur": 1} for t in (0, 2)], 2),
        ([host("a", 0), host("b", 2) | {"cat": None}, host("c", 4) | {"dur": None}], 1),
    ],
)  # fmt: skip
def test_c18_rows_of_the_frame(reading: Reading, events: list[Event], kept: int) -> None:
    """The frame has a row for each complete event with a category and a duration."""
    assert len(frame_of(reading(events))) == kept


def test_c19_commands_without_stream_or_launch(reading: Reading) -> None:
    """Commands without a stream or launch cause no idle time and belong to the step they start in.

    HTA uses the lane as the stream if a job has more than one step, but considers this deprecated.
    """
    events = [
        *(host(f"ProfilerStep#{n}", 50 * n - 50, 50, cat="user_annotation") for n in (1, 2, 3)),
        host(SUBMIT, 5, cat="mtia_runtime", correlation=1),
        device("k", 70, 5, cat="mtia_ccp_events", stream=3, correlation=1),
        *(device("dma_request", ts, 5, cat="mtia_ccp_events", tid=105) for ts in (20, 60)),
        device("dma_request", 120, 5, cat="mtia_ccp_events", tid=106, stream=9),
    ]
    for event in events[5:7]:
        del event["args"]["stream"]
    trace = reading(events, distributedInfo={"backend": "mtia:hccl", "rank": 0})
    frame = frame_of(trace)
    assert frame.loc[4:, ["stream", "iteration"]].to_numpy().tolist() == [
        [3, 1],
        [-1, 1],
        [-1, 2],
        [9, 3],
    ]
    assert set(trace.run("idle_time_breakdown", 0)["stream"]) == {3, 9}
    assert trace.run("idle_gaps", 0).empty
    assert trace.run("temporal_breakdown", 0)["non_compute_ns"].tolist() == [15_000]


@pytest.fixture
def reading(tmp_path: Path, request: pytest.FixtureRequest) -> Reading:
    """Return a function ``reading(events, **about)`` that writes a trace and opens it.

    The trace is closed after the test.
    """

    def read(events: list[Event], **about: Any) -> Trace:
        trace = write(tmp_path, events, **about)
        request.addfinalizer(trace.close)
        return trace

    return read
