"""Events are written identically with and without known field offsets."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from hta_sql.errors import TraceError
from hta_sql.traces.compiled import SWITCH
from hta_sql.traces.event_offsets import KEYS, count_events, event_offsets, events_of
from hta_sql.traces.events import Event
from hta_sql.traces.rewriting import rewrite_trace
from tests.fuzz.events import changed_event
from tests.ingestion.corpus import faults
from tests.ingestion.readers import needs_native

if TYPE_CHECKING:
    from collections.abc import Callable

TRACES = sorted(
    path
    for path in (Path(__file__).parents[1] / "traces").rglob("*.json*")
    if not {"hangs", "hang_states", "snapshots"} & set(path.parts)  # not dumps or memory snapshots
)


def marked(event: Event) -> bytes | None:
    """Change an event in one of six ways, depending on its number."""
    match event.event_id % 6:
        case 0:
            return event.with_args(critical=1, step=None)
        case 1:
            return event.replace(name="é", args={}, bp="e")
        case 2:
            return event.changed(tid=7, ts=1).replace(pid="GPU")
        case 3:
            return event.replace(name=event.get("cat"), dur=event.get("dur"), ph=event.get("ph"))
        case 4:
            return None if event.get("ph") == "M" or "args" not in event else event.text
    return event.replace(name=event.member("name")) if "name" in event else event.text


CHANGES: dict[str, Callable[[Event], bytes | None] | None] = {"none": None, "some": marked}


@needs_native
@pytest.mark.parametrize("change", CHANGES)
def test_traces_are_written_alike_with_and_without_places(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rewritten trace and its report are identical with and without known offsets."""
    written: list[list[Any]] = []
    for switch in ("1", "0"):
        monkeypatch.setenv(SWITCH, switch)
        written.append([_written(path, tmp_path / "out", CHANGES[change]) for path in TRACES])
    assert written[0] == written[1]
    assert Counter(map(type, written[0]))[tuple] > 0.9 * len(TRACES)


def _written(path: Path, target: Path, change: Callable[[Event], bytes | None] | None) -> Any:
    try:
        report = rewrite_trace(str(path), target, change=change)
    except TraceError as error:
        return str(error)
    return report, target.read_bytes()


@needs_native
@pytest.mark.parametrize("seed", range(3))
def test_places_of_changed_events(seed: int) -> None:
    """After random changes, any recorded field offsets agree with what Python parses."""
    random = Random(seed)
    texts = [b",".join(changed_event(random) for _ in range(3)) for _ in range(400)]
    texts += [fault.text for fault in faults()]
    placed = [text for text in texts if _is_placed(text)]
    assert 100 < len(placed) < len(texts)


def _is_placed(text: bytes) -> bool:
    """Return whether events have offsets, and assert that these match Python's parser."""
    found = event_offsets(text)
    if found is None:
        return False
    parsed = json.loads(b"[" + text + b"]", parse_constant=_refused)
    assert count_events(found) == len(parsed)
    for fields, (source, places) in zip(parsed, events_of(text, found), strict=True):
        event = Event(0, source, None, places)
        assert event.fields == fields
        assert {key: event.get(key) for key in KEYS} == {key: fields.get(key) for key in KEYS}
        assert {key for key in KEYS if key in event} == {key for key in KEYS if key in fields}
    return True


def _refused(constant: str) -> None:
    raise AssertionError(constant)


@needs_native
@pytest.mark.parametrize(
    "text",
    [
        b'{"a": 1',
        b'{"a": 1},',
        b'{"a": 1}, 2',
        b'{"a": 1} {"a": 2}',
        b'[{"a": 1}]',
        b'{"a": 01}',
        b'{"a": "\x01"}',
        b'{"a": "\\ud800"}',
        b'{"a": "\xff"}',
        b'{"name": 1, "name": 2}',
        b'{"n\\u0061me": 1}',
        b'{"a": nan}',
        b'{"a": ' * 70 + b"1" + b"}" * 70,
    ],
)
def test_what_is_not_plain_has_no_places(text: bytes) -> None:
    """Events that Python parses differently, or cannot parse, have no offsets."""
    assert event_offsets(text) is None
