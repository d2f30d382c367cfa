"""Reads pickles of plain values without Python's unpickler, so that no file can execute code.

Only opcodes that build None, Booleans, numbers, strings, lists, tuples and dicts are accepted. Any
other opcode, such as one that names a global or calls a function, raises an error that names it.
"""

from __future__ import annotations

import mmap
import re
import struct
from typing import Any, NamedTuple

from hta_sql.errors import TraceFormatError

PICKLE_MAGIC = b"\x80"

MAX_CONTAINERS = 4_000_000
"""Maximum number of lists, tuples and dicts in a pickle.

A single byte creates one, which takes 50 to 60 bytes of memory. A dump of 20,000 entries with
stacks of 20 frames has 600,000.
"""

MAX_TEXT_DIGITS = 100
"""Maximum digits of a number written as text; the interpreter parses them in quadratic time."""

_CONSTANTS = {b"N"[0]: None, 0x88: True, 0x89: False}
_SIZED = {
    # opcode: bytes of the length, is text
    b"X"[0]: (4, True),
    0x8C: (1, True),
    0x8D: (8, True),
    b"T"[0]: (4, True),
    b"U"[0]: (1, True),
    b"B"[0]: (4, False),
    b"C"[0]: (1, False),
    0x8E: (8, False),
}
_NUMBERS = {b"K"[0]: (1, False), b"M"[0]: (2, False), b"J"[0]: (4, True)}
_TUPLES = {0x85: 1, 0x86: 2, 0x87: 3}
_REFUSED = {
    b"c"[0]: "GLOBAL",
    0x93: "STACK_GLOBAL",
    b"i"[0]: "INST",
    b"o"[0]: "OBJ",
    b"R"[0]: "REDUCE",
    0x81: "NEWOBJ",
    0x92: "NEWOBJ_EX",
    b"b"[0]: "BUILD",
    b"P"[0]: "PERSID",
    b"Q"[0]: "BINPERSID",
    0x82: "EXT1",
    0x83: "EXT2",
    0x84: "EXT4",
    0x97: "NEXT_BUFFER",
    0x98: "READONLY_BUFFER",
    b"2"[0]: "DUP",
    0x8F: "EMPTY_SET",
    0x90: "ADDITEMS",
    0x91: "FROZENSET",
    0x96: "BYTEARRAY8",
}
_SCALARS = frozenset((str, bytes, int, float, bool, type(None)))
"""Types of keys; a key may also be a tuple of these."""

_LONG_BINGETS = re.compile(rb"(?:j[\s\S]{4}){1,64}")
"""Matches consecutive LONG_BINGET opcodes: a stack has one for each frame."""
_NAMES_A_GLOBAL = b"ci"
_STACK_GLOBAL = 0x93
_BINGET, _LONG_BINGET, _BINPUT, _LONG_BINPUT, _MEMOIZE = b"h"[0], b"j"[0], b"q"[0], b"r"[0], 0x94
_MARK, _SETITEMS, _APPENDS, _EMPTY_DICT, _EMPTY_LIST = b"("[0], b"u"[0], b"e"[0], b"}"[0], b"]"[0]
_LONG1, _LONG4, _EMPTY_TUPLE, _TUPLE, _APPEND, _SETITEM = (
    0x8A,
    0x8B,
    b")"[0],
    b"t"[0],
    b"a"[0],
    b"s"[0],
)
_LIST, _DICT, _BINFLOAT, _POP, _POP_MARK = b"l"[0], b"d"[0], b"G"[0], b"0"[0], b"1"[0]
_PUT, _GET, _PROTO, _FRAME, _STOP = b"p"[0], b"g"[0], 0x80, 0x95, b"."[0]
_TEXTS, _NAMED_MEMO = b"IFLV", b"pg"


class PlainPickle(NamedTuple):
    """Contents of a pickle."""

    value: Any
    problem: str | None = None
    """Why the end is missing; all values before it are complete. None for a complete pickle."""
    odd_keys: int = 0
    """Number of items of dicts that were left out, because their key is nested."""


class CutOffError(Exception):
    """The data ends before the pickle does."""


def read_pickle(data: bytes, path: str) -> PlainPickle:
    """Read the plain values of a pickle of any protocol.

    Args:
        data: The pickle.
        path: Name of the file in errors.

    Returns:
        The value. If the pickle is truncated, the value contains all complete parts.

    Raises:
        TraceFormatError: The pickle contains more than plain values, or is damaged.
    """
    reader = PickleReader(data, path)
    try:
        try:
            return PlainPickle(reader.value(), odd_keys=reader.odd_keys)
        except CutOffError:
            problem = f"it is cut off at byte {len(data):,}"
            return PlainPickle(reader.salvaged(), problem, reader.odd_keys)
    except (IndexError, KeyError, TypeError, ValueError, struct.error, OverflowError) as error:
        raise TraceFormatError(
            f"{path!r} is a damaged pickle: invalid data at byte {reader.position:,} "
            f"({type(error).__name__})."
        ) from error


class PickleReader:
    """The stack machine of one pickle.

    Attributes:
        position: Offset of the byte to read next.
        kind: Name of this kind of file in errors.
        max_containers: Maximum number of lists, tuples and dicts; a pickle with more is refused.
        odd_keys: Number of items of dicts that were left out, because their key is nested.
    """

    kind = "Flight Recorder dump"
    max_containers = MAX_CONTAINERS

    def __init__(self, data: bytes | mmap.mmap, path: str) -> None:
        self.position = 0
        self.odd_keys = 0
        self._data, self._path = data, path
        self._stack: list[Any] = []
        self._marks: list[int] = []
        """Height of the stack at each open mark."""
        self._memo: Any = {}

    def value(self) -> Any:  # noqa: C901, PLR0912, PLR0915 - one branch an opcode, the frequent ones first
        """Execute opcodes up to STOP, and return the resulting value."""
        data, stack, marks, memo = self._data, self._stack, self._marks, self._memo
        push, size, at, containers = stack.append, len(data), 0, 0
        while True:
            self.position = at
            if at >= size:
                raise CutOffError
            if containers > self.max_containers:
                raise TraceFormatError(
                    f"{self._path!r} was rejected: it has more than {self.max_containers:,} lists and dicts, more "
                    f"than any {self.kind}."
                )
            opcode = data[at]
            at += 1
            if opcode == _BINGET:
                push(memo[self._byte(at)])
                at += 1
            elif opcode == _LONG_BINGET:
                at -= 1
                found = _LONG_BINGETS.match(data, at)
                if found is None:
                    raise CutOffError
                numbers = struct.unpack("<" + "xI" * ((found.end() - at) // 5), found[0])
                stack.extend(map(memo.__getitem__, numbers))
                at = found.end()
            elif opcode in _SIZED:
                width, is_text = _SIZED[opcode]
                start = at + width
                at = start + self._number(at, width)
                if at > size:
                    raise CutOffError
                push(data[start:at].decode("utf-8", "replace") if is_text else data[start:at])
            elif opcode == _BINPUT:
                memo[self._byte(at)] = stack[-1]
                at += 1
            elif opcode == _LONG_BINPUT:
                memo[self._number(at, 4)] = stack[-1]
                at += 4
            elif opcode == _MEMOIZE:
                memo[len(memo)] = stack[-1]
            elif opcode in _NUMBERS:
                width, signed = _NUMBERS[opcode]
                push(self._number(at, width, signed=signed))
                at += width
            elif opcode in _CONSTANTS:
                push(_CONSTANTS[opcode])
            elif opcode == _MARK:
                marks.append(len(stack))
            elif opcode == _SETITEMS:
                self._set_items(self._above_mark())
            elif opcode == _APPENDS:
                self._extend(self._above_mark())
            elif opcode == _EMPTY_DICT:
                push({})
                containers += 1
            elif opcode == _EMPTY_LIST:
                push([])
                containers += 1
            elif opcode == _LONG1:
                length = self._byte(at)
                push(self._number(at + 1, length, signed=True))
                at += 1 + length
            elif opcode == _LONG4:
                length = self._number(at, 4)
                push(self._number(at + 4, length, signed=True))
                at += 4 + length
            elif opcode in _TUPLES:
                count = _TUPLES[opcode]
                push(tuple(self._popped(count)))
                containers += 1
            elif opcode == _EMPTY_TUPLE:
                push(())
            elif opcode == _TUPLE:
                items = self._above_mark()
                push(tuple(items))
                containers += 1
            elif opcode == _APPEND:
                self._extend(self._popped(1))
            elif opcode == _SETITEM:
                self._set_items(self._popped(2))
            elif opcode == _LIST:
                items = self._above_mark()
                push(items)
                containers += 1
            elif opcode == _DICT:
                items = self._above_mark()
                push({})
                containers += 1
                self._set_items(items)
            elif opcode == _BINFLOAT:
                push(struct.unpack(">d", self._bytes(at, 8))[0])
                at += 8
            elif opcode in _TEXTS:
                at, text = self._line(at)
                push(_from_text(opcode, text))
            elif opcode in _NAMED_MEMO:
                at, text = self._line(at)
                if opcode == _PUT:
                    memo[int(_short(text))] = stack[-1]
                else:
                    push(memo[int(_short(text))])
            elif opcode == _POP:
                self._popped(1)
            elif opcode == _POP_MARK:
                self._above_mark()
            elif opcode == _PROTO:
                at += 1
            elif opcode == _FRAME:
                at += 8
            elif opcode == _STOP:
                (value,) = self._popped(1)
                return value
            else:
                raise self._refused(opcode, at)

    def salvaged(self) -> Any:
        """Return the outermost value of a truncated pickle, with all complete values in it."""
        stack, marks = self._stack, self._marks
        while len(stack) > 1 or marks:
            items = self._above_mark() if marks else [stack.pop()]
            if not stack:
                return None
            container = stack[-1]
            if isinstance(container, list):
                container.extend(items)
            elif isinstance(container, dict):
                self._set_items(items[: len(items) & ~1])
        return stack[0] if stack else None

    def _refused(self, opcode: int, at: int) -> TraceFormatError:
        name = _REFUSED.get(opcode, f"0x{opcode:02x}, which is unknown")
        if opcode in _NAMES_A_GLOBAL:
            lines = self._data[at : at + 200].split(b"\n")[:2]
            named = ".".join(line.decode("utf-8", "replace") for line in lines)
            name = f"{name} ({named!r})"
        elif opcode == _STACK_GLOBAL:
            name = f"{name} ({'.'.join(map(str, self._stack[-2:]))[:200]!r})"
        return TraceFormatError(
            f"{self._path!r} was rejected: opcode {name} at byte {at - 1:,} is not allowed in a pickle of plain values. "
            f"Nothing in the file was executed. A {self.kind} contains only plain values: copy the file again from "
            "its original location."
        )

    def _byte(self, at: int) -> int:
        if at >= len(self._data):
            raise CutOffError
        return self._data[at]

    def _bytes(self, at: int, count: int) -> bytes:
        found = self._data[at : at + count]
        if len(found) < count:
            raise CutOffError
        return found

    def _number(self, at: int, width: int, *, signed: bool = False) -> int:
        return int.from_bytes(self._bytes(at, width), "little", signed=signed)

    def _line(self, at: int) -> tuple[int, bytes]:
        end = self._data.find(b"\n", at)
        if end < 0:
            raise CutOffError
        return end + 1, self._data[at:end]

    def _popped(self, count: int) -> list[Any]:
        lowest = self._marks[-1] if self._marks else 0
        if len(self._stack) - count < lowest:
            raise IndexError
        items = self._stack[-count:]
        del self._stack[-count:]
        return items

    def _above_mark(self) -> list[Any]:
        height = self._marks.pop()
        items = self._stack[height:]
        del self._stack[height:]
        return items

    def _set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict):
            raise TypeError
        keys, values = items[::2], items[1::2]
        if len(keys) != len(values):
            raise ValueError
        if not _SCALARS.issuperset(map(type, keys)):
            # Hashing a nested key recurses in C, and takes time that grows with 2 to its depth.
            pairs = [pair for pair in zip(keys, values, strict=True) if _is_key(pair[0])]
            self.odd_keys += len(keys) - len(pairs)
            target.update(pairs)
            return
        target.update(zip(keys, values, strict=True))

    def _extend(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise TypeError
        target.extend(items)


def _is_key(value: Any) -> bool:
    return type(value) in _SCALARS or (
        type(value) is tuple and _SCALARS.issuperset(map(type, value))
    )


def _short(text: bytes) -> bytes:
    if len(text) > MAX_TEXT_DIGITS:
        raise ValueError
    return text


def _from_text(opcode: int, text: bytes) -> Any:
    """Return the value that an opcode of protocol 0 encodes as text."""
    if opcode == b"V"[0]:
        return text.decode("raw-unicode-escape", "replace")
    if opcode == b"F"[0]:
        return float(_short(text))
    if opcode == b"I"[0] and text in (b"00", b"01"):
        return text == b"01"
    return int(_short(text).rstrip(b"L"))
