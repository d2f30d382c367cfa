"""Offsets of the events of a chunk, and of their field values, without parsing.

This speeds up rewriting traces. If the compiled reader is unavailable, or a chunk is not plain
(contains anything unusual), Python parses each event instead.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import repeat

from hta_sql.traces.compiled import load_functions, reader_at_work

KEYS = ("ph", "cat", "name", "pid", "tid", "ts", "id", "args")
"""Fields whose offsets are returned."""

OFFSET_OF = {key: 2 * number for number, key in enumerate(KEYS)}
"""Field ─▶ index of its value's start among the offsets; the end of the value follows."""

_STRIDE = 2 + 2 * len(KEYS)
_SHORTEST = 16
"""Minimum average size of PyTorch's events [bytes]; a chunk with shorter events is not plain."""

Offsets = Sequence[int]
"""Start and end of the value of each of :data:`KEYS` in the event; 0 and 0 for a missing field."""


@cache
def _library() -> ctypes.CDLL | None:
    size, number = ctypes.c_size_t, ctypes.c_uint32
    text = (ctypes.c_char_p, size)
    return load_functions(
        (("event_offsets", ctypes.c_int64, *text, *text, ctypes.POINTER(number), size),)
    )


def event_offsets(text: bytes) -> list[int] | None:
    """Return the offsets in a chunk, or None if it is not plain or the library is unavailable.

    Returns:
        For each event its start, its end and its :data:`Offsets`, concatenated.
    """
    library = _library() if reader_at_work() == "compiled" else None
    if library is None:
        return None
    found = (ctypes.c_uint32 * (_STRIDE * (len(text) // _SHORTEST + 1)))()
    count = library.hta_sql_event_offsets(text, len(text), _keys, len(_keys), found, len(found))
    return None if count < 0 else memoryview(found).cast("B").cast("I")[: _STRIDE * count].tolist()


def count_events(found: list[int]) -> int:
    """Return the number of events in a result of :func:`event_offsets`."""
    return len(found) // _STRIDE


def events_of(text: bytes, found: list[int]) -> Iterator[tuple[bytes, Offsets]]:
    """Yield the text of each event and the offsets of its fields."""
    for start, end, *places in zip(*repeat(iter(found), _STRIDE), strict=True):
        yield text[start:end], places


_keys = "\t".join(KEYS).encode()
