"""Reads the metadata of a trace before it is ingested, without parsing its events."""

from __future__ import annotations

import json
import re
from typing import Any, BinaryIO, Literal, NamedTuple

from hta_sql.errors import TraceFormatError
from hta_sql.traces.execution_trace import is_execution_trace
from hta_sql.traces.flight_recorder import MAX_WORLD_SIZE, is_dump, rank_of_name
from hta_sql.traces.foreign_formats import ACTIVITY, CHROME, guess_json, kineto_sign
from hta_sql.traces.memory_snapshot import is_snapshot
from hta_sql.traces.merged import SCHEME, RankOfFile, merged_form, merged_ranks
from hta_sql.traces.numbers import bounded_integer
from hta_sql.traces.source import check_text, open_any

PEEK_BYTES = 256 << 10
PEEK_LIMIT_BYTES = 64 << 20
OVERLAP_BYTES = 1 << 10
"""Bytes of the previous block to keep during a search, because a key may span two blocks."""

_DISTRIBUTED_INFO = re.compile(rb'"distributedInfo"\s*:\s*(?=\{)')
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BASE_TIME = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(-?\d+)')
_TRACE_ID = re.compile(rb'"trace_id"\s*:\s*"([^"\\]*)"')
_HOST = re.compile(rb'"host_name"\s*:\s*"([^"\\]*)"')
_PROCESS = re.compile(rb'"process_labels"[^{}]*?"pid"\s*:\s*(\d+)[^{}]*\{\s*"labels"\s*:\s*"CPU"')
_WINDOW_END = re.compile(rb'"Record Window End"[^{}]*?"ts"\s*:\s*"?(-?[0-9.]+)')
_HOST_EVENT = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|cuda_runtime|user_annotation|python_function)"[^{}]*?"pid"\s*:\s*"?(\d{1,9})\b'
)
_FIRST_TS = re.compile(rb'"ts"\s*:\s*"?(-?[0-9.]+)')

_decoder = json.JSONDecoder(parse_int=bounded_integer)

_ARTIFACTS = (is_snapshot, is_dump, is_execution_trace)

Kind = Literal["trace", "dump", "snapshot", "execution_trace"]


class Stated(NamedTuple):
    """Facts that a trace states about itself; None if missing or not searched for."""

    rank: int | None
    start_ns: int
    """Time of the first event [ns], for ordering."""
    world_size: int | None = None
    backend: str | None = None
    trace_id: str | None = None
    process: str | None = None
    """Host and process ID; also None if the trace states its rank."""
    end_ns: int | None = None
    """End of the recording [ns]; also None if the trace states its rank."""
    role: str | None = None
    """Role of the process in a job with several roles."""
    pid: int | None = None
    """Process ID of the first host event."""
    groups: frozenset[str] = frozenset()
    """Name, description and ranks of each process group, as in ``distributedInfo.pg_config``."""
    kind: Kind = "trace"
    """Kind of the file: trace, Flight Recorder dump, memory snapshot or execution trace.

    A dump states its rank in its name only.
    """
    merged: tuple[RankOfFile, ...] = ()
    """Ranks that another program has merged into the file."""


def peek(path: str) -> Stated:
    """Read the facts that a trace states about itself.

    ``distributedInfo`` may precede or follow the events. If it follows, the whole file is read,
    which takes a tenth of the time of parsing.

    Raises:
        TraceFormatError: The file format is unknown; the message says what it looks like.
    """
    with open_any(path) as stream:
        head = _head(stream)
        if is_snapshot(head):
            return Stated(None, 0, kind="snapshot")
        if is_dump(head):
            return Stated(rank_of_name(path.rpartition("/")[2]), 0, kind="dump")
        if is_execution_trace(head):
            return Stated(None, 0, kind="execution_trace")
        check_text(path, head[:4])
        _check_json(path, head, getattr(stream, "problem", None))
        is_kineto = bool(kineto_sign().search(head))
        has_activity = bool(ACTIVITY.search(head))
        info = _DISTRIBUTED_INFO.search(head)
        base = _BASE_TIME.search(head)
        tail = head
        while not info and (block := stream.read(PEEK_BYTES)):
            tail = tail[-OVERLAP_BYTES:] + block
            # Over a whole file, a plain search is ten times as fast as a regular expression.
            if b'"distributedInfo"' in tail:
                info = _DISTRIBUTED_INFO.search(tail)
            if not base and b'"baseTimeNanoseconds"' in tail:
                base = _BASE_TIME.search(tail)
            if b'"' in block:
                is_kineto = is_kineto or bool(kineto_sign().search(tail))
                has_activity = has_activity or bool(ACTIVITY.search(tail))
        if info:
            tail = tail + stream.read(PEEK_BYTES)
    if has_activity and not is_kineto:
        raise _not_kineto(path, head, "has no events of PyTorch's profiler")
    first = _FIRST_TS.search(head, head.find(b'"traceEvents"') if b'"traceEvents"' in head else 0)
    base_ns = (bounded_integer(base.group(1).decode()) if base else None) or 0
    said = _distributed_info(tail, info.end()) if info else {}
    trace_id = _TRACE_ID.search(head) or _TRACE_ID.search(tail)
    return Stated(
        _whole(said.get("rank")),
        _time(first, base_ns) or base_ns,
        _world_size(said.get("world_size")),
        said["backend"] if isinstance(said.get("backend"), str) else None,
        trace_id.group(1).decode("utf-8", errors="replace") if trace_id else None,
        # Only known if the whole file was searched for a rank.
        None if info else _process(head, tail),
        None if info else _time(_WINDOW_END.search(tail), base_ns),
        said["role"] if isinstance(said.get("role"), str) else None,
        int(pid.group(1)) if (pid := _HOST_EVENT.search(head)) else None,
        _groups(said.get("pg_config")),
        merged=_merged(path, head),
    )


def _merged(path: str, head: bytes) -> tuple[RankOfFile, ...]:
    """Return the ranks of a merged file, which reads all of it; other files have none."""
    form = None if path.startswith(SCHEME) else merged_form(head)
    if form is None:
        return ()
    labels: set[bytes] = set()
    tail = b""
    with open_any(path) as stream:
        while block := stream.read(PEEK_BYTES):
            tail = tail[-OVERLAP_BYTES:] + block
            labels.update(form.label.findall(tail))
    return merged_ranks(path, labels)


def _time(found: re.Match[bytes] | None, base_ns: int) -> int | None:
    """Convert a matched time in microseconds since the base to nanoseconds; None if it is odd."""
    try:
        return base_ns + int(float(found.group(1)) * 1000) if found else None
    except (ValueError, OverflowError):
        return None


def _process(head: bytes, tail: bytes) -> str | None:
    """Return host and process ID of the host process."""
    number = _PROCESS.search(head) or _PROCESS.search(tail)
    host = _HOST.search(head) or _HOST.search(tail)
    if not number:
        return None
    name = host.group(1) if host else b""
    return b"/".join((name, number.group(1))).decode("utf-8", errors="replace")


def _head(stream: BinaryIO) -> bytes:
    head = bytearray(stream.read(PEEK_BYTES))
    start = bytes(head)
    if head.lstrip()[:1] != b"{" or any(is_kind(start) for is_kind in _ARTIFACTS):
        return start
    seen = 0
    while not (events := _EVENTS_KEY.search(head, max(0, seen - OVERLAP_BYTES))):
        seen = len(head)
        block = stream.read(PEEK_BYTES)
        if not block or len(head) > PEEK_LIMIT_BYTES:
            break
        head += block
    if events and len(head) < events.end() + OVERLAP_BYTES:
        head += stream.read(PEEK_BYTES)  # a part of the first event shows less than the event
    return bytes(head)


def _check_json(path: str, head: bytes, problem: str | None) -> None:
    opening = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if not opening:
        raise TraceFormatError(f"{path!r} is empty{f': {problem}' if problem else ''}.")
    if opening not in (b"{", b"["):
        raise TraceFormatError(
            f"{path!r} is not JSON (it starts with {head[:20]!r}), so it is not a Kineto trace."
        )
    if opening == b"{" and not _EVENTS_KEY.search(head):
        raise _not_kineto(path, head, "has no traceEvents list")
    if opening == b"[" and not (kineto_sign().search(head) or b'"ph"' in head):
        raise _not_kineto(path, head, "is a JSON list without trace events")


def _not_kineto(path: str, head: bytes, why: str) -> TraceFormatError:
    foreign = guess_json(head[:PEEK_BYTES]) or (CHROME if b'"ph"' in head else None)
    if foreign:
        return TraceFormatError(
            f"{path!r} is not a Kineto trace; it looks like {foreign.looks_like}. {foreign.advice}"
        )
    return TraceFormatError(f"{path!r} {why}, so it is not a Kineto trace.")


def _distributed_info(text: bytes, position: int) -> dict[str, Any]:
    try:
        info, _ = _decoder.raw_decode(text[position:].decode("utf-8", errors="replace"))
    except (ValueError, RecursionError):
        return {}
    return info if isinstance(info, dict) else {}


def _groups(config: object) -> frozenset[str]:
    """Return an identity of each listed process group."""
    keys = ("pg_name", "pg_desc", "pg_size", "ranks")
    groups = config if isinstance(config, list) else []
    return frozenset(
        json.dumps([group.get(key) for key in keys]) for group in groups if isinstance(group, dict)
    )


def _world_size(value: object) -> int | None:
    size = _whole(value)
    return size if size and 0 < size <= MAX_WORLD_SIZE else None


def _whole(value: object) -> int | None:
    """Return an integer; None for other values, such as the infinity that 1e999 is."""
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (ValueError, TypeError, OverflowError):
        return None
