r"""Cuts the byte stream of a trace into chunks of whole events, without parsing them.

Two events are parted by bytes such as ``},\n  {\n    "ph"``. The separator is
sniffed from the file. A brace and a bare quote cannot stand side by side
inside a JSON string (the quote would be escaped), and whoever parses a chunk
verifies it, so a wrong cut is found, never believed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from hta_sql.errors import TraceFormatError
from hta_sql.ingestion.salvage import EVENT_START, EXCERPT_BYTES

CHUNK_BYTES = 256 << 10
"""Small chunks are the cheap ones: parse and Parquet of one 62 MB trace cost 0.61 s of CPU at
256 KB, 0.67 at 1 MB, 0.89 at 4 MB and 2.4 at 16 MB."""

HEADER_LIMIT_BYTES = 64 << 20
"""Give up looking for the event list after this much; real headers stay below 1 MB."""

MAX_EVENT_BYTES = 256 << 20
"""No event is longer: text without a boundary for so long is not a trace."""

RESNIFF_CHUNKS = 4
"""Learn another separator when this many chunks went by without one."""

MAX_TRAILER_BRACKETS = 64
"""Closing brackets to try from the end of a broken file; trailers hold a few short lists."""

_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BOUNDARY = re.compile(rb'\s*,\s*\{\s*"[^"\\]{1,64}"')
_BETWEEN_EVENTS = re.compile(rb"[ \t\r\n,]*")
_UTF8_BOM = b"\xef\xbb\xbf"
_SPACE_AND_COMMA = b" \t\r\n,"
_decoder = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class Chunk:
    """A run of whole events: comma-separated JSON objects, no brackets around them."""

    number: int
    byte_offset: int
    text: bytes


@dataclass(frozen=True)
class Problem:
    """Something in the file beside its events that could not be read as it should."""

    byte_offset: int
    byte_count: int
    reason: str
    excerpt: str


@dataclass
class TraceReader:
    """Reads one trace: iterate over its chunks, then look at its metadata.

    Attributes:
        stream: The JSON bytes, decompressed.
        name: What errors call the file.
        chunk_bytes: Size of a chunk before it is cut at the last event inside.
        max_bytes: Stop with an error behind so many bytes; None: never.
        metadata: The top-level keys beside the events; complete after the iteration.
        problems: What was wrong with the file as a whole; complete after the iteration.
        offsets: Where each chunk started in the (decompressed) file.
    """

    stream: BinaryIO
    name: str
    chunk_bytes: int = CHUNK_BYTES
    max_bytes: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    _separators: list[bytes] = field(default_factory=list)
    _offset: int = 0
    _bytes_read: int = 0

    def __iter__(self) -> Iterator[Chunk]:
        """Yield the chunks in file order."""
        buffer = self._read_header()
        # What is left of the last block is short, unless one event is very long: then the
        # reads double, so that the copies of its start cost no more than the event.
        while block := self._read(len(buffer)):
            buffer += block
            cut = self._last_boundary(buffer)
            if cut < 0 and len(buffer) > RESNIFF_CHUNKS * self.chunk_bytes:
                self._learn_separator(buffer)
                cut = self._last_boundary(buffer)
            if cut < 0 and len(buffer) > MAX_EVENT_BYTES:
                raise TraceFormatError(
                    f"{self.name}: no end of an event in {MAX_EVENT_BYTES >> 20} MB from byte "
                    f"{self._offset} on; this is not a Kineto trace."
                )
            if cut >= 0:
                yield self._chunk(buffer[:cut])
                self._offset += cut
                buffer = self._strip(buffer[cut:])
        end = self._end_of_events(buffer)
        if buffer[:end].strip():
            yield self._chunk(buffer[:end])
        self._offset += end
        self._read_trailer(buffer[end:])

    def _chunk(self, text: bytes) -> Chunk:
        self.offsets.append(self._offset)
        return Chunk(len(self.offsets) - 1, self._offset, text)

    def _read(self, at_least: int = 0) -> bytes:
        """Read a block; a compressed stream that breaks off ends there, and is noted."""
        try:
            block = self.stream.read(max(self.chunk_bytes, at_least))
        except (EOFError, OSError, ValueError) as error:
            self._note(b"", f"the compressed file breaks off: {error}")
            return b""
        self._bytes_read += len(block)
        if self.max_bytes is not None and self._bytes_read > self.max_bytes:
            raise TraceFormatError(
                f"{self.name}: unpacks to more than {self.max_bytes >> 20} MB, which no trace of "
                "its compressed size does. Unpack it yourself if you trust it."
            )
        return block

    def _note(self, text: bytes, reason: str) -> None:
        excerpt = text[:EXCERPT_BYTES].decode("utf-8", errors="replace")
        self.problems.append(Problem(self._offset, len(text), reason, excerpt))

    def _read_header(self) -> bytes:
        """Read up to the first event; returns the bytes that follow the bracket."""
        buffer = self._read()
        if buffer.startswith(_UTF8_BOM):
            buffer, self._offset = buffer[len(_UTF8_BOM) :], len(_UTF8_BOM)
        if not buffer.strip():
            raise TraceFormatError(f"{self.name}: the file is empty.")
        opening = buffer.lstrip()[:1]
        if opening == b"[":
            start = buffer.index(b"[") + 1
        elif opening == b"{":
            buffer, start = self._find_events(buffer)
        else:
            raise TraceFormatError(
                f"{self.name}: not JSON (it starts with {buffer.lstrip()[:20]!r}). "
                "A Kineto trace is a JSON object with a traceEvents list."
            )
        self._offset += start
        buffer = self._strip(buffer[start:])
        self._learn_separator(buffer)
        return buffer

    def _find_events(self, buffer: bytes) -> tuple[bytes, int]:
        while not (found := _EVENTS_KEY.search(buffer)):
            block = self._read(len(buffer))
            if not block or len(buffer) > HEADER_LIMIT_BYTES:
                raise TraceFormatError(
                    f"{self.name}: no traceEvents list, so this is not a Kineto trace."
                )
            buffer += block
        self._merge_metadata(buffer[: found.start()].rstrip(_SPACE_AND_COMMA) + b"}", "header")
        return buffer, found.end()

    def _learn_separator(self, buffer: bytes) -> None:
        """Find what parts two events at the start of the buffer, unless it is known."""
        text = buffer.decode("latin-1")  # one character a byte: positions stay valid
        position = 0
        while text[position : position + 1] == "{":
            try:
                _, end = _decoder.raw_decode(text, position)
            except (ValueError, RecursionError):
                return  # an event cut by the end of the buffer, or a broken one
            boundary = _BOUNDARY.match(buffer, end)
            if not boundary:
                return
            separator = b"}" + boundary.group()
            if separator not in self._separators:
                self._separators.append(separator)
                return
            position = boundary.end() - len(boundary.group().lstrip(_SPACE_AND_COMMA))

    def _last_boundary(self, buffer: bytes) -> int:
        """Position just behind the last event that is known to end in the buffer, else -1."""
        last = max((buffer.rfind(separator) for separator in self._separators), default=-1)
        if last < 0 and len(buffer) > RESNIFF_CHUNKS * self.chunk_bytes:
            # Broken text between whole events: cut in front of whatever starts like one.
            starts = [found.start() for found in EVENT_START.finditer(buffer, 1)]
            return starts[-1] if starts else -1
        return last + 1 if last >= 0 else -1

    def _strip(self, buffer: bytes) -> bytes:
        """Drop what stands between two events."""
        stripped = buffer.lstrip(_SPACE_AND_COMMA)
        self._offset += len(buffer) - len(stripped)
        return stripped

    def _end_of_events(self, buffer: bytes) -> int:
        """Walk the last events one by one to the bracket that closes the list.

        Where an event is broken, the list ends at the last bracket that a valid
        trailer follows; without one it is cut off, and all of the rest is events.
        """
        text = buffer.decode("latin-1")
        position = 0
        while True:
            position = _BETWEEN_EVENTS.match(buffer, position).end()  # type: ignore[union-attr]
            if text[position : position + 1] != "{":
                break
            try:
                _, position = _decoder.raw_decode(text, position)
            except (ValueError, RecursionError):
                break
        if text[position : position + 1] == "]":
            return position
        for bracket in range(MAX_TRAILER_BRACKETS):
            position = buffer.rfind(b"]", 0, position if bracket else len(buffer))
            if position < 0:
                break
            if _is_trailer(buffer[position + 1 :]):
                return position
        self._note(b"", "the event list has no end: the file is cut off")
        return len(buffer)

    def _read_trailer(self, buffer: bytes) -> None:
        rest = buffer.strip().removeprefix(b"]").strip(_SPACE_AND_COMMA)
        if rest.rstrip(b"} \t\r\n"):
            self._merge_metadata(b"{" + rest, "trailer")

    def _merge_metadata(self, text: bytes, where: str) -> None:
        try:
            keys = json.loads(text.decode("utf-8", errors="replace"), strict=False)
        except (ValueError, RecursionError) as error:
            self._note(text, f"the {where} beside traceEvents is not valid JSON: {error}")
            return
        self.metadata.update(keys)


def _is_trailer(rest: bytes) -> bool:
    """Say whether the bytes behind a bracket close the file: nothing, a brace, or more keys."""
    rest = rest.strip(_SPACE_AND_COMMA)
    if rest in (b"", b"}"):
        return True
    try:
        return isinstance(json.loads(b"{" + rest), dict)
    except (ValueError, RecursionError):
        return False
