"""``trace_events`` yields the same events whether it reads whole chunks or single events."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import ijson
import pytest

from hta_sql.errors import TraceError
from hta_sql.traces import whole_files
from hta_sql.traces.chunks import TraceReader
from hta_sql.traces.whole_files import trace_events
from tests.ingestion.test_whole_files import JOINED, file_of, texts

BROKEN = {"flaws_0", "flaws_1"}
"""Test traces that are deliberately invalid JSON, so other parsers cannot read them."""

TRACES = sorted(
    path
    for path in Path(__file__).parent.parent.joinpath("traces").glob("*.json")
    if path.stem not in BROKEN
)
NESTED = [
    json.dumps({"ph": "X", "name": "n", "args": {"list": [json.loads(text)] * count}}).encode()
    for count, text in enumerate(texts("n"), start=1)
]

FILES = {
    **{name: data for name, (data, _, _) in JOINED.items()},
    "events in lists of events": file_of([*texts("a"), *NESTED, *texts("b")]),
    "a broken event": file_of([*texts("a"), b'{"ph": "X", "dur": }', *texts("b")]),
    "no number": file_of([*texts("a"), b'{"ph": "X", "dur": NaN}']),
}


def told(path: Path) -> tuple[list[str], str]:
    """Return the events as JSON strings, and the error message if reading failed."""
    found: list[str] = []
    try:
        found.extend(json.dumps(event) for event in trace_events(str(path)))
    except TraceError as error:
        return found, str(error)
    return found, ""


@pytest.mark.parametrize("chunk_bytes", [150, 700, 1 << 18])
@pytest.mark.parametrize("name", FILES)
def test_as_event_by_event(
    name: str, chunk_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The events and the error are the same as if each event were read separately."""
    path = tmp_path / "trace.json"
    path.write_bytes(FILES[name])
    in_chunks = partial(TraceReader, chunk_bytes=chunk_bytes)
    monkeypatch.setattr(whole_files, "TraceReader", in_chunks)
    events, error = told(path)

    def walking(stream: BinaryIO, name: str, **options: Any) -> TraceReader:
        return in_chunks(stream, name, **options | {"careful": True})

    monkeypatch.setattr(whole_files, "TraceReader", walking)
    walked, expected = told(path)
    assert error == expected
    assert events[: len(walked)] == walked


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_as_another_parser(path: Path) -> None:
    """The events equal those of an independent streaming parser."""
    with path.open("rb") as file:
        prefix = "item" if file.read(1) == b"[" else "traceEvents.item"
        file.seek(0)
        expected = list(ijson.items(file, prefix, use_float=True))
    if expected:
        assert list(trace_events(str(path))) == expected
