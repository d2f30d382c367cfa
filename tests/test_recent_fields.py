"""Tests that fields and categories that Kineto added since 2025 are stored.

They have a column, or are stored whole in event_args or other_events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import hta_sql

TRACE = Path(__file__).parent / "traces" / "recent_fields.json"


@pytest.fixture(scope="module", params=["compiled", "SQL"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[hta_sql.TraceStore]:
    """Ingest the trace with each of the two readers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HTA_SQL_NATIVE", "1" if request.param == "compiled" else "0")
        with hta_sql.ingest({0: str(TRACE)}, tmp_path_factory.mktemp("job") / "store") as opened:
            yield opened


def test_arguments_without_a_column_are_complete_in_event_args(
    store: hta_sql.TraceStore,
) -> None:
    """Arguments such as priority, channel and occupancy are stored whole in event_args."""
    rows = store.sql("SELECT event_id, args FROM event_args ORDER BY event_id").rows()
    found = {event: json.loads(args) for event, args in rows if args}
    assert found[0]["Comms Id"] == 42
    assert found[0]["Rank"] == 3
    assert found[0]["Is asynchronized op"] is True
    assert (found[1]["priority"], found[1]["channel"], found[1]["channel_type"]) == (-1, 2, 1)
    assert found[1]["occupancy"]["activeBlocksPerMultiprocessor"] == 4
    assert (found[5]["fromDevice"], found[5]["toDevice"]) == (0, 1)


def test_categories_without_a_table_are_complete_in_other_events(
    store: hta_sql.TraceStore,
) -> None:
    """Events of unknown categories are stored with all arguments in other_events.

    The trace has host synchronizations and collectives of XPUs, and CUDA event records.
    """
    rows = store.sql("SELECT category, name, args FROM other_events ORDER BY event_id").rows()
    assert [(category, name) for category, name, _ in rows] == [
        ("xpu_sync", "zeEventHostSynchronize"),
        ("collective_comm", "xccl::allreduce"),
        ("cuda_event", "cudaEventRecord"),
    ]
    assert [json.loads(args) for *_, args in rows] == [
        {"Type": "HOST_EVENT"},
        {"communicator_id": 3},
        {"event_id": 9},
    ]


def test_counters_of_a_kernel_on_xpus_are_no_second_kernel(store: hta_sql.TraceStore) -> None:
    """XPU counters, which Kineto writes as a second kernel, do not count as device time."""
    rows = store.run("kernel_table").arrow().to_pylist()
    assert [(row["name"], row["sum_ns"]) for row in rows] == [("gemm", 20_000)]
    assert store.sql("SELECT device, value FROM counters ORDER BY ts").rows() == [
        (0, 71.5),
        (0, 0.0),
    ]
