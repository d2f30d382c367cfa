"""Collectives are matched by sequence number or by position."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from tests.jobs.tables import database

REGULAR = [1_000_000 * n for n in range(6)]
"""End times of six collectives that are a millisecond apart [ns]."""


@pytest.fixture
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a catalog with an empty table of repaired positions."""
    with database(tmp_path_factory.mktemp("items")) as opened:
        opened.execute(
            "CREATE TABLE repaired (lane_id BIGINT, rank INTEGER, position BIGINT, ordinal BIGINT, nth BIGINT)"
        )
        opened.execute(
            "CREATE TABLE shifted (lane_id BIGINT, rank INTEGER, ref_rank INTEGER, position BIGINT, "
            "ordinal BIGINT, end_ts BIGINT, seq BIGINT, shape_id INTEGER, gap BIGINT)"
        )
        yield opened


def methods(
    con: duckdb.DuckDBPyConnection, ends: list[int], shift: int, seq: list[int]
) -> set[str]:
    """Return the methods that match the collectives of rank 1 with the collectives of rank 0.

    Rank 0 has regular end times and sequence numbers from 1.
    """
    for place, end in enumerate(REGULAR):
        con.execute(
            "INSERT INTO shifted VALUES (1, 0, 0, $p, $p, $e, $p + 1, 7, 1000000)",
            {"p": place, "e": end},
        )
    for place, (end, number) in enumerate(zip(ends, seq, strict=True)):
        values = {"p": place, "o": place + shift, "e": end, "s": number}
        con.execute("INSERT INTO shifted VALUES (1, 1, 0, $p, $o, $e, $s, 7, 1000000)", values)
    found = con.execute("SELECT DISTINCT method FROM lib._matched_items('shifted', 'repaired')")
    return {method for (method,) in found.fetchall()}


def test_one_late_end_does_not_refuse_numbers(con: duckdb.DuckDBPyConnection) -> None:
    """Sequence numbers are used even if one collective ends late on rank 1."""
    ends = [*REGULAR[:5], REGULAR[5] + 500_000]
    assert methods(con, ends, 3, [1, 2, 3, 4, 5, 6]) == {"seq"}


def test_numbers_that_are_off_by_one_are_refused(con: duckdb.DuckDBPyConnection) -> None:
    """Sequence numbers that are off by one are rejected, and positions are used instead."""
    ends = [end + 40_000 * (place == 3) for place, end in enumerate(REGULAR)]
    ends[2] += 300
    assert methods(con, ends, 0, [2, 3, 4, 5, 6, 7]) == {"ordinal"}


def test_shifts_are_found_if_ends_are_out_of_order(con: duckdb.DuckDBPyConnection) -> None:
    """A collective that ends before its predecessor has a negative gap, and the shift is found."""
    con.execute(
        "CREATE TABLE items AS SELECT 1::BIGINT AS lane_id, rank, position, end_ts, 7 AS shape_id, "
        "lead(end_ts) OVER (PARTITION BY rank ORDER BY position) - end_ts AS gap, 8::BIGINT AS n "
        "FROM (SELECT r.rank::INTEGER AS rank, p.position, p.position * 1_000_000 "
        "- CASE WHEN p.position = 5 THEN 3_000_000 ELSE 0 END AS end_ts "
        "FROM range(2) AS r(rank), range(8) AS p(position))"
    )
    found = con.execute(
        "SELECT rank, shift, gaps_agree FROM lib._sequence_shifts('items') ORDER BY 1"
    )
    assert found.fetchall() == [(0, 0, True), (1, 0, True)]
