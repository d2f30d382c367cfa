"""A number of a trace's header that no integer can hold costs neither its trace nor others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hta_sql
from hta_sql.errors import RankError
from hta_sql.ingestion.discover import discover
from hta_sql.traces.peek import peek
from tests.discovery.test_mixed_jobs import trace


@pytest.mark.parametrize("rank", [1 << 31, 1 << 70, -(1 << 40)])
def test_a_stated_rank_beyond_its_type(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rank: int
) -> None:
    """A trace that states a rank that is too large is reported, and the other traces are read."""
    for number, stated in enumerate((0, rank)):
        (tmp_path / f"{number}.json").write_text(json.dumps(trace(stated)))
    assert [file.rank for file in discover(str(tmp_path))] == [0]
    assert f"1.json' specifies rank {rank}; a rank must be below 2,147,483,648" in caplog.text


def test_a_given_rank_beyond_its_type(tmp_path: Path) -> None:
    """If the user passes a rank that is too large, the error names the rank and the file."""
    (tmp_path / "a.json").write_text(json.dumps(trace(None)))
    with pytest.raises(RankError, match=r"Rank 2147483648 of .*a\.json"):
        discover({1 << 31: str(tmp_path / "a.json")})


@pytest.mark.parametrize("digits", ["2147483648", "20260101120000", "9" * 5000])
def test_a_number_in_a_name_is_a_time(tmp_path: Path, digits: str) -> None:
    """A number in a file name that is too large for a rank is not considered to be one."""
    name = f"rank_{digits}"[:200] + ".json"
    (tmp_path / name).write_text(json.dumps(trace(None)))
    assert [(f.rank, f.rank_source) for f in discover(str(tmp_path))] == [(0, "order of names")]


@pytest.mark.parametrize("number", ["1e999", "-Infinity", "NaN", "9" * 5000])
def test_a_number_of_the_header_that_is_no_integer_is_unknown(tmp_path: Path, number: str) -> None:
    """JSON's 1e999 is infinite, and Python refuses 5,000 digits: the value costs only itself."""
    text = json.dumps(trace(0, world_size=4, backend="nccl"))
    for key, stated in (("rank", (None, 4)), ("world_size", (0, None))):
        whole = f'"{key}": {0 if key == "rank" else 4}'
        assert whole in text
        path = tmp_path / f"{key}.json"
        path.write_text(text.replace(whole, f'"{key}": {number}'))
        found = peek(str(path))
        assert (found.rank, found.world_size) == stated
        with hta_sql.ingest(path, tmp_path / f"{key}.store") as store:
            assert store.sql("SELECT world_size, backend FROM ranks").rows() == [
                (stated[1], "nccl")
            ]


@pytest.mark.parametrize("ts", ["1.2.3", ".", "9" * 400])
def test_an_odd_time_of_the_first_event_does_not_affect_its_trace(tmp_path: Path, ts: str) -> None:
    """A trace whose first time is no number is ordered as if it started at its base time."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(trace(3)).replace('"ts": 10', f'"ts": {ts}'))
    assert f'"ts": {ts}' in path.read_text()
    assert (peek(str(path)).rank, peek(str(path)).start_ns) == (3, 0)
