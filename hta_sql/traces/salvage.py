"""Rescues what can be rescued from text that the parser refuses, event by event.

A streaming JSON parser (ijson) was the first choice and is the wrong one: it
cannot go on behind a bad byte. This walks the text from event to event with
the standard library's decoder; where an event does not parse, it tries repairs,
and else skips to where the next event starts. One bad event costs one event.
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
"""Decode so much at a time; a longer event gets a longer window."""

STARTS_TO_LOOK_PAST = 4
"""Look for the closing brace of a broken event past so many things that look like events."""

EVENT_START = re.compile(
    rb'(?<=[,}\]])\s*\{\s*"(?:ph|cat|name|pid|tid|ts|dur|id|bp|s|args)"\s*:|\{\s*"ph"\s*:'
    rb'|"traceEvents"\s*:\s*\['
)
"""What the next event starts with; or the list of another file, behind which its first stands."""

FILE_START = re.compile(rb'"traceEvents"\s*:\s*\[')
TOO_DEEP = "nested too deeply"
NEVER_CLOSED = "a bracket is never closed"
HOLDS_EVENTS = "not an event, but events stand in it"
_BETWEEN = re.compile(rb"[ \t\r\n,]*")
_AFTER_EVENT = re.compile(rb"[ \t\r\n]*(?:,[ \t\r\n]*(?:\{|\Z)|\]|\Z)")
_AFTER_VALUE = re.compile(r"[ \t\r\n]*(?:([,\]])|\Z)")
_STRING_OR_BRACKET = re.compile(STRING + rb"|[{}\[\]]", re.DOTALL)
QUOTE = ord('"')
_BEFORE_OPENING = {ord("{"): b":", ord("["): b",["}
_PAIR = {ord("}"): ord("{"), ord("]"): ord("[")}
# Numbers stay text: their value does not matter here, and Python refuses long ones.
_decoder = json.JSONDecoder(strict=False, parse_int=len, parse_float=len)
_strict_decoder = json.JSONDecoder(parse_int=len, parse_float=len)


@dataclass(frozen=True)
class Span:
    """A stretch of text between two events: an event, or what stands in place of one.

    Attributes:
        start: Where it starts.
        end: Where it ends.
        problem: Why it does not parse; None: it does.
        text: What to parse in its place; None: nothing can be made of it.
        repair: What had to be repaired in it.
        has_control: There may be control characters in its strings.
        is_bracket: It starts with a closing bracket: the list of events may end here.
        is_open: It may go on behind the end of the text.
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
    """One span of the text: an event as it will be parsed, or what was wrong with it.

    Attributes:
        start: Position of the span in the text.
        source: The bytes as they stand there.
        text: Valid JSON of the event; None: it is lost.
        reason: What was wrong; None: nothing.
        is_doubtful: The text may have been cut in the wrong place.
    """

    start: int
    source: bytes
    text: bytes | None
    reason: str | None
    is_doubtful: bool = False
    is_start_of: int = 0
    """Bytes of the span, where it is too long and `source` is only its start."""

    @property
    def byte_count(self) -> int:
        """Bytes of the span."""
        return self.is_start_of or len(self.source)

    @property
    def excerpt(self) -> str:
        """The start of the span, printable."""
        return self.source[:EXCERPT_BYTES].decode("utf-8", errors="replace")


def hides_events(text: bytes, elements: Iterable[object]) -> bool:
    """Say whether a walk finds more events than there are elements in a text that parses."""
    # A plain search is ten times as fast as an expression.
    is_file = b'"traceEvents"' in text and FILE_START.search(text) is not None
    return is_file or any(isinstance(element, list) for element in elements)


def rescue(text: bytes) -> list[Rescued]:
    """Walk a run of events and return each, whole, repaired or lost."""
    # One look at the whole text spares one at each of its healthy events.
    is_unicode = is_valid_unicode(text)
    return [_rescued(text, span, is_unicode=is_unicode) for span in walk(text)]


def too_long(start: bytes, byte_count: int, reason: str) -> Rescued:
    """Give up an event of which only the start is known."""
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
    """Say what is wrong with a span by itself: the same words wherever the text was cut."""
    if not source.startswith(b"{"):
        return "not an event"
    if (found := FILE_START.search(source)) and found.end() == len(source):
        return "another file starts inside of this one"
    try:
        _decoder.decode(source.decode("latin-1"))
    except json.JSONDecodeError as error:
        return error.msg
    except RecursionError:
        return TOO_DEEP
    return "the engine cannot read it"


def walk(text: bytes, *, is_partial: bool = False) -> Iterator[Span]:
    """Go from event to event; a closing bracket between two is a span up to the next event.

    Where the text is partial, nothing is made of a value that may go on behind its end.
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
    """Decodes values of a text that may be large.

    Python's decoder counts the lines before an error: over a whole chunk, and for every broken
    event in it, that would take time squared.

    What is no event but holds events, a list or a whole file that was written into the list, ends
    where the first of them starts: that is known long before its own end, which may be anywhere.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._start = 0
        self._readable = ""
        self._next_event = self._next_list = (-1, -1)

    def value(self, start: int) -> Span:
        """Decode what stands there; where it fails, the span has a problem and no end yet."""
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
        # One character a byte: positions stay valid.
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
        """Position of the first event that may stand inside of what is no event itself, or -1."""
        mark = self._readable[start]
        if mark == "[":
            self._next_event = self._following(EVENT_START, self._next_event, start)
            return self._next_event[1]
        if mark == "{":
            self._next_list = self._following(FILE_START, self._next_list, start)
            name, bracket_end = self._next_list
            # No file has an event before its list: most texts are not even looked at.
            if bracket_end > 0 and self._readable.find('"ph"', start, name) < 0:
                header = self._readable[start : bracket_end - 1]
                return bracket_end if _ends_before_a_list(header) else -1
        return -1

    def _following(
        self, pattern: re.Pattern[bytes], known: tuple[int, int], start: int
    ) -> tuple[int, int]:
        """Look for the next match in the window, unless the one that is known is still ahead.

        Returns:
            Where it starts, and where the event stands that it announces; (size, -1): there is none.
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
        """Try what the engine reads and Python does not."""
        end, ran_out = self._grammar.end(start)
        if end < 0:
            return Span(start, start, problem, is_open=ran_out or is_cut)
        return self._whole(start, end, has_control=True)

    def _whole(self, start: int, end: int, *, has_control: bool) -> Span:
        if self._readable[start] == "{":
            return Span(start, end, has_control=has_control)
        # Not an event, but an element of the list all the same, if that goes on behind it.
        size = len(self._readable)
        after = _AFTER_VALUE.match(self._readable, end)
        if not after:
            return Span(start, start, "Extra data")
        # A number may go on behind the end of the text; and whatever it is, a word may follow.
        is_cut = self._readable[start] not in '["' and end >= size - NEAR_THE_END
        is_open = is_cut or not after.group(1)
        return Span(start, end, has_control=has_control, is_open=is_open)


def _decoded(readable: str, start: int) -> tuple[int, bool]:
    """Decode a value; returns its end and whether control characters stand in its strings."""
    try:
        return _strict_decoder.raw_decode(readable, start)[1], False
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Invalid control character"):
            raise
    return _decoder.raw_decode(readable, start)[1], True


def _broken(text: bytes, span: Span) -> Span:
    """Find the end of an event that does not parse, and repair it if possible.

    It ends with its closing brace if it can be repaired so far, or if the next event or the end
    of the list follows the brace. Else, quotes or brackets do not match, and it ends where
    something starts that looks like the next event.
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
        # Quotes are only repaired in front of the next event: else they swallow events whole.
        if brace > 0 and (fixed := repaired(text[start:brace], quotes=False)):
            return Span(start, brace, span.problem, *fixed)
        end, is_open = next_start, span.is_open or ran_out or next_start == size
    valid, repair = repaired(text[start:end].rstrip(b", \t\r\n")) or (None, None)
    return Span(start, end, span.problem, valid, repair, is_open=is_open)


def _next_event(text: bytes, position: int) -> int:
    following = EVENT_START.search(text, position + 1)
    return _announced(following) if following else len(text)


def _announced(found: re.Match[bytes]) -> int:
    """Position of the event that starts so, or that follows the bracket of its list."""
    start = found.group().lstrip()
    return found.end() - len(start) if start.startswith(b"{") else found.end()


def _ends_before_a_list(header: str) -> bool:
    """Say whether the text is an object up to the value of a key, and all before it is whole."""
    try:
        return _decoder.raw_decode(header + "0}")[1] == len(header) + 2
    except (ValueError, RecursionError):
        return False


def _closing_brace(text: bytes, start: int, next_start: int) -> tuple[int, bool]:
    """Position behind the brace that closes the one at start, or -1.

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
