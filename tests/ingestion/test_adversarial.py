"""The time to read corrupt input is linear in its size, and its size is limited."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest

from hta_sql.traces.salvage import rescue
from tests.ingestion.corpus import event
from tests.ingestion.ways import Way, staged

PIECES = {
    "objects that never close": b'{"ph":',
    "lists that never close": b'{"ph":[',
    "nan in lists that never close": b'{"ph":[nan,',
    "quotes that never close": b'{"ph":"',
    "brackets": b"[",
    "quotes": b'"',
    "backslashes": b"\\",
    "escaped quotes": b'\\"',
    "braces": b"{",
    "stray brackets before events": b']{"ph":1',
    "quotes in names": b'{"ph":"X","name":"a"b"} ',
    "words": b"N/A,",
    "a word": b"x",
}


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
def test_time_is_linear(piece: bytes) -> None:
    """128 KB of the worst input take seconds, while a quadratic algorithm would take minutes."""
    started = time.process_time()
    rescue(piece * ((128 << 10) // len(piece)))
    assert time.process_time() - started < 10


def test_a_broken_event_in_every_chunk_costs_ten_times_at_most(tmp_path: Path) -> None:
    """A malformed event in every chunk makes reading at most ten times slower.

    DuckDB refuses such a chunk, so the chunk is scanned, repaired and parsed again.
    """
    path, whole = tmp_path / "trace.json", event() + b",\n"
    seconds = []
    for broken in (whole, event(name="oops") + b",\n"):
        chunk = whole * 1999 + broken
        path.write_bytes(b'{"traceEvents": [' + chunk * 40 + event() + b"]}")
        started = time.process_time()
        outcome = staged(path, Way(is_deep=False))
        seconds.append(time.process_time() - started)
        assert outcome["event_count"] == [(80_001,)]
        assert len(outcome["quarantined"]) == (40 if broken != whole else 0)
    assert seconds[1] < 10 * seconds[0] + 1


def test_a_bomb_of_spaces_is_refused(tmp_path: Path) -> None:
    """A file that unpacks to more than a limit is refused, even in the middle of its events."""
    path = tmp_path / "trace.json"
    path.write_bytes(
        gzip.compress(b'{"traceEvents": [' + (event() + b",\n") * 9000 + b" " * (30 << 20), 9)
    )
    outcome = staged(path, Way(max_bytes=20 << 20))
    assert "unpacks to more than 20 MB" in outcome["error"][0][0]
