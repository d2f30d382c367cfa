"""A catalog that is open, and what is known of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import duckdb

from hta_sql.store.parts import Size
from hta_sql.store.sandbox import Sandbox
from hta_sql.store.sizes import SizeCheck


@dataclass(frozen=True)
class Opened:
    """A catalog that is open, and what is known of it."""

    con: duckdb.DuckDBPyConnection
    catalog: Path
    ranks: list[Size]
    """Run, rank and number of events of all that it holds."""
    changed: list[str]
    """Runs that were read by other definitions than today's."""
    kept: dict[str, set[str]]
    """Analysis ─▶ runs of which its view reads what is kept."""
    sandbox: Sandbox | None
    sizes: SizeCheck

    @property
    def scope(self) -> list[tuple[str, int]]:
        """Run and rank of all that it holds."""
        return [(run, rank) for run, rank, _ in self.ranks]


def ranks_of(con: duckdb.DuckDBPyConnection) -> tuple[list[Size], list[str]]:
    """List the ranks of a catalog in order, and the runs that other definitions read."""
    rows = con.execute(
        "SELECT run, rank, event_count, definitions_changed FROM stored.rank_scope"
    ).fetchall()
    counts: dict[tuple[str, int], int] = defaultdict(int)  # spans of a rank are counted together
    for run, rank, events, _ in rows:
        counts[run, rank] += events or 0
    ranks = [(run, rank, counts[run, rank]) for run, rank in sorted(counts)]
    return ranks, sorted({run for run, *_, is_changed in rows if is_changed})
