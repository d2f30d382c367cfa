"""Two recordings of each rank as one run, checked by hand and against separate runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import hta_sql
from hta_sql.critical_path import critical_path
from tests.spans.two_spans import GAP_US, write_spans

US = 1000


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """Ingest each recording as a separate run."""
    folder = tmp_path_factory.mktemp("apart")
    traces = write_spans(folder / "job")
    with hta_sql.ingest(traces, folder / "job.store", jobs=1) as store:
        yield store


def rows(store: hta_sql.TraceStore, name: str, *columns: str, **parameters: Any) -> list[Any]:
    """Return columns of an analysis as tuples."""
    table = store.run(name, **parameters).arrow().select(list(columns)).to_pylist()
    return [tuple(row.values()) for row in table]


ALL: dict[str, Any] = {"include_last_profiler_step": True}


def test_one_run_with_two_spans_of_each_rank(joined: hta_sql.TraceStore) -> None:
    """A rank has one row, and its recordings are rows of rank_spans with their real times."""
    assert joined.runs() == ["job"]
    ranks = joined.sql("SELECT rank, event_count, dur, drops_last_step FROM ranks ORDER BY rank")
    assert ranks.rows() == [(0, 40, 2 * 200 * US, True), (1, 40, 2 * 200 * US, True)]
    spans = joined.sql(
        "SELECT rank, span, offset_ns, dur, first_event_id FROM rank_spans ORDER BY ALL"
    )
    assert spans.rows() == [
        (rank, span, span * GAP_US * US, 200 * US, span << 32) for rank in (0, 1) for span in (0, 1)
    ]
    run = joined.sql("SELECT rank_count, dur, event_count, step_count FROM runs").rows()
    assert run == [(2, 400 * US, 80, 4)]


def test_no_event_is_lost_and_ids_are_unique(joined: hta_sql.TraceStore) -> None:
    """No event is lost, and ids are unique. Devices and process groups are not duplicated."""
    counts = (
        "SELECT rank, count(*), count(DISTINCT event_id) FROM events GROUP BY rank ORDER BY rank"
    )
    assert joined.sql(counts).rows() == [(0, 40, 40), (1, 40, 40)]
    assert joined.sql("SELECT count(*) FROM devices").rows() == [(2,)]
    assert joined.sql("SELECT count(*) FROM process_groups").rows() == [(2,)]


def test_launches_stay_in_their_span(joined: hta_sql.TraceStore) -> None:
    """Each kernel has the launch of its own recording, although correlation ids restart."""
    crossing = (
        "SELECT count(*), count_if(lib.span_of(g.launch_id) = g.span), count_if(lib.span_of(g.op_id) = g.span) "
        "FROM gpu_ops AS g"
    )
    assert joined.sql(crossing).rows() == [(16, 16, 16)]
    linked = joined.run("trace_events", **ALL).arrow().to_pylist()
    spans = {
        (e["event_id"] >> 32, e["linked_event_id"] >> 32) for e in linked if e["linked_event_id"]
    }
    assert spans == {(0, 0), (1, 1)}


def test_each_span_leaves_out_its_last_step(joined: hta_sql.TraceStore) -> None:
    """The last step of each recording is excluded, because its kernels may be truncated."""
    assert rows(joined, "profiler_steps", "rank", "step") == [(0, 1), (0, 3), (1, 1), (1, 3)]


def test_time_between_spans_is_nobodys(joined: hta_sql.TraceStore) -> None:
    """Time between recordings is neither idle nor waiting, and is part of no denominator."""
    breakdown = ("rank", "span_ns", "compute_ns", "exposed_communication_ns", "idle_ns", "idle_pct")
    assert rows(joined, "temporal_breakdown", *breakdown, **ALL) == [
        (0, 300 * US, 80 * US, 80 * US, 140 * US, pytest.approx(100 * 140 / 300)),
        (1, 300 * US, 80 * US, 40 * US, 180 * US, pytest.approx(100 * 180 / 300)),
    ]
    gaps = joined.sql(
        "SELECT rank, stream, sum(gap_count), sum(idle_ns) "
        "FROM idle_time_breakdown(include_last_profiler_step := true) GROUP BY ALL ORDER BY ALL"
    )
    assert gaps.rows() == [
        (0, 7, 2, 160 * US),
        (0, 20, 2, 160 * US),
        (1, 7, 2, 160 * US),
        (1, 20, 2, 180 * US),
    ]
    causes = "SELECT rank, sum(idle_ns) FROM idle_causes(include_last_profiler_step := true) GROUP BY rank ORDER BY rank"
    assert joined.sql(causes).rows() == [(0, 4 * 60 * US), (1, 4 * 70 * US)]
    queues = ("rank", "stream", "waiting_ns", "span_ns", "max_length")
    assert rows(joined, "queue_length_summary", *queues, **ALL) == [
        (0, 7, 4 * 15 * US, 2 * 115 * US, 1),
        (0, 20, 4 * 22 * US, 2 * 122 * US, 1),
        (1, 7, 4 * 15 * US, 2 * 115 * US, 1),
        (1, 20, 4 * 32 * US, 2 * 132 * US, 1),
    ]
    ((longest,),) = joined.sql(
        "SELECT max(dur) FROM queue_length_series(include_last_profiler_step := true)"
    ).rows()
    assert longest < 100 * US


def test_buckets_are_where_something_was_recorded(joined: hta_sql.TraceStore) -> None:
    """No bucket lies between the recordings, and all buckets sum to the recorded time."""
    buckets = joined.sql(
        "SELECT rank, count(*), sum(observed_ns), sum(busy_ns), max(dur_ns) "
        "FROM utilization_over_time(bucket_count := 10) GROUP BY rank ORDER BY rank"
    )
    assert buckets.rows() == [
        (0, 10, 300 * US, 160 * US, 30 * US),
        (1, 10, 300 * US, 120 * US, 30 * US),
    ]


def test_steps_and_collectives_are_of_their_span(joined: hta_sql.TraceStore) -> None:
    """Collectives match within a recording, although their sequence numbers restart."""
    accounted = ("rank", "step", "step_ns", "compute_ns", "exposed_transfer_ns", "exposed_wait_ns")
    assert rows(joined, "step_accounting", *accounted, **ALL) == [
        (rank, step, 100 * US, 20 * US, 10 * US, (10 if rank == 0 else 0) * US)
        for rank in (0, 1)
        for step in (1, 2, 3, 4)
    ]
    matched = joined.sql(
        "SELECT collective_id, list(span ORDER BY rank), max(wait_ns), bool_or(is_startup) "
        "FROM matched_collectives GROUP BY collective_id ORDER BY collective_id"
    )
    assert matched.rows() == [
        (1, [0, 0], 10 * US, True),
        (2, [0, 0], 10 * US, False),
        (3, [1, 1], 10 * US, True),
        (4, [1, 1], 10 * US, False),
    ]
    assert rows(
        joined, "stragglers", "rank", "collective_count", "wait_ns", "last_arrival_count"
    ) == [
        (0, 2, 2 * 10 * US, 0),
        (1, 2, 0, 2),
    ]


def test_what_was_allocated_before_the_gap_is_no_block_after_it(joined: hta_sql.TraceStore) -> None:
    """After the gap, the same address is a new block, because frees in the gap are unknown."""
    blocks = joined.sql(
        "SELECT state, count(*), max(lifetime_ns) FROM memory_allocations() WHERE rank = 0 GROUP BY state ORDER BY state"
    )
    assert blocks.rows() == [
        ("freed", 4, 16 * US),
        ("held before", 2, None),
        ("held to the end", 2, None),
    ]
    peaks = ("rank", "peak_allocated_bytes", "peak_ts", "before_bytes", "end_bytes")
    assert rows(joined, "memory_peaks", *peaks) == [
        (rank, 800, 12 * US, 600, 600) for rank in (0, 1)
    ]
    live = rows(joined, "live_at_peak", "state", "bytes", ranks=[0])
    assert sorted(live) == [("freed later", 300), ("held before and never freed", 500)]
    assert len(rows(joined, "memory_curve", "ts", ranks=[0])) == 12


def test_a_step_of_the_second_span_has_its_own_critical_path(
    joined: hta_sql.TraceStore, apart: hta_sql.TraceStore
) -> None:
    """A step has the same critical path as in a separate run; a longer path excludes the gap."""

    def path(store: hta_sql.TraceStore, run: str, **window: Any) -> list[tuple[str, float]]:
        graph = critical_path(store, 0, run, include_last_profiler_step=True, **window)
        assert graph is not None
        return [(edge.type.value, edge.weight) for edge in graph.critical_path_edges_set]

    one = path(joined, "job", annotation="ProfilerStep#3")
    assert sorted(one) == sorted(path(apart, "job-capture2", annotation="ProfilerStep#3"))
    whole = sum(weight for _, weight in path(joined, "job"))
    runs = [sum(weight for _, weight in path(apart, run)) for run in apart.runs()]
    assert whole == sum(runs)


@pytest.mark.parametrize(
    ("name", "keys", "sums"),
    [
        ("operator_table", "rank, name", "call_count, host_self_ns, host_total_ns, device_self_ns"),
        ("gpu_kernels_by_name", "rank, name", "kernel_count, sum_ns"),
        ("step_accounting", "rank", "step_ns, compute_ns, exposed_wait_ns, idle_before_ns"),
        ("idle_causes", "rank, cause, name, call", "idle_ns, gap_count"),
        ("temporal_breakdown", "rank", "span_ns, idle_ns, compute_ns"),
    ],
)
def test_answers_are_the_sums_of_the_runs(
    joined: hta_sql.TraceStore, apart: hta_sql.TraceStore, name: str, keys: str, sums: str
) -> None:
    """Answers are the sums over the separate runs, with and without the last steps."""
    added = ", ".join(f"sum({column.strip()})" for column in sums.split(","))
    for last in ("true", "false"):
        query = (
            f"SELECT {keys}, {added} FROM {name}(include_last_profiler_step := {last}) "  # noqa: S608 - ours
            "GROUP BY ALL ORDER BY ALL"
        )
        assert joined.sql(query).rows() == apart.sql(query).rows() != []
