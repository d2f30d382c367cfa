"""Random changes to the keys, values and bytes of single events."""

from __future__ import annotations

import re
from functools import cache
from random import Random

from hta_sql.library.arguments import known_arguments
from hta_sql.library.vendors import known
from hta_sql.traces.salvage import walk
from tests.fuzz.mutations import mutated, seeds

_VALUE = re.compile(rb':\s*("(?:[^"\\]|\\.)*"|[^\s",{}\[\]]+|\[[^\[\]{}]*\]|\{[^{}]*\})')
_KEY = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:')

NUMBERS = (
    *(
        "0",
        "1",
        "-1",
        "-0",
        "-0.0",
        "0.0",
        "1.0",
        "7.50",
        "-7.5",
        "007",
        "1e5",
        "1E-3",
        "1.5e3",
        "1e400",
    ),
    *("0.0005", "1.0005", "1.00049999999999", "-1.0005", "12.3450000000001", "5.12345678901234567"),
    *("999999999999999999", "9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *("1125899906842624", "1125899906842625", "2147483647", "2147483648", "9007199254740993"),
    *("2999999999999999.999", "3000000000000000", "3000000000000000.5", "899999999999.9995"),
    *(
        "899999999999",
        "900000000000",
        "-899999999999.999",
        "1700000000123456.789",
        "0.1e-7",
        "1" * 40,
    ),
)
OTHERS = (
    *(
        '"12"',
        '"-5"',
        '" 12"',
        '"012"',
        '"1.5"',
        '"1e3"',
        '"inf"',
        '"true"',
        '""',
        '"null"',
        '"X"',
        '"C"',
    ),
    *(
        '"s"',
        '"f"',
        '"i"',
        '"M"',
        '"[memory]"',
        r'"\u005bmemory]"',
        r'"\u0058"',
        r'"a\/b"',
        r'"\u00e9\n"',
    ),
    *(
        r'"\ud83d\ude00"',
        r'"\ud83d"',
        r'"\u0000"',
        r'"\u001f"',
        r'"\""',
        '"é 中 😀"',
        '"\x7f"',
        '"\t"',
    ),
    *(
        "null",
        "true",
        "false",
        "NaN",
        "[]",
        "{}",
        "[1,2,3]",
        "[1, 2, 3.0]",
        '[1,"2",3]',
        "[1,2]",
        "[1,2,3,4]",
    ),
    *(
        "[[1, 2], [ ]]",
        '["a", "b\\/c"]',
        '{"a": [1 , {"b": null}]}',
        '{"grid": 1.5}',
        '{"ts": true}',
        "[null]",
    ),
    *(
        "[1.50, 1e5, -0]",
        '{"a":1,"a":2}',
        '{"name": "Ascend Hardware"}',
        '[{"Seq":true}]',
        "[1,2,null]",
    ),
)
FIELDS = (
    "ph",
    "cat",
    "name",
    "pid",
    "tid",
    "ts",
    "dur",
    "id",
    "bp",
    "s",
    "args",
    "traceEvents",
    "PH",
)


@cache
def _events() -> list[bytes]:
    """Return all distinct events of the small traces."""
    spans = (span for whole in seeds() for span in walk(whole[whole.find(b"[") + 1 :]))
    return sorted({span.text for span in spans if span.text and b'"ph"' in span.text})


@cache
def _values() -> list[bytes]:
    categories = (f'"{category.replace("*", "any")}"' for category in known("category"))
    return [value.encode() for value in (*NUMBERS, *NUMBERS, *OTHERS, *categories)]


@cache
def _keys() -> list[bytes]:
    names = (*(a.name for a in known_arguments()), *FIELDS, *FIELDS, "unknown", r"p\u0068")
    return [name.encode() for name in names]


def changed_event(random: Random) -> bytes:
    """Return a random event with up to five changes."""
    text = random.choice(_events())
    for _ in range(random.choice((0, 1, 1, 1, 2, 2, 3, 5))):
        kind = random.random()
        if kind < 0.5:
            text = _exchanged(random, text, _VALUE, random.choice(_values()))
        elif kind < 0.65:
            text = _exchanged(random, text, _KEY, random.choice(_keys()))
        elif kind < 0.85:
            field = b'"' + random.choice(_keys()) + b'": ' + random.choice(_values()) + b", "
            at = random.choice([found.start() for found in _KEY.finditer(text)] or [1])
            text = text[:at] + field + text[at:]
        else:
            text = mutated(random, [text])
    return text


def _exchanged(random: Random, text: bytes, pattern: re.Pattern[bytes], new: bytes) -> bytes:
    found = list(pattern.finditer(text))
    if not found:
        return text
    start, end = random.choice(found).span(1)
    return text[:start] + new + text[end:]
