"""Tests that lost parts of traces are counted in bytes and events, or stated as unknown."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

import hta_sql
from hta_sql.exports.losses import loss_sentences

EVENTS = 20_000


@pytest.fixture(scope="module")
def packed() -> bytes:
    """Return a compressed trace of EVENTS operators of random durations."""
    chance = random.Random(5)
    events = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": f"aten::op{chance.randrange(50)}",
            "pid": 1,
            "tid": 1,
            "ts": 10 * at,
            "dur": chance.randrange(1, 9),
            "args": {"External id": chance.randrange(10**6)},
        }
        for at in range(EVENTS)
    ]
    return gzip.compress(json.dumps({"traceEvents": events}).encode())


def test_a_file_that_is_cut_off_may_lack_anything(tmp_path: Path, packed: bytes) -> None:
    """The size of what was cut off is unknown, not 0."""
    path = tmp_path / "trace.json.gz"
    path.write_bytes(packed[: len(packed) // 2])
    store = hta_sql.ingest(path, tmp_path / "store")
    (row,) = store.run("rank_health").records()
    assert row["lost_count"] > 0
    assert (row["lost_bytes"], row["lost_event_count"], row["lost_pct"]) == (None, None, None)
    ((sentence,),) = loss_sentences(store).values()
    assert "cut off" in sentence
    assert "unknown" in sentence


def test_a_whole_trace_has_no_losses(tmp_path: Path, packed: bytes) -> None:
    """Without losses nothing is stated."""
    path = tmp_path / "trace.json.gz"
    path.write_bytes(packed)
    store = hta_sql.ingest(path, tmp_path / "store")
    (row,) = store.run("rank_health").records()
    assert (row["lost_count"], row["lost_bytes"], row["lost_pct"]) == (0, 0, 0)
    assert loss_sentences(store) == {}


@pytest.mark.parametrize("share", [0.1, 0.38, 0.9])
def test_a_part_that_cannot_be_unpacked(tmp_path: Path, packed: bytes, share: float) -> None:
    """What follows unreadable compressed data counts, too."""
    text = gzip.decompress(packed)
    parts = [gzip.compress(text[at : at + 20_000]) for at in range(0, len(text), 20_000)]
    kept = int(share * len(parts))
    path = tmp_path / "trace.json.gz"
    path.write_bytes(b"".join([*parts[:kept], b"??", *parts[kept:]]))
    store = hta_sql.ingest(path, tmp_path / "store")
    (row,) = store.run("rank_health").records()
    assert row["lost_event_count"] == pytest.approx(EVENTS - row["cpu_op_count"], rel=0.05)
    assert row["lost_pct"] == pytest.approx(100 * (1 - share), abs=3)
