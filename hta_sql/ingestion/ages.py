"""Rejects traces whose durations are so long that sums over them would overflow 64 bits."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from hta_sql.errors import TraceFormatError
from hta_sql.ingestion.statements import run

NS_OF_A_YEAR = 365.25 * 86400 * 1e9
MAX_YEARS = (1 << 60) / NS_OF_A_YEAR
"""Maximum total duration of a rank's events, including nested events [years].

A day of 100 threads with 50 nested calls each is less than half of this.
"""


def refuse_ages(con: duckdb.DuckDBPyConnection, paths: Mapping[int, str]) -> None:
    """Raise if the total duration of a trace's events is implausible.

    Args:
        con: The database with the table ``rank_clock``.
        paths: Number of a trace ─▶ its path.

    Raises:
        TraceFormatError: The durations of a trace add up to more than the maximum.
    """
    totals = dict(run(con, "SELECT part, total_ns FROM rank_clock").fetchall())
    for part, path in paths.items():
        years = (totals[part] or 0) / NS_OF_A_YEAR
        if years > MAX_YEARS:
            raise TraceFormatError(
                f"{path}: the event durations add up to {years:,.0f} years, "
                f"more than the maximum of {MAX_YEARS:.0f} years."
            )
