r"""Splits the byte stream of a trace into chunks of whole events, without parsing them.

Events are separated by bytes such as ``},\n  {\n    "ph"``, detected from the file. Inside a JSON
string, a brace cannot be followed directly by an unescaped quote. The parser of a chunk verifies
the split, so a wrong split is detected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO

from hta_sql.errors import TraceFormatError
from hta_sql.traces.grammar import may_be_too_deep
from hta_sql.traces.metadata import (
    MAX_TRAILER_BRACKETS,
    SPACE_AND_COMMA,
    closes_the_list,
    follows_the_list,
    last_brackets,
    read_keys,
)
from hta_sql.traces.salvage import EXCERPT_BYTES, walk
from hta_sql.traces.too_long import READ_BYTES, pass_over
from hta_sql.traces.unpack import UnpackedStream

CHUNK_BYTES = 256 << 10
"""Default size of a chunk [bytes]; small chunks are fastest.

For a 62 MB trace, parsing and writing Parquet take 0.61 s of CPU time at 256 KB, 0.67 s at 1 MB,
0.89 s at 4 MB and 2.4 s at 16 MB.
"""

HEADER_LIMIT_BYTES = 64 << 20
"""Maximum distance to search for the event list [bytes]; real headers stay below 1 MB."""

TRAILER_LIMIT_BYTES = 16 << 20
"""Maximum trailer that is read if the fast path did not find the end of the list [bytes]."""

MAX_EVENT_BYTES = 16 << 20
"""Maximum size of an event [bytes]; longer events are quarantined.

Parsed lists and objects could take forty times the memory. PyTorch's events stay below 1 MB.
"""

TOO_LONG = f"longer than {MAX_EVENT_BYTES >> 20} MB"
"""Quarantine reason of an event that exceeds the maximum size."""

RESNIFF_CHUNKS = 4
"""Number of chunks without the known separator after which the separator is detected again."""

_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BOUNDARY = re.compile(rb'\s*,\s*\{\s*"[^"\\]{1,64}"')
_LIST_END = re.compile(rb"[\]\s,]*(?:[}\]\s,]*(?=\"))?")
"""Matches the end of the list, including excess brackets, up to the first key of the trailer."""

_UTF8_BOM = b"\xef\xbb\xbf"
_decoder = json.JSONDecoder(strict=False, parse_int=len, parse_float=len)


@dataclass(frozen=True)
class Chunk:
    """A sequence of whole events: comma-separated JSON objects without enclosing brackets."""

    number: int
    byte_offset: int
    text: bytes
    is_doubted: bool = False
    """Whether the engine may misread the chunk, so that it must be walked event by event."""
    is_start_of: int = 0
    """Size of the event [bytes] if it is too long and the chunk is only its start."""


@dataclass(frozen=True)
class Problem:
    """A part of the file outside its events that could not be read properly."""

    byte_offset: int
    byte_count: int | None
    """Size [bytes], an estimate if the part was not unpacked; None if unknown."""
    reason: str
    excerpt: str
    is_lost: bool = True


@dataclass
class TraceReader:
    """Reads one trace: iterate over its chunks, then read its metadata.

    Attributes:
        stream: The decompressed JSON bytes.
        name: Name of the file in errors.
        chunk_bytes: Maximum size of a chunk, at most 2 MB; a chunk ends after its last whole event.
        careful: Walk from event to event instead of cutting at separators. Separators also occur in
            lists inside events; a chunk that is cut there does not parse.
        metadata: The top-level keys other than the events; complete after the iteration.
        problems: Problems with the file as a whole; complete after the iteration.
        offsets: Offset of each chunk in the (decompressed) file.
        too_long: Chunk ─▶ size of its event [bytes], if the chunk is only the start of that event.
        is_done: Whether the iteration is complete.
        header: Text before the first event, including the bracket.
        trailer: Text after the last event, including the bracket; complete after the iteration.
        bytes_read: Number of (decompressed) bytes that were read.
    """

    stream: BinaryIO
    name: str
    chunk_bytes: int = CHUNK_BYTES
    careful: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    too_long: dict[int, int] = field(default_factory=dict)
    is_done: bool = False
    header: bytes = b""
    trailer: bytes = b""
    _separators: list[bytes] = field(default_factory=list)
    _offset: int = 0
    bytes_read: int = 0

    def __post_init__(self) -> None:
        """Limit the chunk size, so that no chunk can contain an event that is too long."""
        self.chunk_bytes = min(self.chunk_bytes, MAX_EVENT_BYTES // 8)

    def __iter__(self) -> Iterator[Chunk]:
        """Yield the chunks in file order."""
        buffer = self._read_header()
        rest = yield from (self._walk_events(buffer) if self.careful else self._cut_events(buffer))
        end = self._end_of_events(rest)
        if rest[:end].strip(SPACE_AND_COMMA):
            yield self._chunk(rest[:end])
        self._offset += end
        self._read_trailer(rest[end:])
        self.is_done = True

    def again(self, stream: BinaryIO) -> TraceReader:
        """Create a reader that yields the same chunks from a second stream of the same bytes."""
        return TraceReader(stream, self.name, self.chunk_bytes, self.careful)

    def _cut_events(self, buffer: bytes) -> Generator[Chunk, None, bytes]:
        """Cut at the last separator of each block; return the rest, up to the end of the file."""
        while block := self._read(len(buffer)):
            # White space of any length between two events is dropped as it is read.
            buffer = buffer + block if buffer else self._strip(block)
            cut = self._last_separator(buffer)
            if cut < 0 and len(buffer) > RESNIFF_CHUNKS * self.chunk_bytes:
                self._learn_separator(buffer)
                cut = self._last_separator(buffer)
                if cut < 0:
                    return (yield from self._walk_events(buffer))
            if cut > 0:
                buffer = yield from self._cut(buffer, cut)
        return buffer

    def _walk_events(self, buffer: bytes) -> Generator[Chunk, None, bytes]:
        """Cut at known ends of events; return the rest, from the end of the list."""
        brackets = 0
        is_stray = False
        # Enough to decide whether an event is too long.
        while block := self._read(min(len(buffer), MAX_EVENT_BYTES - len(buffer))):
            buffer = buffer + block if buffer else self._strip(block)
            # After this many brackets that did not end the list, further ones are ignored.
            while True:
                known = len(buffer) if brackets >= MAX_TRAILER_BRACKETS else int(is_stray)
                cut, is_too_long = self._end_of_whole_events(buffer, stray_before=known)
                if cut > 0:
                    buffer = yield from self._cut(buffer, cut)
                elif is_too_long:
                    buffer = yield from self._pass_over(buffer)
                else:
                    break
                is_stray = False
                if len(buffer) <= MAX_EVENT_BYTES:
                    break
            if buffer.startswith(b"]") and not is_stray and brackets < MAX_TRAILER_BRACKETS:
                brackets += 1
                while len(buffer) < TRAILER_LIMIT_BYTES and (block := self._read(len(buffer))):
                    buffer += block
                if closes_the_list(buffer[1:TRAILER_LIMIT_BYTES]):
                    return buffer
            is_stray = buffer.startswith(b"]")
        return buffer

    def _cut(self, buffer: bytes, cut: int) -> Generator[Chunk, None, bytes]:
        yield self._chunk(buffer[:cut])
        self._offset += cut
        return self._strip(buffer[cut:])

    def _pass_over(self, buffer: bytes) -> Generator[Chunk, None, bytes]:
        """Yield only the start of an event that is too long; return the text after the event."""
        passed = pass_over(buffer, partial(self._read, READ_BYTES), MAX_EVENT_BYTES)
        self.too_long[len(self.offsets)] = passed.byte_count
        yield self._chunk(buffer[:EXCERPT_BYTES], is_start_of=passed.byte_count)
        self._offset += passed.byte_count + passed.gap
        return self._strip(passed.rest)

    def _chunk(self, text: bytes, *, is_start_of: int = 0) -> Chunk:
        self.offsets.append(self._offset)
        is_doubted = is_start_of > 0 or may_be_too_deep(text)
        return Chunk(len(self.offsets) - 1, self._offset, text, is_doubted, is_start_of)

    def _read(self, at_least: int = 0) -> bytes:
        """Read a block. If a compressed stream is truncated, record the problem and return nothing.

        The rest of the previous block is usually short. If one event is very long, the read size
        doubles each time, so that the repeated copying of its start takes linear time.
        """
        try:
            block = self.stream.read(min(max(self.chunk_bytes, at_least), MAX_EVENT_BYTES))
        except (EOFError, OSError, ValueError) as error:
            self._note_end(f"the rest of the file cannot be read: {error}")
            return b""
        if not block and isinstance(self.stream, UnpackedStream) and self.stream.problem:
            self._note_end(self.stream.problem, self.stream.unread_share)
            self.stream.problem = None
        self.bytes_read += len(block)
        return block

    def _note(self, text: bytes, reason: str, *, is_lost: bool = True) -> None:
        excerpt = text[:EXCERPT_BYTES].decode("utf-8", errors="replace")
        self.problems.append(Problem(self._offset, len(text), reason, excerpt, is_lost))

    def _note_end(self, reason: str, unread_share: float | None = None) -> None:
        """Note that the file ends early; its rest is estimated to unpack to as much as the start."""
        unread = (
            round(self.bytes_read * unread_share / (1 - unread_share))
            if unread_share is not None and unread_share < 1
            else None
        )
        self.problems.append(Problem(self.bytes_read, unread, reason, ""))

    def _read_header(self) -> bytes:
        """Read up to the first event; return the bytes after the bracket."""
        buffer = self._read(len(_UTF8_BOM))
        if buffer.startswith(_UTF8_BOM):
            buffer, self._offset = buffer[len(_UTF8_BOM) :], len(_UTF8_BOM)
        buffer = self._strip(buffer)
        while not buffer and (block := self._read()):
            buffer = self._strip(block)
        if not buffer:
            why = "".join(f" ({problem.reason})" for problem in self.problems)
            raise TraceFormatError(f"{self.name}: the file is empty{why}. Record the trace again.")
        if buffer.startswith(b"["):
            start = 1
        elif buffer.startswith(b"{"):
            buffer, start = self._find_events(buffer)
        else:
            head = (buffer + self._read(20))[:20]
            raise TraceFormatError(
                f"{self.name}: not JSON (it starts with {head!r}). "
                "A Kineto trace is a JSON object with a traceEvents list."
            )
        self._offset += start
        self.header = buffer[:start]
        buffer = self._strip(buffer[start:])
        self._learn_separator(buffer)
        return buffer

    def _find_events(self, buffer: bytes) -> tuple[bytes, int]:
        while not (found := _EVENTS_KEY.search(buffer)):
            block = self._read(len(buffer))
            if not block or len(buffer) > HEADER_LIMIT_BYTES:
                raise TraceFormatError(
                    f"{self.name}: no traceEvents list, so this is not a Kineto trace. "
                    "Pass the JSON that torch.profiler's export_chrome_trace writes."
                )
            buffer += block
        self._add_metadata(buffer[1 : found.start()], "header")
        return buffer, found.end()

    def _learn_separator(self, buffer: bytes) -> None:
        """Detect the separator of the first two events in the buffer, unless it is known."""
        text = buffer.decode("latin-1")  # one character per byte, so that positions remain valid
        position = 0
        while text[position : position + 1] == "{":
            try:
                _, end = _decoder.raw_decode(text, position)
            except (ValueError, RecursionError):
                return  # an event truncated by the end of the buffer, or a malformed one
            boundary = _BOUNDARY.match(buffer, end)
            if not boundary:
                return
            separator = b"}" + boundary.group()
            if separator not in self._separators:
                self._separators.append(separator)
                return
            position = boundary.end() - len(boundary.group().lstrip(SPACE_AND_COMMA))

    def _last_separator(self, buffer: bytes) -> int:
        """Return the position after the last event that certainly ends in the buffer, or -1."""
        last = max((buffer.rfind(separator) for separator in self._separators), default=-1)
        return last + 1 if last >= 0 else -1

    def _end_of_whole_events(self, buffer: bytes, *, stray_before: int) -> tuple[int, bool]:
        """Return the position after the last event that certainly ends in the buffer.

        A closing bracket that is not known to be stray comes first: its own position is returned.

        Returns:
            The position, and whether an event that is too long starts there.
        """
        end = 0
        for span in walk(buffer, is_partial=True):
            if span.is_bracket and span.start >= stray_before:
                return span.start, False
            reach = len(buffer) if span.is_open else span.end
            if len(buffer[span.start : reach].rstrip(SPACE_AND_COMMA)) > MAX_EVENT_BYTES:
                return span.start, True
            if span.is_open:
                break
            # A word that is followed by an event without a comma would parse as an element.
            if not span.problem or buffer.startswith(b"{", span.start):
                end = span.end
        return end, False

    def _strip(self, buffer: bytes) -> bytes:
        """Drop the text between two events."""
        stripped = buffer.lstrip(SPACE_AND_COMMA)
        self._offset += len(buffer) - len(stripped)
        return stripped

    def _end_of_events(self, buffer: bytes) -> int:
        """Walk the last events one by one to the bracket that closes the list; return its position.

        If a malformed last event hides the bracket, the list ends at the last bracket followed by a
        valid trailer. Without such a bracket the file is truncated, and the rest of it is events.
        """
        brackets, span = 0, None
        for span in walk(buffer):
            if span.is_bracket and brackets < MAX_TRAILER_BRACKETS:
                brackets += 1
                if closes_the_list(buffer[span.start + 1 :]):
                    return span.start
        if span and span.problem and span.text is None and span.end == len(buffer):
            for bracket in last_brackets(buffer, span.start):
                if follows_the_list(buffer[bracket + 1 :]):
                    return bracket
        if all(problem.byte_offset < self.bytes_read for problem in self.problems):
            self._note_end("the event list is not terminated: the file is cut off")
        return len(buffer)

    def _read_trailer(self, buffer: bytes) -> None:
        self.trailer = buffer
        start = _LIST_END.match(buffer).end()  # type: ignore[union-attr]
        self._offset += start
        if buffer[start:].rstrip(b"} \t\r\n"):
            self._add_metadata(buffer[start:].rstrip(SPACE_AND_COMMA), "trailer")
        if self._read():
            self._note_end(f"the trailer was not read beyond {TRAILER_LIMIT_BYTES >> 20} MB")

    def _add_metadata(self, text: bytes, where: str) -> None:
        keys = read_keys(text)
        self.metadata.update(keys.values)
        where = f"the {where} next to traceEvents"
        if keys.problem:
            self._note(text, f"{where}: {keys.problem}")
        elif keys.repairs:
            self._note(text, f"{where}: repaired: {keys.repairs}", is_lost=False)
