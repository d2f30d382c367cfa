"""Faulty JSON fragments that replace one event in a trace, each with its expected result.

The expected result of every event in a fragment is written by hand, not computed. The events before
and after the fragment are valid and must always be stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

NO_EVENT = 'not an event: no "ph" field'
NO_TS = '"ts" is missing'
NO_DUR = '"dur" is missing'
TOO_FAR = '"ts" or "dur" is out of range'
GARBAGE = "broken JSON: not an event"
BROKEN = "broken JSON: "
OTHER_FILE = "broken JSON: another file starts inside this one"
OTHER_HEAD = b'{"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": ['
OTHER_END = b'], "traceName": "b.json"}'


class Fate(NamedTuple):
    """Expected result of one event: the name if it is stored, the reason if it is quarantined."""

    is_kept: bool
    name: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Fault:
    """A fragment that replaces one event, and the expected results of the events in it."""

    name: str
    text: bytes
    fates: tuple[Fate, ...]
    is_other_at_the_end: bool = False
    """Whether the results differ if the fault is the last event, because it ends the list."""


def kept(name: str | None = "bad") -> Fate:
    """Return the expected result of an event that is read unchanged."""
    return Fate(is_kept=True, name=name)


def mended(reason: str, name: str | None = "bad") -> Fate:
    """Return the expected result of an event that is repaired."""
    return Fate(is_kept=True, name=name, reason=f"repaired: {reason}")


def lost(reason: str) -> Fate:
    """Return the expected result of an event that is lost and quarantined."""
    return Fate(is_kept=False, reason=reason)


def event(**changed: str) -> bytes:
    """Return an operator event as JSON; any field can be replaced, or omitted with ``''``."""
    fields = {
        "ph": '"X"',
        "cat": '"cpu_op"',
        "name": '"bad"',
        "pid": "7",
        "tid": "7",
        "ts": "5.25",
        "dur": "1.0",
        "args": '{"x": 1}',
    } | changed
    pairs = ", ".join(f'"{key}": {value}' for key, value in fields.items() if value)
    return b"{" + pairs.encode() + b"}"


def _kept_as_they_stand() -> Iterator[tuple[str, bytes]]:
    yield "keys twice, the first counts", event(args='{}, "name": "other"')
    yield "times twice, a truth second", event(ts='5.25, "ts": true', dur='1.0, "dur": false')
    yield "ts as text", event(ts='"5.25"')
    yield "dur as text", event(dur='"1.0"')
    yield "ts with an exponent", event(ts="525e-2")
    yield "ts with seventeen decimals", event(ts="5.12345678901234567")
    yield "ts before the epoch", event(ts="-5.25")
    yield "negative duration", event(dur="-3")
    yield "times of one and a truth named ts", event(ts="1", dur="1", args='{"ts": true}')
    yield "no duration at all", event(dur="0")
    yield "duration of ten days", event(dur="864000000000")
    yield "comma behind the last argument", event(args='{"x": 1,}')
    yield "comma behind the last field", event()[:-1] + b",}"
    yield "commas behind the last items of deep lists", event(args='{"x": [[1,],],}')
    for word in ("NaN", "nan", "-nan", "Infinity", "-Infinity", "inf", "-inf", "INF"):
        yield f"{word} in the arguments", event(args=f'{{"x": {word}, "y": [{word}]}}')
    yield (
        "nan before six things that look like events",
        event(args='{"x": [nan' + ', {"ph": 1}' * 6 + "]}"),
    )
    yield "pid beyond 64 bits", event(pid="18446744073709551616")
    yield "argument beyond 64 bits", event(args='{"x": 340282366920938463463374607431768211456}')
    yield "argument beyond a double", event(args='{"x": 1e400}')
    yield "number of a thousand digits", event(args='{"x": ' + "1" * 1000 + "}")
    yield "arguments nested 200 deep", event(args='{"x": ' + "[" * 200 + "]" * 200 + "}")
    yield "arguments nested 3000 deep", event(args='{"x":' * 3000 + "1" + "}" * 3000)
    yield "arguments are null", event(args="null")
    yield "arguments are a list", event(args="[1, 2]")
    yield "arguments are text", event(args='"x=1"')
    yield "arguments are a number", event(args="5")
    yield "arguments twice nested events", event(args='{"x": [{"ph": "X"}, {"ph": "X", "ts": 1}]}')


def _kept_with_fields_of_other_types() -> Iterator[tuple[str, bytes]]:
    yield "no arguments", event(args="")
    yield "no category", event(cat="")
    yield "category is null", event(cat="null")
    yield "category is a number", event(cat="5")
    yield "unknown category", event(cat='"brand_new"')
    yield "unknown phase", event(ph='"Z"')
    yield "phase is a number", event(ph="1")
    yield "phase is a list", event(ph='["X"]')
    yield "phase is an empty text", event(ph='""')
    yield "phase comes last", event(ph="")[:-1] + b', "ph": "X"}'
    yield "pid is text", event(pid='"worker"')
    yield "pid is a fraction", event(pid="7.5")
    yield "pid is null", event(pid="null")
    yield "pid is a list", event(pid="[7]")
    yield "line ends of Windows", event().replace(b", ", b",\r\n\t")
    yield "no white space", event().replace(b" ", b"")
    yield "white space in plenty", event().replace(b" ", b" " * 3000)
    yield "argument of 300 KB", event(args='{"x": "' + "y" * 300_000 + '"}')
    yield "argument with quoted event", event(args=r'{"x": "}, {\"ph\": \"X\"}]}"}')
    yield "argument with brackets", event(args='{"x": "]}]}{{[["}')
    yield "argument with a NUL escape", event(args=r'{"x": "a\u0000b"}')
    yield "argument with a pair of surrogates", event(args=r'{"x": "\ud83d\ude00"}')
    yield "argument with an even run of backslashes", event(args=r'{"x": "C:\\\\dir\\"}')
    yield "argument with DEL", event(args='{"x": "\x7f"}')
    yield "empty key", event(args='{"": 1}')
    yield "key of 10 KB", event(args='{"' + "k" * 10_000 + '": 1}')
    yield "metadata without ts", event(ph='"M"', ts="", dur="")
    yield "Record Window End", event(ph='"i"', cat="", dur="", pid='""', tid='""', ts="9e14")


def _kept_under_other_names() -> Iterator[tuple[str, bytes, str | None]]:
    yield "no name", event(name=""), ""
    yield "name is null", event(name="null"), ""
    yield "name is true", event(name="true"), "true"
    yield "name is an object", event(name='{"a": 1}'), '{"a":1}'
    yield "name of a megabyte", event(name='"' + "n" * (1 << 20) + '"'), "n" * (1 << 20)
    yield "name with a NUL escape", event(name=r'"a\u0000b"'), "a\0b"
    yield "name is a number", event(name="5"), "5"
    yield "name is a list", event(name='["a"]'), '["a"]'
    yield "name is empty", event(name='""'), ""
    yield "name with escaped quotes", event(name=r'"say \"hi\""'), 'say "hi"'
    yield "name with an escaped event", event(name=r'"}, {\"ph\": 1}"'), '}, {"ph": 1}'
    yield "name of many scripts", event(name='"é 中 😀 \u2028"'), "é 中 😀 \u2028"
    yield "name in escapes", event(name=r'"\u00e9\u4e2d\ud83d\ude00"'), "é中😀"
    yield "name with a slash escape", event(name=r'"a\/b"'), "a/b"


def _set_aside() -> Iterator[tuple[str, bytes, str]]:
    for value in ("null", "true", "5", "-1.5", '"text"', "[]", "[1, 2]", "{}", "nan", "-inf"):
        yield f"{value} in place of an event", value.encode(), NO_EVENT
    yield "a list of numbers and texts", b'[1, "{", {"a": 1}]', NO_EVENT
    yield "an object of another kind", b'{"schemaVersion": 1, "events": [{"a": 1}]}', NO_EVENT
    yield "no phase", event(ph=""), NO_EVENT
    yield "phase is null", event(ph="null"), NO_EVENT
    yield "phase in capitals", event().replace(b'"ph"', b'"PH"'), NO_EVENT
    yield "no ts", event(ts=""), NO_TS
    for value in ("null", '"N/A"', '"soon"', '""', "{}", "[5]", "NaN", "Infinity", "1e400"):
        yield f"ts is {value}", event(ts=value), NO_TS
    for value in ("true", "false"):
        yield f"ts is {value}", event(ts=value), NO_TS
        yield f"dur is {value}", event(dur=value), NO_DUR
    yield "ts is a truth first", event(ts='true, "ts": 5.25'), NO_TS
    yield "dur is a truth first", event(dur='true, "dur": 1.0'), NO_DUR
    yield (
        "ts is a truth under an escaped key",
        event(ts="true").replace(b'"ts"', rb'"\u0074s"'),
        NO_TS,
    )
    yield "ts beyond a decimal", event(ts="18446744073709551616"), NO_TS
    yield "ts of an unset clock", event(ts="9223372036854775.807"), TOO_FAR
    yield (
        "Record Window End without a clock",
        event(ph='"i"', dur="", ts="18446744073709551"),
        NO_TS,
    )
    yield "instant without ts", event(ph='"i"', ts="", dur=""), NO_TS
    yield "flow without ts", event(ph='"s"', ts="", dur=""), NO_TS
    yield "counter without ts", event(ph='"C"', ts="", dur=""), NO_TS
    yield "no dur", event(dur=""), NO_DUR
    for value in ("null", '"N/A"', "NaN", "inf", "[]", "1e400"):
        yield f"dur is {value}", event(dur=value), NO_DUR
    yield "duration of a wrapped counter", event(dur="18446744073709551"), NO_DUR
    yield "negative duration of ages", event(dur="-2e15"), NO_DUR
    yield "duration of eleven days", event(dur="900000000000"), NO_DUR
    yield "duration of twenty years", event(dur="630720000000000"), NO_DUR


def _broken() -> Iterator[tuple[str, bytes]]:
    yield "value is missing", event(name=" ")
    yield "value is an unknown word", event(name="oops")
    yield "single quotes", event().replace(b'"', b"'")
    yield "keys without quotes", event().replace(b'"pid"', b"pid")
    yield "comment inside", event(pid="7 /* main */")
    yield "comment of one line inside", event(pid="7 // main\n")
    yield "colon is missing", event().replace(b'"pid":', b'"pid"')
    yield "equals sign for a colon", event().replace(b'"pid":', b'"pid"=')
    yield "comma is missing", event().replace(b'7, "ts"', b'7 "ts"')
    yield "comma twice", event().replace(b'7, "ts"', b'7,, "ts"')
    yield "semicolon for a comma", event().replace(b'7, "ts"', b'7; "ts"')
    yield "closing brace of the arguments is missing", event()[:-1]
    yield "closing bracket is missing", event(args='{"x": [1}')
    yield "bracket of the wrong kind", event(args='{"x": [1)}')
    yield "hexadecimal number", event(pid="0x7")
    yield "number with a plus", event(pid="+7")
    yield "number that starts with a point", event(ts=".5")
    yield "number that ends with a point", event(ts="5.")
    yield "number with two points", event(ts="5.2.5")
    yield "number with a separator", event(ts="1_000")
    yield "number with a decimal comma", event(ts="5,25")
    yield "number without digits", event(ts="-")
    yield "exponent without digits", event(ts="5e")
    yield "cut behind a key", b'{"ph": "X", "cat": "cpu_op", "name":'
    yield "cut inside of a number", b'{"ph": "X", "ts": 12'
    yield "cut behind a comma", b'{"ph": "X", "ts": 12,'
    yield "cut inside of the arguments", b'{"ph": "X", "ts": 12, "args": {"x": 1, '
    yield "cut inside of a list", b'{"ph": "X", "ts": 12, "args": {"x": [1, 2'
    yield "a hole in the middle", b'{"ph": "X", "cat": "cpu_op": 3, "dur": 5}'
    yield "set of values", event(args="{1, 2}")
    yield "key is a number", event(args="{1: 2}")


def _garbage() -> Iterator[tuple[str, bytes]]:
    yield "a bare word", b"garbage"
    yield "bytes of no text", bytes(range(0x80, 0x100))
    yield "control bytes", b"\x01\x02\x03\x04\x7f"
    yield "NUL bytes", b"\0" * 64
    yield "a byte order mark", b"\xef\xbb\xbf"
    yield "a page of an error", b"<html><body>502 Bad Gateway</body></html>"
    yield "a line of a log", b"[W119 10:05:33 profiler.cpp:42] Warning: profiler stopped"
    yield "a comment", b"/* nothing here */"
    yield "closing braces", b"}}}"
    yield "an event without its opening brace", event()[1:]
    yield "words of Python", b"None"
    yield "a number with a leading zero", b"007 bond"


def _repaired() -> Iterator[tuple[str, bytes, str, str | None]]:
    utf8, control = "bytes that are not UTF-8", "control characters in a string"
    half, escape = "half of a surrogate pair", "backslashes that escape nothing"
    word, zero, quote = (
        "words where a number belongs",
        "numbers with leading zeros",
        "quotes inside a name",
    )

    def named(name: bytes) -> bytes:
        return event(name='"@"').replace(b"@", name)

    yield "name with a byte of no text", named(b"a\xffb"), utf8, "a\ufffdb"
    yield "name in Latin-1", named(b"caf\xe9!"), utf8, "caf\ufffd!"
    yield "name cut inside a character", named(b"\xe4\xb8"), utf8, "\ufffd"
    yield "name in overlong UTF-8", named(b"\xc0\xaf"), utf8, "\ufffd\ufffd"
    yield "name with an encoded surrogate", named(b"\xed\xa0\x80"), utf8, "\ufffd" * 3
    yield (
        "argument with a byte of no text",
        event(args='{"x": "@"}').replace(b"@", b"\x80"),
        utf8,
        "bad",
    )
    yield "name with a line break", named(b"a\nb"), control, "a\nb"
    yield "name with a tab", named(b"a\tb"), control, "a\tb"
    yield "name with a NUL", named(b"a\0b"), control, "a\0b"
    yield "name with an escape sequence", named(b"\x1b[31mred"), control, "\x1b[31mred"
    yield "name with the first half of a pair", named(rb"a\ud800b"), half, "a\ufffdb"
    yield "name with the second half of a pair", named(rb"a\udc00b"), half, "a\ufffdb"
    yield "name with a pair in the wrong order", named(rb"\udc00\ud800"), half, "\ufffd\ufffd"
    yield "name is a path of Windows", named(rb"C:\Users\me"), escape, r"C:\Users\me"
    yield "name with a short escape", named(rb"\u12!"), escape, r"\u12!"
    yield "name with an escape of C", named(rb"\x41"), escape, r"\x41"
    yield "name with quotes", named(b'say "hi"'), quote, 'say "hi"'
    yield "name with one quote", named(b'5" disk'), quote, '5" disk'
    for text in ("N/A", "n/a", "None", "undefined", "True", "False"):
        yield f"argument is {text}", event(args=f'{{"x": {text}}}'), word, "bad"
    yield "argument with leading zeros", event(args='{"x": 007}'), zero, "bad"
    yield "argument with a minus and leading zeros", event(args='{"x": -01}'), zero, "bad"
    yield "nan beside a word of Python", event(args='{"x": nan, "y": None}'), word, "bad"
    yield "path and byte of no text", named(b"C:\\U\xff"), f"{escape}; {utf8}", "C:\\U\ufffd"
    yield "half a pair and a line break", named(b"\\ud800\n"), f"{control}; {half}", "\ufffd\n"


def _several() -> Iterator[tuple[str, bytes, tuple[Fate, ...]]]:
    yield "two events without a comma", event() + b" " + event(), (kept(), kept())
    yield "two events and three commas", event() + b",,, " + event(), (kept(), kept())
    yield "a number and an event without a comma", b"Infinity" + event(), (lost(GARBAGE), kept())
    yield "only commas", b",,,", ()
    yield "a brace too many", event() + b"}", (kept(), lost(GARBAGE))
    yield "a comment behind it", event() + b" // done\n", (kept(), lost(GARBAGE))
    yield "a semicolon behind it", event() + b";", (kept(), lost(GARBAGE))
    yield (
        "a write of another thread inside",
        b'{"ph": "X", "cat": "cpu_op", "na' + event() + b'me": "aten::mm"}',
        (lost(BROKEN), kept(), lost(GARBAGE)),
    )
    yield (
        "an event inside of one that is cut",
        b'{"ph": "X", "x": ' + event(),
        (lost(BROKEN), kept()),
    )
    yield "words between two events", event() + b" and " + event(), (kept(), lost(GARBAGE), kept())
    yield (
        "the end of a file and the start of the next",
        event() + b'], "traceName": "a"}{"schemaVersion": 1, "traceEvents": [' + event(),
        (kept(), lost(GARBAGE), kept()),
    )


def _hiding_events() -> Iterator[tuple[str, bytes, tuple[Fate, ...]]]:
    two = event() + b", " + event()
    tail_first = event(ph="")[:-1] + b', "ph": "X"}'
    in_a_list = (lost(GARBAGE), kept(), kept(), lost(GARBAGE))
    in_a_file = (lost(OTHER_FILE), kept(), kept(), lost(GARBAGE))
    yield "a list of events in place of one", b"[" + two + b"]", in_a_list
    yield "a list of events in three lists", b"[[ [" + two + b"]]]", in_a_list
    yield "a number before the events of a list", b"[nan, " + two + b"]", in_a_list
    yield (
        "a number behind the events of a list",
        b"[" + two + b", 5]",
        (lost(GARBAGE), kept(), kept(), lost(NO_EVENT), lost(GARBAGE)),
    )
    yield (
        "each of two events in a list of its own",
        b"[" + event() + b"], [" + event() + b"]",
        (lost(GARBAGE), kept(), lost(GARBAGE), kept(), lost(GARBAGE)),
    )
    yield "a whole file in place of an event", OTHER_HEAD + two + OTHER_END, in_a_file
    yield (
        "a whole file whose events do not start with their phase",
        OTHER_HEAD + tail_first + b", " + tail_first + OTHER_END,
        in_a_file,
    )
    yield (
        "a whole file that starts with another key",
        b'{"name": 1, "traceEvents": [' + two + (OTHER_END),
        in_a_file,
    )
    yield (
        "a whole file with a long header",
        OTHER_HEAD.replace(b"1,", b'"' + b"x" * 200_000 + b'",') + two + OTHER_END,
        in_a_file,
    )
    yield (
        "a whole file with a broken header",
        b'{"schemaVersion": oops, "traceEvents": [' + two + OTHER_END,
        in_a_file,
    )
    yield (
        "a whole file without events",
        OTHER_HEAD + OTHER_END,
        (lost(OTHER_FILE), lost(GARBAGE)),
    )
    yield (
        "a whole file behind an event that is cut off",
        event()[:40] + OTHER_HEAD + two + OTHER_END,
        in_a_file,
    )
    yield (
        "an argument that is named as the list",
        event(args='{"traceEvents": [5]}') + b", " + event(args='{"traceEvents": [5], "y": 1}'),
        (kept(), kept()),
    )


def _closing() -> Iterator[tuple[str, bytes]]:
    yield "a stray bracket", b"]"
    yield "two stray brackets", b"]]"
    yield "bracket and brace", b"]}"


def faults() -> list[Fault]:
    """List every fault with its expected results."""
    return [
        *(Fault(name, text, (kept(),)) for name, text in _kept_as_they_stand()),
        *(Fault(name, text, (kept(),)) for name, text in _kept_with_fields_of_other_types()),
        *(Fault(name, text, (kept(as_name),)) for name, text, as_name in _kept_under_other_names()),
        *(Fault(name, text, (lost(reason),)) for name, text, reason in _set_aside()),
        *(Fault(name, text, (lost(BROKEN),)) for name, text in _broken()),
        *(Fault(name, text, (lost(GARBAGE),)) for name, text in _garbage()),
        *(
            Fault(name, text, (mended(reason, as_name),))
            for name, text, reason, as_name in _repaired()
        ),
        *(Fault(name, text, fates) for name, text, fates in _several()),
        *(Fault(n, t, fates, is_other_at_the_end=True) for n, t, fates in _hiding_events()),
        *(Fault(n, t, (lost(GARBAGE),), is_other_at_the_end=True) for n, t in _closing()),
    ]
