"""Rewriting a trace loses no event, preserves every digit and always produces valid JSON."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hta_sql.errors import ParameterError, TraceError
from hta_sql.overlay import Event, microseconds, output_path, rewrite_trace, trace_event
from tests.examples import examples
from tests.ingestion.reading import Reading
from tests.ingestion.small_trace import EVENTS, HEADER, TRAILER, document

if TYPE_CHECKING:
    from collections.abc import Iterator

ADDED = trace_event("C", "Queue", ts=1727000000123456789, pid=0, id=7, args={"n": 3})
LAYOUTS: dict[str, bytes] = {
    "compact": document(separators=(",", ":")),
    "spaced": document(),
    "indented": document(indent=2),
    "bare list": json.dumps(EVENTS).encode(),
    "byte order mark": b"\xef\xbb\xbf" + document(),
    "events first": json.dumps({"traceEvents": EVENTS, **HEADER, **TRAILER}).encode(),
    "no events": document([]),
    "unescaped": document(ensure_ascii=False),
}


def rewritten(folder: Path, data: bytes, **options: Any) -> tuple[Any, Any]:
    """Rewrite a trace from bytes; return the report and the parsed result."""
    source, target = folder / "trace.json", folder / "out.json.gz"
    source.write_bytes(data)
    report = rewrite_trace(str(source), target, **options)
    return report, json.loads(gzip.decompress(target.read_bytes()))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_is_as_it_was_and_the_new_events_follow(layout: str, tmp_path: Path) -> None:
    """In every layout, the original keys and events are preserved and new events are appended."""
    original = json.loads(LAYOUTS[layout].decode("utf-8-sig"))
    report, result = rewritten(tmp_path, LAYOUTS[layout], extra_events=lambda: [ADDED])
    events = original if layout == "bare list" else original["traceEvents"]
    events.append(json.loads(ADDED))
    assert result == original
    assert (report.events, report.added) == (len(events) - 1, 1)
    assert (report.repaired, report.lost_count) == (0, 0)


def test_the_text_of_each_event_is_kept_byte_for_byte(tmp_path: Path) -> None:
    """The text of an event is preserved, including spaces and numbers that no float represents."""
    odd = (
        b'{ "ph":"X","ts":1700000000123456.78901234567890,"x":1e400,"dur" : 0.10,"n":"\\u00e9\\/" }'
    )
    data = b'{"traceEvents": [' + odd + b" ,\n" + odd + b'], "z": 1.10}'
    (tmp_path / "t.json").write_bytes(data)
    for change in (None, lambda event: event.text):
        rewrite_trace(str(tmp_path / "t.json"), tmp_path / "out.json", change=change)
        written = (tmp_path / "out.json").read_bytes()
        assert written.count(odd) == 2
        assert written.endswith(b'], "z": 1.10}\n')


def test_events_are_dropped_and_changed_by_their_position(tmp_path: Path) -> None:
    """Returning None drops an event, returning text replaces it, and others stay unchanged."""

    def change(event: Event) -> bytes | None:
        assert event.fields == EVENTS[event.event_id]
        if event.event_id == 2:
            return None
        return event.with_args(critical=1) if event.event_id in {0, 14} else event.text

    report, result = rewritten(tmp_path, document(), change=change)
    wanted = [dict(event) for event in EVENTS]
    wanted[0]["args"] = {"name": "py", "critical": 1}
    wanted[14]["args"] = {"critical": 1}
    del wanted[2]
    assert result["traceEvents"] == wanted
    assert (report.events, report.dropped, report.changed) == (len(EVENTS), 1, 2)


def test_an_argument_is_set_without_touching_a_digit() -> None:
    """``with_args`` adds or replaces arguments without changing any other text of the event."""
    for before, after in {
        '{"ts": 1.10}': '{"ts": 1.10, "args": {"a": 1}}',
        '{"ts": 1.10, "args": {}}': '{"ts": 1.10, "args": {"a": 1}}',
        '{"args": { "b": 0.10 } , "ts": 1.10}': '{"args": { "b": 0.10, "a": 1} , "ts": 1.10}',
        '{"args": {"a": [1.0, {}], "b": 2}}': '{"args": {"a": 1, "b": 2}}',
        '{"args": null, "x": "}"}': '{"args": {"a": 1}, "x": "}"}',
        "{}": '{"args": {"a": 1}}',
        '{"name": "a\\"}b"}': '{"name": "a\\"}b", "args": {"a": 1}}',
        '{"name": "args", "args": 1}': '{"name": "args", "args": {"a": 1}}',
        '{"name": "\\"args\\":1", "args": 1}': '{"name": "\\"args\\":1", "args": {"a": 1}}',
        '{"\\u0061rgs": {}, "x": {"args": 1}}': '{"\\u0061rgs": {"a": 1}, "x": {"args": 1}}',
        '{"args": 1, "args": {"b": 2}}': '{"args": 1, "args": {"b": 2, "a": 1}}',
        '{"args": {"b": {"a": 0}, "c": [[{"a": 3}]]}}': (
            '{"args": {"b": {"a": 0}, "c": [[{"a": 3}]], "a": 1}}'
        ),
        '{"args": {"b": {"a": 0}, "a": [[1], {"a": 3}]}}': '{"args": {"b": {"a": 0}, "a": 1}}',
    }.items():
        event = Event(0, before.encode(), json.loads(before))
        assert event.with_args(a=1).decode() == after
    event = Event(0, b'{"name": "k", "ts": 1.10}', {"name": "k", "ts": 1.1})
    assert event.replace(name="\udc00", pid=3) == b'{"name": "\\udc00", "ts": 1.10, "pid": 3}'


def test_times_are_decimal_microseconds() -> None:
    """Times in nanoseconds are written in microseconds without losing a digit."""
    assert microseconds(1727000000123456789) == "1727000000123456.789"
    assert [microseconds(ns) for ns in (0, 5, -5, -1001, 12_000)] == [
        *("0.000", "0.005", "-0.005", "-1.001", "12.000")
    ]
    assert json.loads(trace_event("X", 'a"b', ts=1500, dur=20, pid="Spans", tid=None)) == {
        "ph": "X",
        "name": 'a"b',
        "ts": 1.5,
        "dur": 0.02,
        "pid": "Spans",
    }


def broken_documents() -> Iterator[tuple[str, bytes]]:
    """Yield copies of the small trace, each with a fault in a different position."""
    whole = document()
    texts = [json.dumps(event).encode() for event in EVENTS]
    for number in (0, 5, len(EVENTS) - 1):
        yield f"event {number} without end", whole.replace(texts[number], texts[number][:-1])
        yield f"event {number} without quote", whole.replace(texts[number], texts[number][:9])
    yield "not UTF-8", whole.replace(b"aten::mm", b"aten::\xff\xfe")
    yield "control character", whole.replace(b"aten::mm", b"aten\x01::mm")
    yield "nan", whole.replace(b'"depth": 3', b'"depth": nan').replace(b": 4096", b": -Infinity")
    yield "trailing comma", whole.replace(b'"depth": 3', b'"depth": 3,}, "y": {"z": 1,')
    yield "cut off", whole[: whole.index(b"brand_new")]
    yield "cut off behind an event", whole[: whole.index(b', {"ph": "X", "cat": "brand_new"')]
    yield "broken header", whole.replace(b'"world_size": 2', b'"world_size": ?')
    yield "broken trailer", whole.replace(b'"traceName": ', b'"traceName": ?')
    yield "a file cut off before a whole one", whole[: whole.index(texts[5])] + whole
    yield "events in lists", whole.replace(texts[5], b"[" + texts[5] + b"], [" + texts[5] + b"]")
    yield "list cut off", json.dumps(EVENTS).encode()[:-40]


BROKEN = dict(broken_documents())


@pytest.mark.parametrize("change", [False, True])
@pytest.mark.parametrize("case", BROKEN)
def test_broken_traces_come_out_valid_with_the_event_ids_of_ingest(
    case: str, change: bool, tmp_path: Path
) -> None:
    """Event ids match those of the ingest, and the rewritten trace lists the lost events."""
    seen: dict[int, Any] = {}

    def note(event: Event) -> bytes:
        seen[event.event_id] = event.fields.get("name")
        return event.text

    (tmp_path / "trace.json").write_bytes(BROKEN[case])
    reading = Reading(tmp_path / "trace.json")
    options: dict[str, Any] = {"change": note} if change else {}
    report, result = rewritten(
        tmp_path, BROKEN[case], expect_events=reading.result.event_count, **options
    )
    events = result if isinstance(result, list) else result["traceEvents"]
    assert len(events) == len(reading.kept)
    lost = [] if isinstance(result, list) else result.get("hta_sql", {"lost": []})["lost"]
    assert report.lost_count == len(reading.lost)
    if not isinstance(result, list):
        assert {entry["event_id"] for entry in lost} == reading.lost
    if change:
        assert [seen[number] for number in sorted(seen)] == reading.names
        assert set(seen) == reading.kept
    if "cut off" not in case and case not in {"broken header", "broken trailer"}:
        assert result["traceName"] == TRAILER["traceName"]


def test_chunks_are_read_carefully_where_a_cut_was_doubtful(tmp_path: Path) -> None:
    """Lists that look like events cause a wrong cut between chunks, which is corrected."""
    inner = [{"ph": str(i), "cat": "x" * 50} for i in range(20_000)]
    events = [{"ph": "X", "cat": "a", "ts": i, "dur": 1, "args": {"l": inner}} for i in range(2)]
    report, result = rewritten(tmp_path, json.dumps({"traceEvents": events}).encode())
    assert result == {"traceEvents": events}
    assert report.events == 2


def test_the_result_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    """If rewriting fails, the old file is unchanged and no partial file remains."""

    def extra() -> Iterator[bytes]:
        yield ADDED
        raise LookupError

    source, target = tmp_path / "trace.json", tmp_path / "out.json.gz"
    source.write_bytes(document())
    target.write_bytes(b"old")
    with pytest.raises(LookupError):
        rewrite_trace(str(source), target, extra)
    with pytest.raises(TraceError, match="15 events, but had 16 when it was ingested"):
        rewrite_trace(str(source), target, expect_events=16)
    assert target.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json.gz", "trace.json"]
    with pytest.raises(ParameterError, match="is the trace itself"):
        rewrite_trace(str(source), f"{tmp_path}/./trace.json")
    with pytest.raises(TraceError, match=r"Cannot write .*Choose another folder"):
        rewrite_trace(str(source), tmp_path / "trace.json" / "out.json")


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    """Equal inputs produce equal files, because the gzip header has no time and no file name."""
    source = tmp_path / "trace.json"
    source.write_bytes(document())
    for name in ("a.json.gz", "b.json.gz"):
        rewrite_trace(str(source), tmp_path / name)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def test_names_follow_the_source() -> None:
    """The output is a gzip file next to the source, or next to the archive that contains it."""
    names = {
        "/a/x.json": "/a/x_c.json.gz",
        "/a.json/x.pt.trace.json.gz": "/a.json/x.pt.trace_c.json.gz",
        "/a/x.json.zst": "/a/x_c.json.gz",
        "x": "x_c.json.gz",
        "zip://sub/x.json::/a/b.zip": "/a/x_c.json.gz",
        "memory://t/x.json.gz": "memory://t/x_c.json.gz",
    }
    assert {source: output_path(source, suffix="_c") for source in names} == names
    assert output_path("/a/x.json", prefix="overlaid_", folder="/b") == "/b/overlaid_x.json.gz"


def test_a_remote_trace_is_rewritten_beside_itself(tmp_path: Path) -> None:
    """A trace at any fsspec URL can be rewritten next to the original."""
    import fsspec  # noqa: PLC0415 - here only

    memory = fsspec.filesystem("memory")
    memory.pipe("/traces/x.json", document())
    target = output_path("memory://traces/x.json", suffix="_with_counters")
    rewrite_trace("memory://traces/x.json", target, lambda: [ADDED])
    written = json.loads(gzip.decompress(memory.cat("/traces/x_with_counters.json.gz")))
    assert written["traceEvents"] == [*EVENTS, json.loads(ADDED)]
    memory.rm("/traces", recursive=True)
    assert list(tmp_path.iterdir()) == []


def test_memory_does_not_grow_with_the_trace(tmp_path: Path) -> None:
    """A trace with four times as many events does not need more memory."""
    peaks = []
    for copies in (2_000, 8_000):
        source = tmp_path / f"{copies}.json"
        source.write_bytes(document(EVENTS * copies))
        added = (ADDED for _ in range(copies * 10))
        tracemalloc.start()
        rewrite_trace(str(source), tmp_path / "out.json.gz", lambda added=added: added)  # type: ignore[misc]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(st.fixed_dictionaries({"ph": st.text(), "args": values}, optional={"name": values})),
    st.dictionaries(st.text(), values, max_size=3),
    st.sampled_from([None, 1]),
)
def test_any_events_and_arguments_come_through(
    tmp_path: Path, events: list[Any], args: dict[str, Any], indent: int | None
) -> None:
    """``with_args`` has the same result as parsing, changing and serializing, for any JSON."""
    data = json.dumps({"traceEvents": events}, indent=indent).encode()
    _, result = rewritten(tmp_path, data, change=lambda event: event.with_args(**args))
    for event in events:
        event["args"] = {**(event["args"] if isinstance(event["args"], dict) else {}), **args}
    assert result == {"traceEvents": events}
