"""Random corruptions of bytes, tokens and events in traces, as they occur in real files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

from tests.ingestion.small_trace import EVENTS, document

TRACES = Path(__file__).parents[1] / "traces"

MARKS = """{ } [ ] , : " \\ ' / // /*x*/ # ; ( ) < > . - + e E 0 1 9"""
WORDS = "null true false nan NaN inf -inf Infinity N/A None undefined"
TOKENS = [
    *(token.encode() for token in f"{MARKS} {WORDS}".split()),
    *(
        b"\r\n",
        b"\t",
        b" ",
        b"\n",
        b"\0",
        b"\x01",
        b"\x1f",
        b"\x7f",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
    ),
    *(
        b"\xef\xbb\xbf",
        b"\xfe\xff",
        b"\xe2\x80\xa8",
        b"\\ud800",
        b"\\udc00\\ud800",
        b"\\u00",
        b"\\x",
        b'\\"',
        b"\\\\",
    ),
    *(
        b"},{",
        b"}{",
        b"]}",
        b"]]",
        b"[[",
        b"}}",
        b'{"',
        b'"}',
        b'":',
        b'","',
        b'{"ph":"X"',
        b'"ph":',
        b'"traceEvents":[',
    ),
    *(
        b'{"ph":"X","ts":1,"dur":2,"name":"n"}',
        b',{"ph": "M"}',
        b"{}",
        b"[]",
        b'""',
        b'"args":{',
        b'"args":[{"ph":1},{"ph":2}],',
    ),
    *(
        b"01",
        b"-01",
        b"1e3",
        b"1e400",
        b"1.50",
        b"18446744073709551616",
        b"-9223372036854775809",
        b"1" * 40,
        b"0.1e-400",
    ),
    *(
        b'"ts":"12.5",',
        b'"ts":null,',
        b'"dur":-5,',
        b'"dur":1e18,',
        b'"ph":1,',
        b'"name":null,',
        b'"name":"a"b",',
    ),
    b"[" * 300,
    b"{" * 300,
    b'{"a":' * 200,
    b"]" * 70,
    b" " * 300,
    b"," * 50,
    b"\\" * 33,
    b'"' * 33,
]

_PLACES = re.compile(rb'[{}\[\],:"\\]')


def seeds() -> list[bytes]:
    """Return valid small traces in every layout."""
    some = EVENTS[3:8]
    compact = {"separators": (",", ":")}
    return [
        document(),
        document(some, **compact),
        document(some, indent=1),
        document(some, indent=2, ensure_ascii=False),
        document(some).replace(b"\n", b"\r\n"),
        json.dumps(some).encode(),
        document([]),
        document(EVENTS[:2], **compact),
        *(
            path.read_bytes()
            for path in sorted(TRACES.glob("*.json"))
            if path.stat().st_size < 8000
        ),
    ]


def mutated(random: Random, wholes: list[bytes]) -> bytes:
    """Return a random trace with up to eight corruptions."""
    text = random.choice(wholes)
    for _ in range(random.choice((0, 1, 1, 1, 2, 2, 3, 5, 8))):
        text = random.choice(_MUTATIONS)(random, text, wholes)
    return text[: 64 << 10]


def place(random: Random, text: bytes) -> int:
    """Choose a random position, usually next to a token."""
    if not text or random.random() < 0.4:
        return random.randint(0, len(text))
    found = _PLACES.search(text, random.randint(0, len(text)))
    return (found.start() + random.randint(0, 1)) if found else len(text)


def _flip(random: Random, text: bytes, _: list[bytes]) -> bytes:
    at = place(random, text)
    if at >= len(text):
        return text
    return text[:at] + bytes([text[at] ^ (1 << random.randrange(8))]) + text[at + 1 :]


def _insert(random: Random, text: bytes, _: list[bytes]) -> bytes:
    at = place(random, text)
    return text[:at] + random.choice(TOKENS) + text[at:]


def _replace(random: Random, text: bytes, _: list[bytes]) -> bytes:
    at = place(random, text)
    return text[:at] + random.choice(TOKENS) + text[at + random.randint(1, 12) :]


def _delete(random: Random, text: bytes, _: list[bytes]) -> bytes:
    at = place(random, text)
    return text[:at] + text[at + random.choice((1, 1, 1, 2, 5, 40, 400)) :]


def _truncate(random: Random, text: bytes, _: list[bytes]) -> bytes:
    return text[: place(random, text)]


def _duplicate(random: Random, text: bytes, _: list[bytes]) -> bytes:
    start, end = sorted((place(random, text), place(random, text)))
    at = place(random, text)
    return text[:at] + text[start : min(end, start + 2000)] + text[at:]


def _splice(random: Random, text: bytes, wholes: list[bytes]) -> bytes:
    other = random.choice(wholes)
    at = place(random, other)
    return text[: place(random, text)] + other[at : at + random.choice((10, 100, 1000, 100000))]


def _insert_other(random: Random, text: bytes, wholes: list[bytes]) -> bytes:
    other = random.choice(wholes)
    at, into = place(random, other), place(random, text)
    return text[:into] + other[at : at + random.choice((10, 100, 1000, 100000))] + text[into:]


def _swap(random: Random, text: bytes, _: list[bytes]) -> bytes:
    a, b, c = sorted(place(random, text) for _ in range(3))
    return text[:a] + text[b:c] + text[a:b] + text[c:]


def _respace(random: Random, text: bytes, _: list[bytes]) -> bytes:
    return re.sub(rb"(?<=[,:{\[])\s*", random.choice((b"", b" ", b"\n  ", b"\r\n\t")), text)


def _every(random: Random, text: bytes, _: list[bytes]) -> bytes:
    """Corrupt a random key or brace at all of its occurrences."""
    key = random.choice((b'"ph"', b'"ts"', b'"name"', b"}", b'"dur"', b'"args"', b"},"))
    return text.replace(key, random.choice((b"", key + key, key[:-1], random.choice(TOKENS))))


_MUTATIONS = [
    *(_flip, _insert, _insert, _replace, _replace, _delete, _delete, _truncate),
    *(_duplicate, _splice, _insert_other, _swap, _respace, _every),
]
