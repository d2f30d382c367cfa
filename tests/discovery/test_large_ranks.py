"""A trace with a rank number that is too large does not affect other traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hta_sql.errors import RankError
from hta_sql.ingestion.discover import discover
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
