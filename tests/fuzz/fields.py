"""Random events with odd values in top-level fields such as name, category or time."""

from __future__ import annotations

import json
from functools import cache
from random import Random

from tests.ingestion.small_trace import EVENTS, complete

LONG_NAME_BYTES = 1 << 20
"""Length of a long name, which is too long to be read in one piece [bytes]."""

_FIELDS = (
    *("name", "name", "name", "name", "cat", "cat", "ph", "pid", "pid", "tid", "tid"),
    *("id", "id", "bp", "s", "ts", "dur"),
)
"""Fields to replace; the name is listed most often, because every kind of event has one."""

_TEXTS = (
    *('""', '" "', '"\\ud83d"', '"\\udc00 low"', '"a\\u0000b"', '"\\u0000"', '"\\"\\\\\\/"'),
    *('"null"', '"[memory]"', '"ProfilerStep#7"', '"ProfilerStep#"', '"nn.Module: Net"'),
    *('"torch::autograd::AccumulateGrad"', '"autograd::engine::evaluate_function: X"'),
    *('"7"', '"7.5"', '"-1"', '"9223372036854775808"', '"true"', '"\\ud83d\\ude00"', '"\\u000a"'),
)
_NUMBERS = ("0", "-1", "7", "1.5", "-0.0", "1e5", "1e400", "18446744073709551615", "9" * 40)
_OTHERS = ("true", "false", "[]", '[1, "a"]', "[null]", "{}", '{"name": "x"}', '{"ph": "X"}', "NaN")


def field_event(random: Random) -> bytes:
    """Return an event of a random kind, with up to three odd, null or missing fields."""
    fields = dict(random.choice(_kinds()))
    if "ts" in fields:
        fields["ts"] = str(1000 + random.randrange(120) / 4)
    for _ in range(random.choice((0, 1, 1, 1, 1, 2, 3))):
        name = random.choice(_FIELDS)
        value = _value(random)
        if value is None:
            fields.pop(name, None)
        else:
            fields[name] = value
    items = list(fields.items())
    if random.random() < 0.3:
        random.shuffle(items)
    return ("{" + ", ".join(f'"{name}": {value}' for name, value in items) + "}").encode()


def field_trace(random: Random) -> bytes:
    """Return a trace that consists of events with odd fields."""
    events = b",\n".join(field_event(random) for _ in range(random.choice((3, 20, 60))))
    return b'{"schemaVersion": 1, "traceEvents": [' + events + b'], "traceName": "odd.json"}'


def _value(random: Random) -> str | None:
    """Return a random field value as JSON, or None to omit the field."""
    drawn = random.random()
    if drawn < 0.25:
        return "null"
    if drawn < 0.4:
        return None
    if drawn < 0.41:
        return '"' + "n" * LONG_NAME_BYTES + '"'
    return random.choice(random.choice((_TEXTS, _NUMBERS, _OTHERS)))


@cache
def _kinds() -> list[dict[str, str]]:
    """Return one event of every kind, as a mapping of field names to JSON values."""
    more = [
        complete("gpu_user_annotation", "range", 7, 1010.0, 4.0) | {"pid": 0},
        complete("cpu_op", "MmBackward0", 8, 1004.0, 6.0, **{"Fwd thread id": 1}),
        complete("user_annotation", "range", 7, 1001.0, 12.0),
        complete("python_function", "a.py(1): f", 7, 1000.5, 30.0, **{"Python id": 2}),
        {"ph": "s", "id": 3, "pid": 7, "tid": 7, "ts": 1003.0, "cat": "fwdbwd", "name": "fwdbwd"},
    ]
    return [{name: json.dumps(value) for name, value in e.items()} for e in (*EVENTS, *more)]
