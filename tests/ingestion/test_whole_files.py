"""Tests of faults that affect a whole file, such as concatenation and wrong compression."""

from __future__ import annotations

import gzip
import json
import time
from itertools import zip_longest
from pathlib import Path
from unittest.mock import patch

import pytest
import zstandard

from hta_sql.ingestion import staging
from tests.ingestion.corpus import GARBAGE, OTHER_FILE, event
from tests.ingestion.small_trace import EVENTS, document
from tests.ingestion.ways import (
    Outcome,
    Way,
    check_nothing_vanished,
    quarantine,
    rows_by_event,
    staged,
)

NAME = 3
HEAD = b'{"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": ['
END = b'], "traceName": "a.json"}'
NO_END = "the event list is not terminated: the file is cut off"


def texts(letter: str, count: int = 6) -> list[bytes]:
    """Return the events of one rank as JSON."""
    return [event(name=f'"{letter}{n}"') for n in range(count)]


def file_of(events: list[bytes]) -> bytes:
    """Return a trace file with the given events."""
    return HEAD + b", ".join(events) + END


A, B = texts("a"), texts("b")
NAMES_A, NAMES_B = ([f"{letter}{n}" for n in range(6)] for letter in "ab")


def names(outcome: Outcome) -> list[str]:
    """Return the names of the stored events in file order."""
    rows = rows_by_event(outcome)
    return [rows[event_id][NAME] for event_id in sorted(rows)]


def read_in_every_way(path: Path) -> Outcome:
    """Read a file with many chunk sizes; return the result, which must not depend on them."""
    first = staged(path, Way(is_deep=False))
    for size in (1, 150, 400):
        for careful in (False, True):
            assert staged(path, Way(size, careful=careful, is_deep=False)) == first
    check_nothing_vanished(first)
    return first


JOINED = {
    "cut off behind a comma, then whole": (
        HEAD + b", ".join(A[:3]) + b", " + file_of(B),
        NAMES_A[:3] + NAMES_B,
        [OTHER_FILE],
    ),
    "cut off inside an event, then whole": (
        HEAD + b", ".join(A[:3]) + b", " + A[3][:50] + file_of(B),
        NAMES_A[:3] + NAMES_B,
        [OTHER_FILE],
    ),
    "both whole": (file_of(A) + file_of(B), NAMES_A + NAMES_B, [GARBAGE]),
    "both whole, by lines": (file_of(A) + b"\n" + file_of(B), NAMES_A + NAMES_B, [GARBAGE]),
    "three whole": (
        file_of(A) + file_of(B) + file_of(A),
        NAMES_A + NAMES_B + NAMES_A,
        [GARBAGE, GARBAGE],
    ),
    "one in the middle of the other": (
        HEAD + b", ".join([*A[:3], file_of(B), *A[3:]]) + END,
        NAMES_A[:3] + NAMES_B + NAMES_A[3:],
        [OTHER_FILE, GARBAGE],
    ),
    "a list of files": (
        b"[" + file_of(A) + b", " + file_of(B) + b"]",
        NAMES_A + NAMES_B,
        [OTHER_FILE, GARBAGE, "the trailer next to traceEvents"],
    ),
    "the list is a list in a list": (
        HEAD + b"[" + b", ".join(A) + b"]" + END,
        NAMES_A,
        [GARBAGE],
    ),
    "whole, then cut off": (
        file_of(A) + file_of(B)[: len(HEAD) + 2 * len(B[0]) + 20],
        NAMES_A + NAMES_B[:2],
        [GARBAGE, "broken JSON", NO_END],
    ),
}


@pytest.mark.parametrize(
    "case",
    JOINED,
)
def test_two_ranks_wrote_one_path(case: str, tmp_path: Path) -> None:
    """If two ranks wrote to the same file, complete events are stored, the rest is quarantined."""
    data, kept, reasons = JOINED[case]
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    outcome = read_in_every_way(path)
    assert names(outcome) == kept
    found = [row.reason for row in quarantine(outcome)]
    assert len(found) == len(reasons), found
    assert all(reason.startswith(part) for reason, part in zip(found, reasons, strict=True)), found


@pytest.mark.parametrize("block", [150, 700])
def test_two_ranks_wrote_one_path_in_turns(block: int, tmp_path: Path) -> None:
    """If the blocks of two files alternate, every event that lies within a block is stored."""
    many_a, many_b = texts("a", 40), texts("b", 40)
    file_a, file_b = file_of(many_a), file_of(many_b)
    blocks = [
        [data[at : at + block] for at in range(0, len(data), block)] for data in (file_a, file_b)
    ]
    data = b"".join(part for pair in zip_longest(*blocks, fillvalue=b"") for part in pair)
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    outcome = read_in_every_way(path)
    whole = {
        name.decode()
        for whole_file, events in ((file_a, many_a), (file_b, many_b))
        for text in events
        for at in [whole_file.index(text)]
        for name in [text.split(b'"name": "')[1].split(b'"')[0]]
        if at // block == (at + len(text) - 1) // block
    }
    assert whole
    assert whole <= set(names(outcome))


def test_lists_of_one_event_each_cost_linear_time(tmp_path: Path) -> None:
    """Ten thousand events in nested lists, whose brackets do not end the list, are read quickly."""
    path = tmp_path / "trace.json"
    path.write_bytes(HEAD + b", ".join([b"[" + event() + b"]"] * 10_000) + END)
    started = time.process_time()
    outcome = staged(path, Way(4096, is_deep=False))
    assert time.process_time() - started < 15
    assert len(rows_by_event(outcome)) == 10_000


def test_a_cut_at_every_byte_changes_nothing(tmp_path: Path) -> None:
    """The result does not depend on the chunk size, even if chunks end inside events."""
    path = tmp_path / "trace.json"
    path.write_bytes(document(EVENTS[3:6]))
    first = staged(path, Way(is_deep=False))
    for size in range(1, path.stat().st_size + 1, 29):
        assert staged(path, Way(size, careful=bool(size % 2), is_deep=False)) == first, size


@pytest.mark.slow(reason="fuzz")
def test_a_cut_at_every_single_byte_changes_nothing(tmp_path: Path) -> None:
    """Every chunk size has the same result, even with a malformed event and a nested file."""
    path = tmp_path / "trace.json"
    few = HEAD + b", ".join([A[0], event(name="oops"), file_of(B[:1]), A[1]]) + END
    for data in (document(EVENTS[3:6]), few):
        path.write_bytes(data)
        first = staged(path, Way(is_deep=False))
        for size in range(1, len(data) + 1):
            for careful in (False, True):
                assert staged(path, Way(size, careful=careful, is_deep=False)) == first, size


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\t ", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (gzip.compress(b""), "the file is empty"),
        (document().decode().encode("utf-16"), "not UTF-8 text"),
        (document().decode().encode("utf-16-be"), "not UTF-8 text"),
        (b'{"schemaVersion": 1}', "no traceEvents list"),
        (b"traceEvents", "not JSON"),
        (b"null", "not JSON"),
    ],
    ids=[
        "empty",
        "blank",
        "mark only",
        "empty gzip",
        "UTF-16",
        "UTF-16 BE",
        "no list",
        "word",
        "null",
    ],
)
def test_what_is_no_trace_is_named(data: bytes, message: str, tmp_path: Path) -> None:
    """The error for a file that is not a trace says what is wrong with it."""
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    for careful in (False, True):
        assert message in staged(path, Way(careful=careful))["error"][0][0]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("mark.json", b"\xef\xbb\xbf" + document()),
        ("bare.json", json.dumps(EVENTS).encode()),
        ("gzip.json", gzip.compress(document())),
        ("plain.json.gz", document()),
        ("zstd.json.gz", zstandard.compress(document())),
        ("twice.json", gzip.compress(gzip.compress(document()))),
        ("mark.gz", gzip.compress(b"\xef\xbb\xbf" + document())),
        ("frames.zst", zstandard.compress(document()[:500]) + zstandard.compress(document()[500:])),
    ],
)
def test_the_suffix_means_nothing(name: str, data: bytes, tmp_path: Path) -> None:
    """Compression is detected from the content of a file, not from its suffix."""
    for file, content in (("plain.json", document()), (name, data)):
        (tmp_path / file).write_bytes(content)
    plain, other = (staged(tmp_path / file, Way()) for file in ("plain.json", name))
    assert all(other[table] == plain[table] for table in plain.keys() - {"metadata"})


@pytest.mark.parametrize("whole", [0, 30])
def test_the_limit_of_broken_events_is_that_of_every_way(whole: int, tmp_path: Path) -> None:
    """A file with too many malformed events is refused, regardless of the chunk size."""
    path = tmp_path / "trace.json"
    path.write_bytes(HEAD + b", ".join([*texts("a", whole), *[event(name="oops")] * 80]) + END)
    with patch.object(staging, "MAX_BROKEN", 60):
        errors = [
            staged(path, Way(size, careful=careful, is_deep=False)).get("error")
            for size in (200, 5000, 1 << 18)
            for careful in (False, True)
        ]
    assert all(error == errors[0] for error in errors), errors
    assert (errors[0] is None) == (whole > 0), errors
