"""Tests of findings that use the header of a trace or the end of its file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hta_sql.authoring.golden_messages import render

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hta_sql.store.query.trace_store import TraceStore

OPERATOR = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2}


def finding(store: TraceStore, name: str) -> dict[str, Any]:
    """Return the only finding with a given name."""
    (row,) = [row for row in store.run("findings").records() if row["finding"] == name]
    return row


@pytest.mark.parametrize(
    ("header", "name", "code"),
    [
        ({}, "no_memory_events", "no_memory_events"),
        ({"profile_memory": 1}, "no_memory_events", "no_memory_events_recorded"),
        ({}, "no_stacks", "no_stacks"),
        ({"with_stack": 1}, "no_stacks", "no_stacks_recorded"),
        ({}, "no_shapes", "no_shapes"),
        ({"record_shapes": 1}, "no_shapes", "no_shapes_recorded"),
    ],
)
def test_an_option_that_was_on_is_no_remedy(
    header: dict[str, int],
    name: str,
    code: str,
    ingest_trace: Callable[..., TraceStore],
    tmp_path: Path,
) -> None:
    """No remedy suggests an option that was on according to the header."""
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({**header, "traceEvents": [OPERATOR]}), encoding="utf-8")
    with ingest_trace({0: path}) as store:
        remedy = render(f"findings.{code}", column="remedy")
        assert finding(store, name)["remedy"] == remedy


def test_a_truncated_file_is_called_so(
    ingest_trace: Callable[..., TraceStore], tmp_path: Path
) -> None:
    """A file with two events and the start of a third is reported as truncated."""
    path = tmp_path / "trace.json"
    text = json.dumps({"traceEvents": [OPERATOR] * 3})
    path.write_text(text[: text.rindex("aten")], encoding="utf-8")
    with ingest_trace({0: path}) as store:
        message = finding(store, "lost_spans")["message"]
        (loss,) = store.sql("SELECT reason FROM quarantine ORDER BY byte_offset LIMIT 1").rows()
        first = {"event_count": 3, "byte_offset": 195, "loss": loss[0]}
        assert message == render("findings.lost_end", first)


def test_an_empty_device_name_is_unknown(
    ingest_trace: Callable[..., TraceStore], tmp_path: Path
) -> None:
    """An empty device name is stored as NULL."""
    path = tmp_path / "trace.json"
    device = {"id": 0, "name": "", "numSms": 3}
    trace = {"deviceProperties": [device], "traceEvents": [OPERATOR]}
    path.write_text(json.dumps(trace), encoding="utf-8")
    with ingest_trace({0: path}) as store:
        assert store.sql("SELECT device, name FROM devices").rows() == [(0, None)]
