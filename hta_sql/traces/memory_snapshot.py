"""Streams segments, allocator events and annotations from PyTorch's memory snapshots.

``torch.cuda.memory._dump_snapshot`` writes a pickle, which is read opcode by opcode. Each event is
passed on and freed as soon as the pickle appends it to a list, so that memory grows by only 8 bytes
per event.
"""

from __future__ import annotations

import json
import mmap
import re
import struct
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from hta_sql.errors import TraceFormatError
from hta_sql.machine import temporary_folder
from hta_sql.text import counted
from hta_sql.traces.numbers import bounded_integer
from hta_sql.traces.pickles import PICKLE_MAGIC, CutOffError, PickleReader
from hta_sql.traces.source import BLOCK_BYTES, open_any
from hta_sql.traces.unpack import UnpackedStream

MAX_JSON_BYTES = 256 << 20
"""Maximum size of a JSON snapshot [bytes]; it is parsed as a whole, in six times the memory."""

MAX_CONTAINERS = 1 << 28
"""Maximum number of lists and dicts in a pickled snapshot: 60 million events, over 4 GB."""

MAX_FRAMES = 512
"""Maximum number of frames of a stack to store, starting with the innermost."""

_PICKLE_SIGN = re.compile(
    rb"(?:[XT]\x08\0\0\0|\x8c\x08|U\x08)segments|(?:[XT]\r\0\0\0|\x8c\r|U\r)device_traces"
)
_JSON_SIGN = re.compile(rb'^\s*\{\s*"(?:segments|device_traces)"\s*:\s*\[')
_SIGN_BYTES = 200
"""Number of bytes at the start that are searched for a key that identifies a snapshot."""

Record = dict[str, Any]
Frame = tuple[str | None, str | None, int | None]


class Stack:
    """A distinct stack, which replaces all lists with the same frames."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


@dataclass
class Stacks:
    """The distinct stacks of a snapshot.

    Attributes:
        frames: The distinct frames: function, file and line.
        stacks: Indices into ``frames`` for each stack, innermost frame first.
    """

    frames: list[Frame] = field(default_factory=list)
    stacks: list[tuple[int, ...]] = field(default_factory=list)
    _numbers: dict[Frame, int] = field(default_factory=dict)
    _known: dict[int, int] = field(default_factory=dict)
    _first: list[Record] = field(default_factory=list)
    _by_frames: dict[tuple[int, ...], Stack] = field(default_factory=dict)
    _by_identity: dict[tuple[int, ...], Stack] = field(default_factory=dict)

    def of(self, frames: Any) -> Stack | None:
        """Return the stack of a list of frames; None if the list is missing or empty."""
        if not isinstance(frames, list):
            return frames if isinstance(frames, Stack) else None
        identity = tuple(map(id, frames))
        if (stack := self._by_identity.get(identity)) is not None:
            return stack
        known = self._known.get
        numbers = []
        for frame in frames[:MAX_FRAMES]:
            number = known(id(frame))
            if number is None or self._first[number] is not frame:
                if not isinstance(frame, dict):
                    continue
                number = self._number(frame)
            numbers.append(number)
        if not numbers:
            return None
        key = tuple(numbers)
        stack = self._by_frames.get(key)
        if stack is None:
            stack = self._by_frames[key] = Stack(len(self.stacks))
            self.stacks.append(key)
        # The first dict with each content is never freed, so its id() is not reused.
        if len(numbers) == len(frames) and all(
            self._first[number] is frame for number, frame in zip(numbers, frames, strict=True)
        ):
            self._by_identity[identity] = stack
        return stack

    def same(self, frame: Record) -> Record:
        """Return the first dict in the snapshot that describes the same frame."""
        return self._first[self._number(frame)]

    def _number(self, frame: Record) -> int:
        name, file, line = frame.get("name"), frame.get("filename"), frame.get("line")
        content = (
            name if isinstance(name, str) else None,
            file if isinstance(file, str) else None,
            line if type(line) is int and abs(line) < 1 << 62 else None,
        )
        number = self._numbers.setdefault(content, len(self.frames))
        if number == len(self.frames):
            self.frames.append(content)
            self._first.append(frame)
            self._known[id(frame)] = number
        return number


@dataclass(frozen=True)
class SnapshotSink:
    """Receives the records of a snapshot in batches; records are invalid after the call."""

    segments: Callable[[list[Record]], None]
    events: Callable[[int, list[Record]], None]
    """Called with the device number and the events."""
    annotations: Callable[[list[Record]], None]
    stacks: Stacks = field(default_factory=Stacks)


def is_snapshot(head: bytes) -> bool:
    """Return whether a file is a memory snapshot, judging by its first bytes."""
    if head.startswith(PICKLE_MAGIC):
        return bool(_PICKLE_SIGN.search(head[:_SIGN_BYTES]))
    return bool(_JSON_SIGN.search(head[:_SIGN_BYTES]))


def read_snapshot(path: str, sink: SnapshotSink) -> str | None:
    """Read a snapshot.

    Returns:
        Why the end of the snapshot is missing; None if it is complete.

    Raises:
        TraceNotFoundError: The file does not exist.
        TraceFormatError: The file is not a snapshot, is damaged, or is a pickle that contains more
            than plain values.
    """
    with open_any(path) as stream:
        head = stream.read(1)
    if head != PICKLE_MAGIC:
        return _read_json(path, sink)
    with _mapped(path) as data:
        return _SnapshotReader(data, path, sink).read()


@contextmanager
def _mapped(path: str) -> Iterator[mmap.mmap]:
    """Map a file into memory; unpack or download it to a temporary file first if needed."""
    with temporary_folder() as folder:
        place = Path(path)
        with open_any(path) as stream:
            if isinstance(stream, UnpackedStream) or not place.is_file():
                place = Path(folder, "snapshot")
                with place.open("wb") as copy:
                    while block := stream.read(BLOCK_BYTES):
                        copy.write(block)
        with place.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


def _read_json(path: str, sink: SnapshotSink) -> str | None:
    """Read a snapshot in JSON; return why something is missing, or None."""
    with open_any(path) as stream:
        text = stream.read(MAX_JSON_BYTES + 1)
    if len(text) > MAX_JSON_BYTES:
        raise TraceFormatError(
            f"{path!r} is too large: memory snapshots in JSON may be at most {MAX_JSON_BYTES >> 20} MiB. Pass the "
            "pickle that torch.cuda.memory._dump_snapshot writes, which may be larger."
        )
    try:
        value = json.loads(text, parse_int=bounded_integer)
    except (ValueError, RecursionError) as error:
        raise TraceFormatError(f"{path!r} is not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise TraceFormatError(f"{path!r} is not a memory snapshot: it is not a JSON object.")
    skipped = 0

    def records(items: Any) -> list[Record]:
        nonlocal skipped
        found = [item for item in _list(items) if isinstance(item, dict)]
        skipped += len(_list(items)) - len(found)
        return found

    sink.segments(records(value.get("segments")))
    for device, events in enumerate(_list(value.get("device_traces"))):
        sink.events(device, records(events))
    sink.annotations(records(value.get("external_annotations")))
    return f"{counted(skipped, 'item')} skipped: no object" if skipped else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


class _Memo(dict[int, Any]):
    """The memo of a pickle without the records that were passed on.

    A list of frames takes 8 bytes: it stays known by number, because later events may share it.
    Records take no memory.
    """

    def __init__(self) -> None:
        super().__init__()
        self._forgotten = 0
        self._numbers, self._stacks = array("I"), array("I")
        """Memo numbers of lists of frames in ascending order, and the numbers of their stacks."""

    def __len__(self) -> int:
        """Return the number of entries ever made, with which the pickle numbers the next entry."""
        return super().__len__() + self._forgotten

    def __missing__(self, number: int) -> Stack | None:
        at = bisect_left(self._numbers, number)
        if at < len(self._numbers) and self._numbers[at] == number:
            return Stack(self._stacks[at])
        if number < len(self):
            return None
        raise KeyError(number)

    def forget(self, gone: list[int], stacks: dict[int, Stack]) -> None:
        """Remove entries.

        Args:
            gone: Memo numbers of records.
            stacks: Memo number of a list of frames ─▶ its stack, in ascending order.
        """
        for number in chain(gone, stacks):
            del self[number]
        self._forgotten += len(gone) + len(stacks)
        self._numbers.extend(stacks)
        self._stacks.extend(stack.number for stack in stacks.values())


class _SnapshotReader(PickleReader):
    """Passes on the items of a snapshot's lists instead of appending them.

    The memo of the pickle would keep all items alive. Therefore the entries of items that were
    passed on are removed, frames are replaced by the first equal frame, and lists of frames by
    their :class:`Stack`.
    """

    kind = "memory snapshot"
    max_containers = MAX_CONTAINERS

    def __init__(self, data: mmap.mmap, path: str, sink: SnapshotSink) -> None:
        super().__init__(data, path)
        self._memo = _Memo()
        self._sink = sink
        self._scanned = 0
        self._texts: dict[str, str] = {}
        self._found = False

    def read(self) -> str | None:
        """Read the whole pickle."""
        try:
            try:
                value = self.value()
                problem = None
            except CutOffError:
                problem = f"it is cut off at byte {len(self._data):,}"
                value = self.salvaged()
        except (IndexError, KeyError, TypeError, ValueError, struct.error, OverflowError) as error:
            raise TraceFormatError(
                f"{self._path!r} is a damaged pickle: invalid data at byte {self.position:,} "
                f"({type(error).__name__})."
            ) from error
        if not isinstance(value, dict) or not (
            self._found or "segments" in value or "device_traces" in value
        ):
            raise TraceFormatError(
                f"{self._path!r} is not a memory snapshot: it has neither segments nor "
                "device_traces."
            )
        return problem

    def _extend(self, items: list[Any]) -> None:
        stack = self._stack
        # The pickler appends up to 1,000 items at once. The key of the list is below the list.
        key = stack[-2] if len(stack) > 2 else None
        if (
            isinstance(key, str)
            and key in ("segments", "external_annotations")
            and type(stack[-1]) is list
        ):
            self._hand_over(
                self._sink.segments if key == "segments" else self._sink.annotations, items
            )
        elif type(stack[-1]) is list and (device := self._device(key)) is not None:
            self._hand_over(lambda events: self._sink.events(device, events), items)
        else:
            super()._extend(items)

    def salvaged(self) -> Any:
        """Pass on the complete items of the truncated list, and return the outermost dict."""
        stack, marks = self._stack, self._marks
        while len(stack) > 1 or marks:
            items = self._above_mark() if marks else [stack.pop()]
            if not stack:
                return None
            if type(stack[-1]) is list:
                self._extend([item for item in items if isinstance(item, dict)])
        return stack[0] if stack else None

    def _device(self, key: Any) -> int | None:
        """Return the number of the device whose event list is on top of the stack, or None."""
        if type(key) is not list:
            return None
        stack = self._stack
        below = len(stack) - 2
        while below > 0 and type(stack[below]) is list:
            below -= 1
        if stack[below] != "device_traces":
            return None
        # Event lists of earlier devices are in the outer list, or still on the stack.
        return len(stack[below + 1]) + len(stack) - below - 3

    def _hand_over(self, take: Callable[[list[Record]], None], items: list[Any]) -> None:
        self._found = True
        records = [item for item in items if isinstance(item, dict)]
        for record in records:
            if (stack := self._sink.stacks.of(record.get("frames"))) is not None:
                record["frames"] = stack
        take(records)
        self._forget(records)
        if isinstance(self._data, mmap.mmap):
            read = self.position & ~(mmap.PAGESIZE - 1)
            if read:
                self._data.madvise(mmap.MADV_DONTNEED, 0, read)

    def _forget(self, records: list[Record]) -> None:
        """Remove records from the memo; they are among the entries made since the last call."""
        memo, texts = self._memo, self._texts
        gone = set(map(id, records))
        for record in records:
            for value in record.values():
                if type(value) is list:
                    gone.add(id(value))
                    gone.update(map(id, value))
        get, stacks = memo.get, {}
        forgotten = []
        for number in range(self._scanned, len(memo)):
            value = get(number)
            kind = type(value)
            if kind is Stack:
                stacks[number] = value
            elif id(value) in gone:
                forgotten.append(number)
            elif kind is str:
                memo[number] = texts.setdefault(value, value)
            elif kind is list and type(shared := self._shared(value)) is Stack:
                stacks[number] = shared
            elif kind is dict:
                memo[number] = self._shared(value)
        memo.forget(forgotten, stacks)
        self._scanned = len(memo)

    def _shared(self, value: Any) -> Any:
        """Return the first frame equal to a frame, the Stack for a list of frames, or the value."""
        stacks = self._sink.stacks
        if type(value) is dict and "filename" in value:
            return stacks.same(value)
        if type(value) is list and value and type(value[0]) is dict and "filename" in value[0]:
            return stacks.of(value)
        return value
