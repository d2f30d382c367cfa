"""Tests of hardware counters from PM sampling: in the store, by kernel, and in redacted copies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.exports.redaction.names import Redactor
from hta_sql.exports.redaction.traces import redact_trace

TRACE = Path(__file__).parent / "traces" / "pm_sampling.json"
STORED = "SELECT name, category, device, ts, value FROM counters ORDER BY event_id, series"


@pytest.mark.parametrize("reader", ["1", "0"])
def test_a_sample_has_its_device_and_category(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both readers get the device from the process id, whether it is a string or a number."""
    monkeypatch.setenv("HTA_SQL_NATIVE", reader)
    with hta_sql.ingest({0: str(TRACE)}, tmp_path / "job.store") as store:
        rows = store.sql(
            "SELECT category, device, count(*) AS n FROM counters GROUP BY ALL ORDER BY ALL"
        ).rows()
        series = store.sql("SELECT series FROM counters WHERE category = 'mtia_counters'").rows()
    assert rows == [
        ("hardware_counters", 0, 14),
        ("hardware_counters", 1, 4),
        ("mtia_counters", 0, 2),
    ]
    assert sorted(series) == [("dpe",), ("hbm",)]


def test_planted_values_of_two_devices_come_out_exactly(tmp_path: Path) -> None:
    """For 1,000 launches per device, sampled every 1 ms, the mean is exactly the planted value."""
    events: list[dict[str, Any]] = []
    planted = {}
    for device in (0, 1):
        for at in range(1000):
            name = f"kernel_{at % 4}"
            value = 10 * (at % 4) + device + 0.125
            planted[device, name] = value
            args = {"device": device, "stream": 7, "correlation": 1000 * device + at + 1}
            common = {"ts": 1000 * at, "tid": 7}
            events.append(
                {"ph": "X", "cat": "kernel", "name": name, "pid": device, "dur": 400, "args": args}
                | common
            )
            events.append(
                {"ph": "C", "cat": "hardware_counters", "name": "sm__cycles_active.avg"}
                | {"pid": f"GPU {device} Counters", "args": {"": value}}
                | common
            )
    (tmp_path / "rank0.json").write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    with hta_sql.ingest(tmp_path / "rank0.json", tmp_path / "job.store") as store:
        rows = store.run("kernel_counters").arrow().to_pylist()
    assert {(row["device"], row["name"]): row["mean_value"] for row in rows} == planted
    assert {row["sample_count"] for row in rows} == {250}
    assert {row["running_pct"] for row in rows} == {40.0}


def test_a_redacted_trace_has_the_same_samples(tmp_path: Path) -> None:
    """Counter names and devices are public, so a redacted trace has the same samples."""
    found = []
    redact_trace(str(TRACE), tmp_path / "redacted.json", Redactor("key"))
    for path in (TRACE, tmp_path / "redacted.json"):
        with hta_sql.ingest({0: str(path)}, tmp_path / f"{path.stem}.store") as store:
            query = STORED.replace("ORDER", "WHERE category = 'hardware_counters' ORDER")
            found.append(store.sql(query).rows())
    assert found[0] == found[1]
