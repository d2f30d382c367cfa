"""Trace files by themselves: read, written, given another rank."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from hta_sql.errors import TraceFormatError, TraceNotFoundError
from hta_sql.traces.chunks import TOO_LONG, TraceReader
from hta_sql.traces.output import trace_output
from hta_sql.traces.peek import peek
from hta_sql.traces.source import max_unpacked_bytes, open_trace

__all__ = [
    "read_trace",
    "trace_events",
    "update_trace_rank",
    "write_trace",
]

BLOCK_BYTES = 1 << 20
MAX_INFO_BYTES = 64 << 20
"""distributedInfo lists the members of all process groups; it is no larger than this."""

_KEY = b'"distributedInfo"'
_VALUE = re.compile(rb"\s*:\s*(?=\{)")


def read_trace(file_path: str) -> dict[str, Any]:
    """Read a whole trace as Python objects; compressed or not, by its content.

    Raises:
        TraceNotFoundError: There is no such file.
        TraceFormatError: It is not JSON.
    """
    with open_trace(file_path) as stream:
        text = b"".join(_blocks(stream))
    try:
        trace: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise TraceFormatError(
            f"{file_path!r} is not valid JSON: {error}. Ingest it to keep the events that are whole."
        ) from error
    return trace


def trace_events(file_path: str) -> Iterator[Any]:
    """Yield what is in traceEvents as Python objects; memory does not grow with the file.

    Raises:
        TraceNotFoundError: There is no such file.
        TraceFormatError: It is no trace, or broken: ingest keeps the events that are whole.
    """
    peek(file_path)
    limit = max_unpacked_bytes(file_path)
    reader = TraceReader(open_trace(file_path), file_path, max_bytes=limit, careful=True)
    with reader.stream:
        for chunk in reader:
            if chunk.is_start_of:
                raise TraceFormatError(
                    f"{file_path!r} is broken behind byte {chunk.byte_offset}: {TOO_LONG}."
                )
            try:
                yield from json.loads(b"[" + chunk.text.strip(b", \t\r\n") + b"]")
            except (ValueError, RecursionError) as error:
                raise TraceFormatError(
                    f"{file_path!r} is broken behind byte {chunk.byte_offset}: {error}."
                ) from error
    for problem in reader.problems:
        raise TraceFormatError(
            f"{file_path!r} is broken at byte {problem.byte_offset}: {problem.reason}."
        )


def write_trace(trace_data: dict[str, Any], file_path: str | os.PathLike[str]) -> None:
    """Write a trace, gzip where the name ends in ``.gz``; the file appears whole or not at all.

    Raises:
        TraceError: It cannot be written.
    """
    with trace_output(os.fspath(file_path)) as out:
        out.write(json.dumps(trace_data).encode("utf-8"))


def update_trace_rank(file_path: str | os.PathLike[str], rank: int) -> None:
    """Write the rank into a trace, in place: its ``distributedInfo`` says it afterwards.

    The events are streamed through byte for byte. The file keeps its other metadata; what is
    written is gzip where the name ends in ``.gz``.

    Raises:
        TraceNotFoundError: There is no such file.
        TraceFormatError: It is no trace, is damaged, or is a bare list, which has no place for it.
        TraceError: It cannot be written.
    """
    path = os.fspath(file_path)
    if not Path(path).exists():
        raise TraceNotFoundError(f"No trace {path!r}; only local files can be changed in place.")
    peek(path)
    start, end, info = _place(path)
    new = json.dumps({**info, "rank": int(rank)}).encode("utf-8")
    if start == end:
        new = b'\n"distributedInfo": ' + new + b","
    with open_trace(path) as stream, trace_output(path) as out:
        position = 0
        for block in _blocks(stream):
            here = position
            position += len(block)
            out.write(block[: max(0, start - here)])
            if here <= start < position:
                out.write(new)
            out.write(block[max(0, end - here) :])


def _place(path: str) -> tuple[int, int, dict[str, Any]]:
    """Find where ``distributedInfo`` stands, or belongs (start equals end), and what it says."""
    with open_trace(path) as stream:
        position, text = 0, b""
        brace = -1
        for block in _blocks(stream):
            text += block
            if brace < 0 and text.strip():
                brace = _first_brace(path, text)
            at = text.find(_KEY)
            if at >= 0:
                text += stream.read(MAX_INFO_BYTES)
                found = _VALUE.match(text, at + len(_KEY))
                info = _object(text, found.end()) if found else None
                if found and info:
                    start = position + found.end()
                    _check_whole(path, stream)
                    return start, start + info[1], info[0]
                raise TraceFormatError(f"{path!r}: its distributedInfo is not a JSON object.")
            kept = min(len(text), len(_KEY))
            position += len(text) - kept
            text = text[len(text) - kept :]
        _check_whole(path, stream)
    return brace, brace, {}


def _first_brace(path: str, text: bytes) -> int:
    stripped = text.lstrip(b"\xef\xbb\xbf \t\r\n")
    if stripped.startswith(b"["):
        raise TraceFormatError(
            f"{path!r} is a bare list of events, which has no place for a rank. Give the ranks as "
            "{rank: path} instead, or put the list under the key traceEvents of an object."
        )
    return len(text) - len(stripped) + 1


def _object(text: bytes, start: int) -> tuple[dict[str, Any], int] | None:
    """Read a JSON object; returns it and its length in bytes."""
    readable = text[start:].decode("utf-8", errors="surrogateescape")
    with suppress(ValueError):
        value, length = json.JSONDecoder().raw_decode(readable)
        if isinstance(value, dict):
            return value, len(readable[:length].encode("utf-8", errors="surrogateescape"))
    return None


def _check_whole(path: str, stream: BinaryIO) -> None:
    """Refuse a compressed file that is damaged: what is behind the damage would be lost."""
    for _ in _blocks(stream):
        pass
    if problem := getattr(stream, "problem", None):
        raise TraceFormatError(f"{path!r} is left as it is: {problem}.")


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    while block := stream.read(BLOCK_BYTES):
        yield block
