"""Charts over time show two recordings one after the other, without the time between them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import hta_sql
from hta_sql.charts import draw


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("gpu_timeline", ("start", "end")),
        ("memory_curve", ("time",)),
        ("queue_length_series", ("time",)),
        ("utilization_over_time", ("low", "high")),
    ],
)
def test_recordings_are_drawn_one_behind_the_other(
    joined: hta_sql.TraceStore, name: str, columns: tuple[str, ...]
) -> None:
    """All times in a chart are within the recorded 400 µs; the title mentions the omitted gap."""
    last: dict[str, Any] = {"include_last_profiler_step": True}
    given = {} if name in {"memory_curve", "utilization_over_time"} else last
    chart = draw(joined.run(name, **given)).to_dict()
    rows = [row for part in chart["datasets"].values() for row in part]
    times = [row[column] for row in rows for column in columns if column in row]
    assert 200 < max(times) <= 400
    assert "without the time between them" in json.dumps(chart["title"])
    # A single recording has no gap to omit.
    single = draw(joined.run(name, steps=[1], **given)) if name != "utilization_over_time" else None
    assert single is None or "without the time" not in json.dumps(single.to_dict()["title"])
