"""A truncated file yields every complete event and is reported as truncated."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
import zstandard

from tests.ingestion.corpus import event
from tests.ingestion.ways import Way, check_nothing_vanished, quarantine, rows_by_event, staged

HEAD = b'{"schemaVersion": 1, "traceEvents": ['
WHOLE = [event(name=json.dumps(f"good {n}")) for n in range(8)]
FILE = HEAD + b", ".join(WHOLE) + b'], "traceName": "a.json"}'
ENDS = [len(HEAD + b", ".join(WHOLE[: n + 1])) for n in range(len(WHOLE))]
LIST_END = ENDS[-1] + 1


@pytest.mark.parametrize("chunk_bytes", [1 << 18, 150])
@pytest.mark.parametrize("cut", range(len(HEAD), LIST_END, 53))
def test_text_that_breaks_off(cut: int, chunk_bytes: int, tmp_path: Path) -> None:
    """Events that end before the cut are stored, and the event at the cut is lost."""
    path = tmp_path / "trace.json"
    path.write_bytes(FILE[:cut])
    outcome = staged(path, Way(chunk_bytes=chunk_bytes, is_deep=False))
    kept = sum(end <= cut for end in ENDS)
    assert sorted(rows_by_event(outcome)) == list(range(kept))
    assert quarantine(outcome)[-1].reason == "the event list is not terminated: the file is cut off"
    check_nothing_vanished(outcome)


@pytest.mark.parametrize("container", ["gzip", "zstd"])
@pytest.mark.parametrize("percent", [50, 75, 90, 99])
def test_a_compressed_file_that_breaks_off(container: str, percent: int, tmp_path: Path) -> None:
    """Everything that can be unpacked from a truncated file is read."""
    noise = random.Random(7)
    many = [event(name=json.dumps(f"{n} {noise.random()}")) for n in range(20_000)]
    data = HEAD + b", ".join(many) + b"]}"
    packed = gzip.compress(data) if container == "gzip" else zstandard.compress(data)
    path = tmp_path / "trace.json"
    path.write_bytes(packed[: len(packed) * percent // 100])
    outcome = staged(path, Way(is_deep=False))
    rows = rows_by_event(outcome)
    assert sorted(rows) == list(range(len(rows)))
    # At the cut, a zstd block of up to 128 KB of the 2 MB may be lost.
    assert len(rows) > len(many) * (percent - 15) / 100
    assert all(row[3].startswith(f"{event_id} ") for event_id, row in rows.items())
    assert "the compressed file breaks off" in str(outcome["quarantined"])
    check_nothing_vanished(outcome)
