"""Events as text: numbers that nobody changes keep every digit that the profiler wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any

from hta_sql.traces.event_offsets import OFFSET_OF, Offsets

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
# What follows a key, where no object is in an object and no list in a list: nearly all that a
# trace has. The text is known to be JSON, so this may be lax.
_VALUE = re.compile(
    rf"\s*:\s*({_STRING}|[^\s\",{{}}\[\]]+"
    rf"|\{{[^\"{{}}]*(?:{_STRING}[^\"{{}}]*)*\}}|\[[^\"\[\]]*(?:{_STRING}[^\"\[\]]*)*\])",
    re.DOTALL,
)
KEPT_BYTES = 256
"""Longer values are parsed anew: 4,000 of them are kept, whatever a trace holds."""

_decoder = json.JSONDecoder()
_encoder = json.JSONEncoder(allow_nan=False)


class Json(str):
    """A value that is JSON text already: what many events get is written once."""

    __slots__ = ()

    @classmethod
    def of(cls, value: Any) -> Json:
        """Write a value."""
        return cls(_encoder.encode(value))


class Event:
    """One event of a trace.

    Args:
        event_id: Position in ``traceEvents``: the ``event_id`` of the tables.
        text: The event as it stands in the file, UTF-8.
        fields: The same, parsed; None: parsed where somebody asks for them.
        places: Where values stand in the text; None: they are looked for.
    """

    __slots__ = ("_fields", "_places", "event_id", "text")

    def __init__(
        self,
        event_id: int,
        text: bytes,
        fields: Mapping[str, Any] | None = None,
        places: Offsets | None = None,
    ) -> None:
        self.event_id = event_id
        self.text = text
        self._fields = fields
        self._places = places

    @property
    def fields(self) -> Mapping[str, Any]:
        """The event, parsed; numbers with a fraction are floats, which have fewer digits."""
        if self._fields is None:
            self._fields = _decoder.decode(self.text.decode("utf-8"))
        return self._fields

    def _place_of(self, key: str) -> tuple[int, int] | None:
        """Where the value of a field stands: twice 0 where there is none; None where that is not known."""
        if self._places is None or key not in OFFSET_OF:
            return None
        at = OFFSET_OF[key]
        return self._places[at], self._places[at + 1]

    def __contains__(self, key: str) -> bool:
        """Say whether it has a field."""
        place = self._place_of(key)
        return place[0] > 0 if place else key in self.fields

    def get(self, key: str) -> Any:
        """Return a field, parsed, or None; where its place is known nothing else is parsed."""
        place = self._place_of(key)
        if place is None:
            return self.fields.get(key)
        text = self.text[slice(*place)]
        # Few texts stand in many events. Lists and objects may be changed by who gets them.
        is_kept = len(text) <= KEPT_BYTES and text[:1] not in _NESTED
        return _known(text) if is_kept else _loaded(text)

    def replace(self, **fields: Any) -> bytes:
        """Return the text with fields set; all others stay as they were written."""
        places = {key: place for key in fields if (place := self._place_of(key))}
        if len(places) < len(fields):
            return _with_members(self.text.decode("utf-8"), self.fields, fields).encode("utf-8")
        text = self.text
        # The last one first: the places before it stay as they are.
        for key, (start, end) in sorted(places.items(), key=itemgetter(1), reverse=True):
            if start:
                text = text[:start] + _dumped(fields[key]).encode() + text[end:]
        added = {key: value for key, value in fields.items() if not places[key][0]}
        return _inserted(text.decode("utf-8"), _listed(added)).encode("utf-8") if added else text

    def changed(self, **fields: Any) -> Event:
        """Return the event with fields set."""
        return Event(self.event_id, self.replace(**fields), {**self.fields, **fields})

    def member(self, key: str) -> str:
        """Return the text of a field that it has, as it was written."""
        if place := self._place_of(key):
            return self.text[slice(*place)].decode("utf-8")
        text = self.text.decode("utf-8")
        start, end = _place(text, key)
        return text[start:end]

    def with_args(self, **args: Any) -> bytes:
        """Return the text with arguments set; all others stay as they were written."""
        known = self.get("args")
        is_object = isinstance(known, dict)
        old = self.member("args") if is_object else "{}"
        return self.replace(args=Json(_with_members(old, known if is_object else {}, args)))


def _loaded(text: bytes) -> Any:
    return _decoder.decode(text.decode("utf-8")) if text else None


_known = lru_cache(maxsize=4096)(_loaded)
_NESTED = (b"{", b"[")


def trace_event(ph: str, name: str, *, ts: int, dur: int | None = None, **fields: Any) -> bytes:
    """Write one event.

    Args:
        ph: Phase: ``C`` counter, ``s`` and ``f`` flow, ``X`` complete, ...
        name: Its name.
        ts: Start in the file's own clock [ns]: ``ts - offset_ns + first_ts`` of the tables.
        dur: Duration [ns].
        **fields: ``pid``, ``tid``, ``id``, ``cat``, ``args``, ...; None is left out.
    """
    rest = {key: value for key, value in fields.items() if value is not None}
    duration = "" if dur is None else f', "dur": {microseconds(dur)}'
    more = f", {_dumped(rest)[1:-1]}" if rest else ""
    text = f'{{"ph": {_dumped(ph)}, "name": {_dumped(name)}, "ts": {microseconds(ts)}{duration}{more}}}'
    return text.encode("utf-8")


def written_event(fields: Mapping[str, Any]) -> bytes:
    """Write an event of these fields, in their order."""
    return f"{{{_listed(fields)}}}".encode()


def microseconds(ns: int) -> str:
    """Write nanoseconds as microseconds, the unit of traces, with every digit: ``12.005``."""
    whole, part = divmod(abs(ns), 1000)
    return f"{'-' if ns < 0 else ''}{whole}.{part:03d}"


def _with_members(text: str, known: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Set members of a JSON object, in place where it has them, else behind the last one.

    Args:
        text: The object.
        known: Its members, parsed.
        values: What to set.
    """
    for key, value in values.items():
        if key in known:
            start, end = _place(text, key)
            text = f"{text[:start]}{_dumped(value)}{text[end:]}"
    added = {key: value for key, value in values.items() if key not in known}
    return _inserted(text, _listed(added)) if added else text


def _listed(members: Mapping[str, Any]) -> str:
    return ", ".join(f"{_dumped(key)}: {_dumped(value)}" for key, value in members.items())


def _inserted(text: str, members: str) -> str:
    """Put members behind the last one of an object."""
    head = text[: text.rindex("}")].rstrip()
    return f"{head}{'' if head.endswith('{') else ', '}{members}}}"


def _place(text: str, key: str) -> tuple[int, int]:
    """Find the value of a member that an object has."""
    # Without a backslash a quote is the end of a text, so that a key which stands there once is
    # the member itself: not a part of a text, and not in an object inside.
    quoted = _dumped(key)
    at = text.find(quoted)
    if at >= 0 and "\\" not in text and text.find(quoted, at + 1) < 0:
        value = _VALUE.match(text, at + len(quoted))
        if value:
            return value.span(1)
    return dict(_members(text))[key]


def _members(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield each key of a JSON object and where its value stands; of equal keys the last counts."""
    position = _skip(text, 1)
    while text[position] != "}":
        key, position = _decoder.raw_decode(text, position)
        start = _skip(text, _skip(text, position) + 1)
        _, end = _decoder.raw_decode(text, start)
        yield key, (start, end)
        position = _skip(text, end)
        if text[position] == ",":
            position = _skip(text, position + 1)


def _skip(text: str, position: int) -> int:
    return _SPACE.match(text, position).end()  # type: ignore[union-attr]  # it matches nothing, too


def _dumped(value: Any) -> str:
    # In ASCII: half a surrogate pair in a name cannot be UTF-8.
    return value if isinstance(value, Json) else _encoder.encode(value)
