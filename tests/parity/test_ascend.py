"""A recorded Ascend job agrees with its own profiler's "Overlap Analysis" rows."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql import TraceStore
from tests.parity.jobs import TRACES

JOB = TRACES / "ascend_level0_2rank"
pytestmark = pytest.mark.skipif(not JOB.is_dir(), reason="the public traces are not here")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest the job."""
    with hta_sql.ingest(JOB, tmp_path_factory.mktemp("ascend") / "ascend.store") as opened:
        yield opened


def events_of(source: str) -> list[dict[str, Any]]:
    """Parse a trace with the json module, keeping decimals exact."""
    events: list[dict[str, Any]] = json.loads(
        gzip.decompress(Path(source).read_bytes()), parse_float=Decimal
    )
    return events


def sources(store: TraceStore) -> dict[int, list[dict[str, Any]]]:
    """Return rank ─▶ events of its trace."""
    return {
        rank: events_of(source)
        for rank, source in store.sql("SELECT rank, source FROM ranks").rows()
    }


def test_times_are_those_of_the_recorder(store: TraceStore) -> None:
    """Compute time and exposed communication agree, except for the rounding of each interval."""
    rows = store.run("temporal_breakdown", include_last_profiler_step=True).arrow().to_pylist()
    ours = {row["rank"]: row for row in rows}
    for rank, events in sources(store).items():
        theirs: Counter[str] = Counter()
        for event in events:
            if event["ph"] == "X" and "cat" not in event:
                theirs[event["name"]] += int(Decimal(event["dur"]) * 1000)
        # 345 and 152 intervals, each rounded by at most a nanosecond at both ends.
        assert abs(ours[rank]["compute_ns"] - theirs["Computing"]) <= 2 * 345
        exposed = ours[rank]["exposed_communication_ns"]
        assert abs(exposed - theirs["Communication(Not Overlapped)"]) <= 2 * 152


def test_every_kernel_has_its_launch_and_operator(store: TraceStore) -> None:
    """Each kernel is linked to the operator from which torch_npu draws an arrow to it."""
    ops = "SELECT rank, event_id FROM cpu_ops"
    known = set(store.sql(ops).rows())
    query = (
        "SELECT g.rank, g.event_id, g.op_id, g.launch_id FROM gpu_ops AS g"
        " WHERE g.class IN ('computation', 'communication')"
    )
    linked = {(rank, event): (op, launch) for rank, event, op, launch in store.sql(query).rows()}
    assert all((rank, op) in known for (rank, _), (op, _) in linked.items())
    for rank, events in sources(store).items():
        at = {
            (event["pid"], event["tid"], event["ts"]): number
            for number, event in enumerate(events)
            if event["ph"] == "X" and event.get("cat") in (None, "cpu_op")
        }
        arrows = [event for event in events if event.get("cat") == "async_npu"]
        starts = {arrow["id"]: arrow for arrow in arrows if arrow["ph"] == "s"}
        ends = [arrow for arrow in arrows if arrow["ph"] == "f"]
        assert len(ends) == 349
        for end in ends:
            start = starts[end["id"]]
            operator = at[start["pid"], start["tid"], start["ts"]]
            kernel = at[end["pid"], end["tid"], end["ts"]]
            op, launch = linked[rank, kernel]
            assert launch is not None
            assert op == operator, (rank, kernel)


def test_every_event_stays(store: TraceStore) -> None:
    """Events that are moved to another table are neither duplicated nor lost."""
    rows = store.sql("SELECT rank, count(*), count(DISTINCT event_id) FROM events GROUP BY ALL")
    assert sorted(rows.rows()) == [(rank, 7969, 7969) for rank in (0, 1)]
