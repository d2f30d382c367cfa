"""Matches, clocks and waits follow if all times are multiplied, or if clocks are far apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.jobs.kinds import DP, KINDS
from tests.jobs.spec import Clock, PlantedJob
from tests.jobs.tables import database, fill, rows_of
from tests.jobs.traces import Trace, capture

RUNS = (
    *("slower clocks, tp in dp", "hosts 3 ms apart, late", "drift", "no metadata", "experts"),
    *("missing without seq", "off on one rank", "late and early", "pipeline"),
)
SCALES = (10, 1_000, 100_000)
MINUTE_NS = 60_000_000_000
DECADES_NS = 1_700_000_000_000_000_003
ROUNDING_NS = 2
APART = {
    "together": DP,
    "a minute": replace(DP, clocks={3: Clock(MINUTE_NS)}),
    "a minute, late": replace(
        DP, clocks={3: Clock(MINUTE_NS)}, starts_late={3: 3_000_000}, metadata="without seq"
    ),
    "decades": replace(DP, clocks={0: Clock(DECADES_NS)}, metadata="without seq"),
}
TOLERANCE_NS = 2_000


def _scaled(traces: list[Trace], scale: int) -> list[Trace]:
    """Return traces whose times are all multiplied."""
    return [
        Trace(t.did, [replace(e, ts=e.ts * scale, end=e.end * scale) for e in t.events])
        for t in traces
    ]


@pytest.fixture(scope="module")
def matched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the rows of all jobs by run, and the traces of the jobs whose clocks are apart."""
    runs: dict[str, tuple[PlantedJob, list[Trace]]] = {}
    for run in RUNS:
        traces = capture(KINDS[run])
        runs[run] = (KINDS[run], traces)
        runs |= {f"{run} x{s}": (KINDS[run], _scaled(traces, s)) for s in SCALES}
    for run, job in APART.items():
        runs[run] = (job, capture(job))
    with database(tmp_path_factory.mktemp("scales")) as con:
        fill(con, rows_of(runs))
        found = con.execute(
            "SELECT run, rank, event_id, collective_id, match_method, is_last, end_times_match, "
            "clock_is_applied, wait_ns, transfer_ns, end_spread_ns "
            "FROM derived.matched_collectives_v1(NULL) ORDER BY ALL"
        ).fetchall()
    rows: dict[str, Any] = {}
    for run, *row in found:
        rows.setdefault(run, []).append(row)
    return rows | {f"{run} traces": traces for run, (_, traces) in runs.items() if run in APART}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("run", RUNS)
def test_multiplied_times_give_multiplied_waits(
    matched: dict[str, Any], run: str, scale: int
) -> None:
    """Collectives, verdicts and clocks stay, and each wait is multiplied as all times are."""
    before, after = matched[run], matched[f"{run} x{scale}"]
    assert [row[:7] for row in after] == [row[:7] for row in before]
    for old, new in zip(before, after, strict=True):
        for left, right in zip(old[7:], new[7:], strict=True):
            assert left is right is None or abs(left * scale - right) <= ROUNDING_NS * scale


@pytest.mark.parametrize("run", APART)
def test_waits_do_not_depend_on_where_clocks_start(matched: dict[str, Any], run: str) -> None:
    """All collectives on all ranks have the waits of the simulator, with any clock."""
    waits = {(row[0], row[1]): row[7] for row in matched[run]}
    trusted = {(row[0], row[1]): row[5] for row in matched[run]}
    parts = [c for t in matched[f"{run} traces"] for c in t.did.collectives if c.event is not None]
    counts: dict[object, int] = {}
    for part in parts:
        counts[part.key] = counts.get(part.key, 0) + 1
    whole = [part for part in parts if counts[part.key] == len(part.group)]
    assert len(whole) > 40
    for part in whole:
        assert trusted[part.rank, part.event], part
        assert abs(waits[part.rank, part.event] - part.wait) <= TOLERANCE_NS, part
