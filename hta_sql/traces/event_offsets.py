"""Where the events of a chunk stand, and the values of their fields, without parsing any.

An accelerator of what writes traces anew, which may be absent, and refuses a chunk where anything is
not plain: then Python parses each event.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import repeat

from hta_sql.traces.compiled import load_functions, reader_at_work

KEYS = ("ph", "cat", "name", "pid", "tid", "ts", "id", "args")
"""Fields whose places are told."""

OFFSET_OF = {key: 2 * number for number, key in enumerate(KEYS)}
"""Field ─▶ where the start of its value stands among the places, before its end."""

_STRIDE = 2 + 2 * len(KEYS)
_SHORTEST = 16
"""An event of fewer bytes than this, on average of a chunk, is none of PyTorch's."""

Offsets = Sequence[int]
"""Start and end of the value of each of :data:`KEYS`, in the event; 0 and 0 where it has none."""


@cache
def _library() -> ctypes.CDLL | None:
    size, number = ctypes.c_size_t, ctypes.c_uint32
    text = (ctypes.c_char_p, size)
    return load_functions(
        (("event_offsets", ctypes.c_int64, *text, *text, ctypes.POINTER(number), size),)
    )


def event_offsets(text: bytes) -> list[int] | None:
    """Find the events of a chunk; None where it is not plain, or the library is not there.

    Returns:
        Of each event where it starts and ends, and its :data:`Offsets`, one behind the other.
    """
    library = _library() if reader_at_work() == "compiled" else None
    if library is None:
        return None
    found = (ctypes.c_uint32 * (_STRIDE * (len(text) // _SHORTEST + 1)))()
    count = library.hta_sql_event_offsets(text, len(text), _keys, len(_keys), found, len(found))
    return None if count < 0 else memoryview(found).cast("B").cast("I")[: _STRIDE * count].tolist()


def count_events(found: list[int]) -> int:
    """Count the events of what :func:`event_offsets` returns."""
    return len(found) // _STRIDE


def events_of(text: bytes, found: list[int]) -> Iterator[tuple[bytes, Offsets]]:
    """Yield the text of each event and the places of its fields."""
    for start, end, *places in zip(*repeat(iter(found), _STRIDE), strict=True):
        yield text[start:end], places


_keys = "\t".join(KEYS).encode()
