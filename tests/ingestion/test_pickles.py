"""The pickle reader builds only plain values, and refuses anything else without executing it."""

from __future__ import annotations

import os
import pickle
import struct
from pathlib import Path
from typing import Any

import pytest

from hta_sql.errors import TraceFormatError
from hta_sql.traces.pickles import MAX_CONTAINERS, read_pickle

RECORDED = Path(__file__).parents[1] / "traces" / "recorded" / "hangs"
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
VALUE = {
    "version": "2.10",
    "entries": [{"at": number, "frames": [], "is_p2p": False} for number in range(300)],
    "numbers": [0, -1, 255, 256, 65_536, -(1 << 31), 1 << 62, -(1 << 62), 1 << 70, 1.5, None, True],
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
    "texts": ["", "é\n'\"\\", "x" * 300],
}


class RunsACommand:
    """Class whose pickled instances call os.system when they are loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


class HasState:
    """User-defined class with state."""

    def __init__(self) -> None:
        self.text = "state"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plain_values_are_what_was_pickled(protocol: int) -> None:
    """Plain values are restored from every pickle protocol."""
    assert read_pickle(pickle.dumps(VALUE, protocol), "dump").value == VALUE


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*/nccl_trace_rank_*")), ids=str)
def test_recorded_dumps_are_read_as_python_reads_them(path: Path) -> None:
    """For dumps that PyTorch wrote, the result equals that of Python's pickle module."""
    assert read_pickle(path.read_bytes(), "dump").value == pickle.loads(path.read_bytes())  # noqa: S301 - ours


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pickle_that_calls_a_function_is_refused_by_name(tmp_path: Path, protocol: int) -> None:
    """A pickle that calls a function is refused with the function's name, and nothing is called."""
    data = pickle.dumps({"entries": [RunsACommand(tmp_path / "ran")]}, protocol)
    with pytest.raises(
        TraceFormatError, match=r"GLOBAL \('posix\.system'\).*Nothing in the file was executed"
    ):
        read_pickle(data, "dump")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_object_of_a_class_is_refused(protocol: int) -> None:
    """A pickled instance of a class is refused."""
    with pytest.raises(TraceFormatError, match=r"GLOBAL \('"):
        read_pickle(pickle.dumps(HasState(), protocol), "dump")


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\x80\x02cos\nsystem\n.", "GLOBAL ('os.system')"),
        (b"\x80\x02(ios\nsystem\n.", "INST ('os.system')"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "STACK_GLOBAL ('os.system')"),
        (b"\x80\x02}(R.", "REDUCE"),
        (b"\x80\x02}b.", "BUILD"),
        (b"\x80\x02)\x81.", "NEWOBJ"),
        (b"\x80\x04)}\x92.", "NEWOBJ_EX"),
        (b"\x80\x02(o.", "OBJ"),
        (b"\x80\x02P1\n.", "PERSID"),
        (b"\x80\x02NQ.", "BINPERSID"),
        (b"\x80\x02\x82\x01.", "EXT1"),
        (b"\x80\x02\x83\x01\x00.", "EXT2"),
        (b"\x80\x02\x84\x01\x00\x00\x00.", "EXT4"),
        (b"\x80\x05\x97.", "NEXT_BUFFER"),
        (b"\x80\x04\x8f.", "EMPTY_SET"),
        (b"\x80\x02\xfe.", "0xfe, which is unknown"),
    ],
)
def test_opcodes_that_build_more_than_plain_values_are_refused_by_name(
    data: bytes, name: str
) -> None:
    """An opcode that is not needed for plain values is refused with its name and byte offset."""
    with pytest.raises(TraceFormatError) as refused:
        read_pickle(data, "dump")
    assert f"opcode {name} at byte" in str(refused.value)


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02.",
        b"\x80\x02u.",
        b"\x80\x02K\x01(u.",
        b"\x80\x02h\x05.",
        b"\x80\x02}(K\x01u.",
        b"\x80\x02(\x85.",
        b"\x80\x02I1_x\n.",
        b"\x80\x02I" + b"9" * 5000 + b"\n.",
    ],
)
def test_damaged_pickles_are_refused_with_their_path(data: bytes) -> None:
    """The error for a damaged pickle has its path and a byte offset."""
    with pytest.raises(TraceFormatError, match="'dump' is a damaged pickle: invalid data at byte "):
        read_pickle(data, "dump")


def test_a_pickle_that_is_cut_off_keeps_its_complete_values() -> None:
    """A truncated dump yields its complete entries."""
    whole = pickle.dumps({"entries": [{"a": 1}, {"a": 2}, {"a": 3}]}, 2)
    for end in range(len(whole)):
        read = read_pickle(whole[:end], "dump")
        assert read.problem == f"it is cut off at byte {end}"
        entries = (read.value or {}).get("entries", []) if isinstance(read.value, dict) else []
        assert [entry for entry in entries or [] if entry.get("a")] == [
            {"a": number + 1} for number in range(len([e for e in entries or [] if e.get("a")]))
        ]


def test_lengths_beyond_the_file_take_no_memory() -> None:
    """A string with a declared length of 2^64 bytes is reported without allocating memory."""
    for opcode, width in ((b"\x8d", "Q"), (b"X", "I"), (b"\x8e", "Q")):
        length = struct.pack(f"<{width}", (1 << (8 * struct.calcsize(width))) - 1)
        assert read_pickle(b"\x80\x04" + opcode + length + b"abc", "dump").problem


def test_millions_of_lists_are_refused() -> None:
    """Millions of lists are refused, as each takes one byte in the file but sixty in memory."""
    with pytest.raises(TraceFormatError, match="more than 4,000,000 lists and dicts"):
        read_pickle(b"\x80\x02" + b"]" * (MAX_CONTAINERS + 2), "dump")


def test_values_that_hold_themselves_are_read() -> None:
    """A list that contains itself can be read."""
    value: list[Any] = []
    value.append(value)
    read = read_pickle(pickle.dumps(value, 2), "dump").value
    assert read[0] is read
