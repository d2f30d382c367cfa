"""Salvages events from text that the parser rejects, event by event.

A streaming JSON parser (ijson) does not work here, because it cannot continue after an invalid
byte. This walks from event to event with the standard library's decoder. If an event does not
parse, it tries repairs, and otherwise skips to the start of the next event. One malformed event
costs one event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from hta_sql.traces.grammar import ENGINE_ONLY, NEAR_THE_END, EngineGrammar
from hta_sql.traces.repair import STRING, is_valid_unicode, repaired, strictly

EXCERPT_BYTES = 200

WINDOW_BYTES = 64 << 10
"""Bytes to decode at a time; a longer event gets a larger window."""

STARTS_TO_LOOK_PAST = 4
"""Number of apparent event starts to skip when searching a malformed event's closing brace."""

EVENT_START = re.compile(
    rb'(?<=[,}\]])\s*\{\s*"(?:ph|cat|name|pid|tid|ts|dur|id|bp|s|args)"\s*:|\{\s*"ph"\s*:'
    rb'|"traceEvents"\s*:\s*\['
)
"""The start of the next event, or of the event list of another file."""

FILE_START = re.compile(rb'"traceEvents"\s*:\s*\[')
TOO_DEEP = "nested too deeply"
NEVER_CLOSED = "a bracket is never closed"
HOLDS_EVENTS = "not an event, but it contains events"
_BETWEEN = re.compile(rb"[ \t\r\n,]*")
_AFTER_EVENT = re.compile(rb"[ \t\r\n]*(?:,[ \t\r\n]*(?:\{|\Z)|\]|\Z)")
_AFTER_VALUE = re.compile(r"[ \t\r\n]*(?:([,\]])|\Z)")
_STRING_OR_BRACKET = re.compile(STRING + rb"|[{}\[\]]", re.DOTALL)
QUOTE = ord('"')
_BEFORE_OPENING = {ord("{"): b":", ord("["): b",["}
_PAIR = {ord("}"): ord("{"), ord("]"): ord("[")}
# Numbers stay text: their value is not needed, and Python rejects very long ones.
_decoder = json.JSONDecoder(strict=False, parse_int=len, parse_float=len)
_strict_decoder = json.JSONDecoder(parse_int=len, parse_float=len)


@dataclass(frozen=True)
class Span:
    """A span of text between two events: an event, or whatever is in its place.

    Attributes:
        start: Start position.
        end: End position.
        problem: Why the span does not parse; None if it does.
        text: Repaired text to parse instead; None if the span cannot be repaired.
        repair: Repairs that were made.
        has_control: Whether strings in the span may contain control characters.
        is_bracket: Whether the span starts with a closing bracket, which may end the event list.
        is_open: Whether the span may continue after the end of the text.
    """

    start: int
    end: int
    problem: str | None = None
    text: bytes | None = None
    repair: str | None = None
    has_control: bool = False
    is_bracket: bool = False
    is_open: bool = False


@dataclass(frozen=True)
class Rescued:
    """A span of the text: an event as it will be parsed, or the defect that makes it unreadable.

    Attributes:
        start: Position of the span in the text.
        source: The original bytes.
        text: Valid JSON of the event; None if the event is lost.
        reason: The defect; None if there is none.
        is_doubtful: Whether the text may have been cut at the wrong position.
    """

    start: int
    source: bytes
    text: bytes | None
    reason: str | None
    is_doubtful: bool = False
    is_start_of: int = 0
    """Size of the span [bytes] if it is too long and `source` is only its start."""

    @property
    def byte_count(self) -> int:
        """Size of the span [bytes]."""
        return self.is_start_of or len(self.source)

    @property
    def excerpt(self) -> str:
        """The start of the span, printable."""
        return self.source[:EXCERPT_BYTES].decode("utf-8", errors="replace")


def hides_events(text: bytes, elements: Iterable[object]) -> bool:
    """Return whether text that parses contains more events than its top-level elements."""
    # A plain search is ten times as fast as a regular expression.
    is_file = b'"traceEvents"' in text and FILE_START.search(text) is not None
    return is_file or any(isinstance(element, list) for element in elements)


def rescue(text: bytes) -> list[Rescued]:
    """Return the events in some text: valid, repaired or lost."""
    # Checking the whole text once saves checking each valid event.
    is_unicode = is_valid_unicode(text)
    return [_rescued(text, span, is_unicode=is_unicode) for span in walk(text)]


def too_long(start: bytes, byte_count: int, reason: str) -> Rescued:
    """Return a lost event of which only the start is known."""
    return Rescued(0, start, None, reason, is_start_of=byte_count)


def _rescued(text: bytes, span: Span, *, is_unicode: bool) -> Rescued:
    source = text[span.start : span.end].rstrip(b", \t\r\n")
    is_doubtful = span.is_bracket or span.is_open
    if span.problem is None:
        is_strict = is_unicode and not span.has_control
        valid, repair = (source, None) if is_strict else strictly(source)
        return Rescued(span.start, source, valid, _repaired_by(repair), is_doubtful)
    if span.text is None:
        reason = f"broken JSON: {_problem(source)}"
        return Rescued(span.start, source, None, reason, is_doubtful)
    return Rescued(span.start, source, span.text, _repaired_by(span.repair), is_doubtful)


def _repaired_by(repair: str | None) -> str | None:
    return f"repaired: {repair}" if repair else None


def _problem(source: bytes) -> str:
    """Return the defect of a span parsed on its own, so that messages do not depend on the cut."""
    if not source.startswith(b"{"):
        return "not an event"
    if (found := FILE_START.search(source)) and found.end() == len(source):
        return "another file starts inside this one"
    try:
        _decoder.decode(source.decode("latin-1"))
    except json.JSONDecodeError as error:
        return error.msg
    except RecursionError:
        return TOO_DEEP
    return "the engine cannot read it"


def walk(text: bytes, *, is_partial: bool = False) -> Iterator[Span]:
    """Yield the spans; a closing bracket between two events is a span up to the next event.

    If the text is partial, a value that may continue beyond the text is not interpreted.
    """
    position, size = 0, len(text)
    window = _Window(text)
    while True:
        position = _BETWEEN.match(text, position).end()  # type: ignore[union-attr]
        if position >= size:
            return
        span = window.value(position)
        has_no_end = span.problem is not None and span.end == span.start
        if has_no_end and not (is_partial and span.is_open):
            span = _broken(text, span)
        yield span
        if is_partial and span.is_open:
            return
        position = span.end


class _Window:
    """Decodes values in a window of a large text.

    Python's decoder counts the lines before an error, which would take quadratic time in a large
    chunk with many malformed events.

    An element that is not an event may contain events: a list, or a whole file that was written
    into the list. Such an element ends where its first event starts, because its own end may be
    anywhere.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._start = 0
        self._readable = ""
        self._next_event = self._next_list = (-1, -1)

    def value(self, start: int) -> Span:
        """Decode the value at a position; if that fails, the span has a problem and no end yet."""
        end = self._start + len(self._readable)
        if end < len(self._text) and start + WINDOW_BYTES // 2 > end:
            self._move(start, WINDOW_BYTES)
        while True:
            span = self._value(start - self._start)
            is_whole = self._start + len(self._readable) == len(self._text)
            if is_whole or not span.is_open:
                return replace(span, start=start, end=span.end + self._start)
            self._move(start, 4 * len(self._readable))

    def _move(self, start: int, size: int) -> None:
        # One character per byte, so that positions remain valid.
        self._start, self._readable = start, self._text[start : start + size].decode("latin-1")
        self._grammar = EngineGrammar(self._readable)
        self._next_event = self._next_list = (-1, -1)

    def _value(self, start: int) -> Span:
        span = self._plain_value(start)
        first = self._first_inside(start)
        if first > 0 and (first < span.end or span.problem is not None or span.is_open):
            return Span(start, first, HOLDS_EVENTS)
        return span

    def _first_inside(self, start: int) -> int:
        """Return the position of the first event inside an element that is not an event, or -1."""
        mark = self._readable[start]
        if mark == "[":
            self._next_event = self._following(EVENT_START, self._next_event, start)
            return self._next_event[1]
        if mark == "{":
            self._next_list = self._following(FILE_START, self._next_list, start)
            name, bracket_end = self._next_list
            # A file has no event before its list, so most texts need no further check.
            if bracket_end > 0 and self._readable.find('"ph"', start, name) < 0:
                header = self._readable[start : bracket_end - 1]
                return bracket_end if _ends_before_a_list(header) else -1
        return -1

    def _following(
        self, pattern: re.Pattern[bytes], known: tuple[int, int], start: int
    ) -> tuple[int, int]:
        """Return the next match in the window, reusing a known match that is still ahead.

        Returns:
            The start of the match, and the start of the event in it; (size, -1) if there is none.
        """
        size = len(self._readable)
        if known[0] > start:
            return known
        found = pattern.search(self._text, self._start + start + 1, self._start + size)
        if not found:
            return size, -1
        return found.start() - self._start, _announced(found) - self._start

    def _plain_value(self, start: int) -> Span:
        readable, size = self._readable, len(self._readable)
        if self._grammar.is_hopeless(start):
            return Span(start, start, NEVER_CLOSED, is_open=self._grammar.end(start)[1])
        try:
            end, has_control = _decoded(readable, start)
        except json.JSONDecodeError as error:
            cut = error.pos >= size - NEAR_THE_END or error.msg.startswith("Unterminated string")
            if not ENGINE_ONLY.match(readable, error.pos):
                return Span(start, start, error.msg, is_open=cut)
            return self._engine_value(start, error.msg, is_cut=cut)
        except RecursionError:
            return self._engine_value(start, TOO_DEEP, is_cut=False)
        return self._whole(start, end, has_control=has_control)

    def _engine_value(self, start: int, problem: str, *, is_cut: bool) -> Span:
        """Try the engine's grammar, which accepts more than Python's decoder."""
        end, ran_out = self._grammar.end(start)
        if end < 0:
            return Span(start, start, problem, is_open=ran_out or is_cut)
        return self._whole(start, end, has_control=True)

    def _whole(self, start: int, end: int, *, has_control: bool) -> Span:
        if self._readable[start] == "{":
            return Span(start, end, has_control=has_control)
        # Not an event, but still an element of the list if the list continues after it.
        size = len(self._readable)
        after = _AFTER_VALUE.match(self._readable, end)
        if not after:
            return Span(start, start, "Extra data")
        # A number may continue after the end of the text; any value may be followed by a word.
        is_cut = self._readable[start] not in '["' and end >= size - NEAR_THE_END
        is_open = is_cut or not after.group(1)
        return Span(start, end, has_control=has_control, is_open=is_open)


def _decoded(readable: str, start: int) -> tuple[int, bool]:
    """Decode a value; return its end, and whether its strings contain control characters."""
    try:
        return _strict_decoder.raw_decode(readable, start)[1], False
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Invalid control character"):
            raise
    return _decoder.raw_decode(readable, start)[1], True


def _broken(text: bytes, span: Span) -> Span:
    """Find the end of a malformed event, and repair it if possible.

    The event ends with its closing brace if the text up to the brace can be repaired, or if the
    next event or the end of the list follows. Otherwise its quotes or brackets do not match, and it
    ends at the next apparent event start.
    """
    start, size = span.start, len(text)
    next_start = _next_event(text, start)
    if not text.startswith(b"{", start):
        is_bracket = text.startswith(b"]", start)
        is_open = next_start == size or (span.is_open and not is_bracket)
        return Span(start, next_start, span.problem, is_bracket=is_bracket, is_open=is_open)
    brace, ran_out = _closing_brace(text, start, next_start)
    after = _AFTER_EVENT.match(text, brace) if 0 < brace <= next_start else None
    if after:
        end, is_open = brace, after.end() == size
    else:
        # Quotes are only repaired before the next event; otherwise they swallow whole events.
        if brace > 0 and (fixed := repaired(text[start:brace], quotes=False)):
            return Span(start, brace, span.problem, *fixed)
        end, is_open = next_start, span.is_open or ran_out or next_start == size
    valid, repair = repaired(text[start:end].rstrip(b", \t\r\n")) or (None, None)
    return Span(start, end, span.problem, valid, repair, is_open=is_open)


def _next_event(text: bytes, position: int) -> int:
    following = EVENT_START.search(text, position + 1)
    return _announced(following) if following else len(text)


def _announced(found: re.Match[bytes]) -> int:
    """Return the position of an event start, or the position after the bracket of a list start."""
    start = found.group().lstrip()
    return found.end() - len(start) if start.startswith(b"{") else found.end()


def _ends_before_a_list(header: str) -> bool:
    """Return whether the text is a valid object up to the value of its last key."""
    try:
        return _decoder.raw_decode(header + "0}")[1] == len(header) + 2
    except (ValueError, RecursionError):
        return False


def _closing_brace(text: bytes, start: int, next_start: int) -> tuple[int, bool]:
    """Return the position after the brace that closes the brace at ``start``, or -1.

    Returns:
        The position, and whether the text ended before it was found.
    """
    opened: list[int] = []
    looked_past = 0
    for token in _STRING_OR_BRACKET.finditer(text, start):
        position = token.start()
        if position >= next_start:
            looked_past += 1
            if looked_past > STARTS_TO_LOOK_PAST:
                return -1, False
            next_start = _next_event(text, position)
        mark = text[position]
        if mark == QUOTE:
            continue
        if mark in _PAIR:
            if opened.pop() != _PAIR[mark]:
                return -1, False
            if not opened:
                return position + 1, False
        else:
            before = text[max(start, position - NEAR_THE_END) : position].rstrip()[-1:]
            if opened and before not in _BEFORE_OPENING[opened[-1]]:
                return -1, False
            opened.append(mark)
    return -1, True
