"""Rewrites a trace as a stream: constant memory, valid JSON, unchanged events byte for byte."""

from __future__ import annotations

import gc
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, BinaryIO, NoReturn

from hta_sql.errors import ParameterError, TraceError
from hta_sql.traces.chunks import TOO_LONG, Chunk, TraceReader
from hta_sql.traces.event_offsets import Offsets, count_events, event_offsets, events_of
from hta_sql.traces.events import Event
from hta_sql.traces.output import trace_output
from hta_sql.traces.repair import STRING
from hta_sql.traces.salvage import Rescued, hides_events, rescue, too_long
from hta_sql.traces.source import open_trace

log = logging.getLogger(__name__)

Change = Callable[[Event], bytes | None]
"""Event ─▶ its replacement text; ``event.text`` keeps the event, None drops it."""

ChangeKeys = Callable[[dict[str, Any]], dict[str, Any]]
"""Top-level keys ─▶ the keys to write instead."""

MAX_NOTES = 1000
"""Maximum number of lost events listed in the written file; the report counts all of them."""

NOTES_KEY = "hta_sql"

EXTRA_EVENTS_A_WRITE = 1000
"""Number of extra events per write; writing each separately costs more than compressing it."""

_COMMA = re.compile(r"[ \t\r\n]*(?:,[ \t\r\n]*|\Z)")
# Accepted by the engine but not valid JSON: an extra comma, nan and inf in any case.
_NOT_JSON = re.compile(
    STRING + rb"|(,)(?=\s*[}\]])|(-?(?:nan|inf(?:inity)?))(?=\s*[,}\]])", re.DOTALL | re.IGNORECASE
)


@dataclass
class Rewritten:
    """Result of rewriting a trace.

    Attributes:
        path: The file that was written.
        events: Events of the source, including lost ones.
        changed: Events whose text the caller changed.
        dropped: Events that the caller dropped.
        added: Events that were added.
        repaired: Malformed events that were written as valid JSON.
        lost: Event_id, byte offset, reason and excerpt of the first 1000 events that could not be
            written. The written file lists them under the key ``hta_sql``.
        lost_count: Number of all lost events.
    """

    path: str
    events: int = 0
    changed: int = 0
    dropped: int = 0
    added: int = 0
    repaired: int = 0
    lost: list[dict[str, Any]] = field(default_factory=list)
    lost_count: int = 0


@dataclass(frozen=True)
class _Wanted:
    """The arguments of :func:`rewrite_trace`."""

    extra_events: Callable[[], Iterable[bytes]] | None
    change: Change | None
    change_keys: ChangeKeys | None
    expect_events: int | None

    def keys(self, keys: dict[str, Any]) -> dict[str, Any]:
        """Return the top-level keys to write instead of the given ones."""
        return self.change_keys(keys) if self.change_keys else keys


class _DoubtfulCutError(Exception):
    """A chunk may have been cut wrongly: the file must be read again, event by event."""


def rewrite_trace(
    source: str,
    destination: str | os.PathLike[str],
    extra_events: Callable[[], Iterable[bytes]] | None = None,
    change: Change | None = None,
    *,
    expect_events: int | None = None,
    change_keys: ChangeKeys | None = None,
) -> Rewritten:
    """Rewrite a trace: events in the same order, some changed or dropped, others added.

    Memory does not grow with the trace. The result opens in Perfetto and Chrome even if the source
    does not: malformed events are repaired as in an ingest. Events that an ingest cannot read are
    dropped, and listed under the top-level key ``hta_sql``.

    Args:
        source: Trace as it was ingested: a path or URL, compressed or not, or a member of an
            archive.
        destination: Path or URL of the result; gzip if it ends in ``.gz``. It is written
            atomically. Ingests recognize these names as generated traces: ``*_with_counters*``,
            ``overlaid_*``.
        extra_events: Called for the events to append; see :func:`trace_event`. It may be called
            twice.
        change: Called with each event in order. It may be called a second time with the events from
            the start. None leaves all events unchanged, and is twice as fast.
        expect_events: ``event_count`` of the rank. If the source has a different number of events,
            it was changed since it was ingested, and event ids no longer match.
        change_keys: Called with the keys before the events, and again with the keys after them. If
            given, only text that passed through it or ``change`` is written.

    Raises:
        TraceError: The source has changed, or the destination cannot be written.
        TraceNotFoundError: The source is missing.
        TraceFormatError: The source is not a trace.
        ParameterError: Source and destination are the same file.
    """
    target = os.fspath(destination)
    if target == source or (os.path.exists(target) and os.path.samefile(source, target)):  # noqa: PTH110, PTH121 - may be URLs
        raise ParameterError(
            f"The destination {target!r} is the trace itself. Choose another destination."
        )
    wanted = _Wanted(extra_events, change, change_keys, expect_events)
    try:
        return _rewrite(source, target, wanted, careful=False)
    except _DoubtfulCutError:
        return _rewrite(source, target, wanted, careful=True)


def _rewrite(source: str, target: str, wanted: _Wanted, *, careful: bool) -> Rewritten:
    reader = TraceReader(open_trace(source), source, careful=careful)
    report = Rewritten(target)
    with reader.stream, trace_output(target) as out, _no_cycles():
        chunks = iter(reader)
        first = next(chunks, None)
        known = _write_header(out, reader, wanted)
        separator = b"\n"
        for chunk, is_last in _with_last(chain([first] if first else [], chunks)):
            is_whole = careful or (is_last and reader.is_done)
            if texts := _texts(chunk, wanted, report, is_whole=is_whole):
                out.write(separator + b",\n".join(texts))
                separator = b",\n"
        if wanted.expect_events is not None and report.events != wanted.expect_events:
            raise TraceError(
                f"{source!r} has {report.events} events, but had {wanted.expect_events} when it was ingested. "
                "Ingest it again."
            )
        extra = iter(wanted.extra_events() if wanted.extra_events else ())
        while texts := list(islice(extra, EXTRA_EVENTS_A_WRITE)):
            out.write(separator + b",\n".join(texts))
            separator = b",\n"
            report.added += len(texts)
        _write_trailer(out, reader, known, wanted, report)
    if report.lost_count:
        log.warning(
            "%s: %d broken events could not be written; the key %r in the file lists them.",
            target,
            report.lost_count,
            NOTES_KEY,
        )
    return report


@contextmanager
def _no_cycles() -> Iterator[None]:
    """Disable the cyclic garbage collector: parsed events have no cycles and are freed by refcount.

    The collector would take a third of the time, because it scans the objects of the process again
    and again.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _with_last(chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, bool]]:
    """Yield each chunk, and whether it is the last, which is the only one not cut at its end."""
    held: Chunk | None = None
    for chunk in chunks:
        if held:
            yield held, False
        held = chunk
    if held:
        yield held, True


def _texts(chunk: Chunk, wanted: _Wanted, report: Rewritten, *, is_whole: bool) -> list[bytes]:
    """Return the text to write for a chunk: unchanged if possible, otherwise event by event."""
    if chunk.is_start_of:
        return _rescued(chunk, wanted, report, is_whole=is_whole)
    found = event_offsets(chunk.text)
    if found is not None and not hides_events(chunk.text, ()):
        return _plain(chunk.text, found, wanted, report)
    try:
        text = chunk.text.decode("utf-8").strip(", \t\r\n")
        if wanted.change is None:
            elements = _decoder.decode(f"[{text}]")
            if not hides_events(chunk.text, elements):
                report.events += len(elements)
                return [text.encode("utf-8")] if elements else []
        spans = list(_values(text))
    except (ValueError, RecursionError):
        spans = None
    if spans is None or hides_events(chunk.text, (fields for _, fields in spans)):
        return _rescued(chunk, wanted, report, is_whole=is_whole)
    texts = (_changed(source.encode("utf-8"), fields, wanted, report) for source, fields in spans)
    return [text for text in texts if text is not None]


def _plain(text: bytes, found: list[int], wanted: _Wanted, report: Rewritten) -> list[bytes]:
    """Return the text to write for a chunk whose events have known offsets."""
    if wanted.change is None:
        report.events += count_events(found)
        return [text.strip(b", \t\r\n")] if found else []
    events = events_of(text, found)
    texts = (_changed(source, None, wanted, report, places) for source, places in events)
    return [text for text in texts if text is not None]


def _values(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the text and the value of each element."""
    position = 0
    while position < len(text):
        value, end = _decoder.raw_decode(text, position)
        yield text[position:end], value
        comma = _COMMA.match(text, end)
        if not comma:
            raise ValueError(text[end : end + 20])
        position = comma.end()


def _rescued(chunk: Chunk, wanted: _Wanted, report: Rewritten, *, is_whole: bool) -> list[bytes]:
    size = chunk.is_start_of
    spans = [too_long(chunk.text, size, TOO_LONG)] if size else rescue(chunk.text)
    if not is_whole and any(span.is_doubtful for span in spans):
        raise _DoubtfulCutError
    texts: list[bytes] = []
    for span in spans:
        text, fields = _as_json(span)
        if text is not None:
            report.repaired += text != span.source
            if (new := _changed(text, fields, wanted, report)) is not None:
                texts.append(new)
            continue
        report.lost_count += 1
        if len(report.lost) < MAX_NOTES:
            where = {"event_id": report.events, "byte_offset": chunk.byte_offset + span.start}
            details = {"reason": span.reason, "excerpt": span.excerpt}
            report.lost.append(where if wanted.change_keys else where | details)
        report.events += 1
    return texts


def _changed(
    text: bytes, fields: Any, wanted: _Wanted, report: Rewritten, places: Offsets | None = None
) -> bytes | None:
    event_id, report.events = report.events, report.events + 1
    is_event = places is not None or isinstance(fields, dict)
    if wanted.change is None or not (is_event or wanted.change_keys):
        return text
    new = wanted.change(Event(event_id, text, fields, places)) if is_event else b"null"
    if new is None:
        report.dropped += 1
    else:
        report.changed += new is not text and new != text
    return new


def _as_json(span: Rescued) -> tuple[bytes | None, Any]:
    """Return a rescued event as strict JSON, and parsed; (None, None) if that is not possible.

    An event nested too deeply for Python is returned as text, unparsed.
    """
    if span.text is None:
        return None, None

    def plain(found: re.Match[bytes]) -> bytes:
        if found.group(1):
            return b""
        return b"null" if found.group(2) else found.group()

    text = _NOT_JSON.sub(plain, span.text)
    try:
        return text, _decoder.decode(text.decode("utf-8"))
    except RecursionError:
        return text, None
    except ValueError:
        return None, None


def _write_header(out: BinaryIO, reader: TraceReader, wanted: _Wanted) -> dict[str, Any]:
    """Write the text before the events; return the keys that it contains."""
    known = dict(reader.metadata)
    is_list = reader.header.startswith(b"[")
    if is_list and wanted.change_keys:
        out.write(b"[")
    elif is_list or (not wanted.change_keys and _is_json(reader.header + b"]}")):
        out.write(reader.header)
    else:
        pairs = wanted.keys(known).items()
        keys = "".join(f"{_dumped(key)}: {_dumped(value)},\n" for key, value in pairs)
        out.write(f'{{{keys}"traceEvents": ['.encode())
    return known


def _write_trailer(
    out: BinaryIO,
    reader: TraceReader,
    known: dict[str, Any],
    wanted: _Wanted,
    report: Rewritten,
) -> None:
    """Write the text after the events: unchanged, or its readable keys if it is malformed."""
    out.write(b"\n")
    if reader.header.startswith(b"["):
        out.write(b"]\n")
        return
    trailer = reader.trailer.rstrip()
    if wanted.change_keys or not _is_json(b'{"traceEvents": [' + trailer):
        added = {key: value for key, value in reader.metadata.items() if key not in known}
        pairs = wanted.keys(added).items()
        keys = "".join(f",\n{_dumped(key)}: {_dumped(value)}" for key, value in pairs)
        trailer = f"]{keys}}}".encode()
    if report.lost_count:
        notes = {"lost_count": report.lost_count, "lost": report.lost}
        trailer = trailer[:-1].rstrip() + f",\n{_dumped(NOTES_KEY)}: {_dumped(notes)}}}".encode()
    out.write(trailer + b"\n")


def _is_json(text: bytes) -> bool:
    try:
        _decoder.decode(text.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


def _dumped(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse)
