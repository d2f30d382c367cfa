"""Edits events as text, so that unchanged numbers keep every digit that the profiler wrote."""

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
# The value after a key, without objects in objects or lists in lists: nearly all values of a trace.
# The text is known to be JSON, so the pattern may be lax.
_VALUE = re.compile(
    rf"\s*:\s*({_STRING}|[^\s\",{{}}\[\]]+"
    rf"|\{{[^\"{{}}]*(?:{_STRING}[^\"{{}}]*)*\}}|\[[^\"\[\]]*(?:{_STRING}[^\"\[\]]*)*\])",
    re.DOTALL,
)
KEPT_BYTES = 256
"""Maximum size of a cached value [bytes]; longer values are parsed each time."""

_decoder = json.JSONDecoder()
_encoder = json.JSONEncoder(allow_nan=False)


class Json(str):
    """A value that is already JSON text, so that a value shared by many events is encoded once."""

    __slots__ = ()

    @classmethod
    def of(cls, value: Any) -> Json:
        """Encode a value."""
        return cls(_encoder.encode(value))


class Event:
    """One event of a trace.

    Args:
        event_id: Position in ``traceEvents``: the ``event_id`` of the tables.
        text: The event as in the file, UTF-8.
        fields: The parsed event; None: parsed on demand.
        places: Offsets of values in the text; None: found on demand.
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
        """The parsed event; numbers with a fraction are floats, which may lose digits."""
        if self._fields is None:
            self._fields = _decoder.decode(self.text.decode("utf-8"))
        return self._fields

    def _place_of(self, key: str) -> tuple[int, int] | None:
        """Return the offsets of a field's value: (0, 0) if it is missing, None if unknown."""
        if self._places is None or key not in OFFSET_OF:
            return None
        at = OFFSET_OF[key]
        return self._places[at], self._places[at + 1]

    def __contains__(self, key: str) -> bool:
        """Return whether the event has a field."""
        place = self._place_of(key)
        return place[0] > 0 if place else key in self.fields

    def get(self, key: str) -> Any:
        """Return a parsed field, or None; if the field's offsets are known, only it is parsed."""
        place = self._place_of(key)
        if place is None:
            return self.fields.get(key)
        text = self.text[slice(*place)]
        # Events share few values. Lists and objects are not cached: callers may change them.
        is_kept = len(text) <= KEPT_BYTES and text[:1] not in _NESTED
        return _known(text) if is_kept else _loaded(text)

    def replace(self, **fields: Any) -> bytes:
        """Return the text with fields set; all other fields remain as they were written."""
        places = {key: place for key in fields if (place := self._place_of(key))}
        if len(places) < len(fields):
            return _with_members(self.text.decode("utf-8"), self.fields, fields).encode("utf-8")
        text = self.text
        # From the end, so that the offsets before it stay valid.
        for key, (start, end) in sorted(places.items(), key=itemgetter(1), reverse=True):
            if start:
                text = text[:start] + _dumped(fields[key]).encode() + text[end:]
        added = {key: value for key, value in fields.items() if not places[key][0]}
        return _inserted(text.decode("utf-8"), _listed(added)).encode("utf-8") if added else text

    def changed(self, **fields: Any) -> Event:
        """Return the event with fields set."""
        return Event(self.event_id, self.replace(**fields), {**self.fields, **fields})

    def member(self, key: str) -> str:
        """Return the text of an existing field as it was written."""
        if place := self._place_of(key):
            return self.text[slice(*place)].decode("utf-8")
        text = self.text.decode("utf-8")
        start, end = _place(text, key)
        return text[start:end]

    def with_args(self, **args: Any) -> bytes:
        """Return the text with arguments set; all other arguments remain as they were written."""
        known = self.get("args")
        is_object = isinstance(known, dict)
        old = self.member("args") if is_object else "{}"
        return self.replace(args=Json(_with_members(old, known if is_object else {}, args)))


def _loaded(text: bytes) -> Any:
    return _decoder.decode(text.decode("utf-8")) if text else None


_known = lru_cache(maxsize=4096)(_loaded)
_NESTED = (b"{", b"[")


def trace_event(ph: str, name: str, *, ts: int, dur: int | None = None, **fields: Any) -> bytes:
    """Encode one event.

    Args:
        ph: Phase: ``C`` counter, ``s`` and ``f`` flow, ``X`` complete, ...
        name: Name of the event.
        ts: Start in the file's own clock [ns]: ``ts - offset_ns + first_ts`` of the tables.
        dur: Duration [ns].
        **fields: ``pid``, ``tid``, ``id``, ``cat``, ``args``, ...; None is omitted.
    """
    rest = {key: value for key, value in fields.items() if value is not None}
    duration = "" if dur is None else f', "dur": {microseconds(dur)}'
    more = f", {_dumped(rest)[1:-1]}" if rest else ""
    text = f'{{"ph": {_dumped(ph)}, "name": {_dumped(name)}, "ts": {microseconds(ts)}{duration}{more}}}'
    return text.encode("utf-8")


def written_event(fields: Mapping[str, Any]) -> bytes:
    """Encode an event with these fields, in their order."""
    return f"{{{_listed(fields)}}}".encode()


def microseconds(ns: int) -> str:
    """Format nanoseconds as microseconds, the unit of traces, with every digit: ``12.005``."""
    whole, part = divmod(abs(ns), 1000)
    return f"{'-' if ns < 0 else ''}{whole}.{part:03d}"


def _with_members(text: str, known: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Set members of a JSON object: replace existing members, append new ones.

    Args:
        text: Text of the object.
        known: Parsed members of the object.
        values: Members to set.
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
    """Append members to an object."""
    head = text[: text.rindex("}")].rstrip()
    return f"{head}{'' if head.endswith('{') else ', '}{members}}}"


def _place(text: str, key: str) -> tuple[int, int]:
    """Return the span of the value of an existing member of an object."""
    # Without backslashes, a quote always delimits a string. A quoted key that occurs once is
    # therefore the member itself, neither part of a string nor in a nested object.
    quoted = _dumped(key)
    at = text.find(quoted)
    if at >= 0 and "\\" not in text and text.find(quoted, at + 1) < 0:
        value = _VALUE.match(text, at + len(quoted))
        if value:
            return value.span(1)
    return dict(_members(text))[key]


def _members(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield each key of a JSON object and the span of its value; the last duplicate key counts."""
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
    return _SPACE.match(text, position).end()  # type: ignore[union-attr]  # it also matches the empty string


def _dumped(value: Any) -> str:
    # ASCII-only, because half a surrogate pair in a name cannot be encoded as UTF-8.
    return value if isinstance(value, Json) else _encoder.encode(value)
