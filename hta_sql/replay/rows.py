"""Rows of the derived table `replays`: the predicted time of a run in each scenario."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np

from hta_sql.replay.arrays import Durations, Floats
from hta_sql.replay.graph import READS, STAGES, Replay, read_replay
from hta_sql.replay.scenarios import (
    NO_EXPOSED,
    NO_STRAGGLER,
    RECORDED,
    UNIFORM,
    faster,
    parts,
    scenarios,
    shifted_begins,
)
from hta_sql.replay.sweep import Sweep
from hta_sql.replay.watch import UNWATCHED, Watch

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

Row = dict[str, Any]

T_QUANTILES = (
    12.71,
    4.30,
    3.18,
    2.78,
    2.57,
    2.45,
    2.36,
    2.31,
    2.26,
    2.23,
    2.20,
    2.18,
    2.16,
    2.14,
    2.13,
)
"""97.5 % quantiles of Student's t for 1 to 15 degrees of freedom; above, 2.0 is within 5 %."""


def replay_rows(con: duckdb.DuckDBPyConnection, run: str, watch: Watch = UNWATCHED) -> pa.Table:
    """Replay a run in all scenarios; return the rows of `replays` without the column run.

    Args:
        con: Connection to a catalog in which temporary tables can be created.
        run: The run.
        watch: Limits of the computation.

    Raises:
        duckdb.Error: The engine failed to compute the graph, or the graph exceeds the memory limit.
        ComputationStoppedError: The computation was interrupted, or exceeded its time limit.
    """
    replay = read_replay(con, run, watch)
    log.info("Replaying run %s: %d nodes.", run, len(replay))

    def report(part: str, number: int) -> None:
        watch.report(f"replay of {run}: {part}", len(READS) + number, STAGES)

    return _table(_rows(replay, watch, report) if replay.graph.is_operation.any() else [])


def _table(rows: list[Row]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    kinds = {"scenario": pa.string(), "part_kind": pa.string(), "part": pa.string()}
    kinds |= dict.fromkeys(("recorded_ns", "replayed_ns", "low_ns", "high_ns"), pa.int64())
    kinds |= {"changed_ranks": pa.string(), "node_count": pa.int64(), "free_host_count": pa.int64()}
    return pa.Table.from_pylist(rows, pa.schema(kinds))


def replays_of_all(con: duckdb.DuckDBPyConnection) -> pa.Table:
    """Replay all runs of a catalog; return the rows of `replays`.

    Args:
        con: Connection to a catalog with matched collectives, in which temporary tables can be
            created.
    """
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    runs = [run for (run,) in con.table("ranks").unique("run").order("run").fetchall()]
    tables = [(run, replay_rows(con, run)) for run in runs]
    named = [
        rows.add_column(0, "run", pa.array([run] * len(rows), pa.string())) for run, rows in tables
    ]
    return pa.concat_tables(named or [_table([]).add_column(0, "run", pa.array([], pa.string()))])


def _rows(replay: Replay, watch: Watch, report: Callable[[str, int], None]) -> list[Row]:
    report("order of operations", 1)
    named, sweep = scenarios(replay), Sweep(replay.graph, watch)
    report("scenarios", 2)
    spans = _Spans(replay)
    found = dict(zip(named, sweep.ends(list(named.values())), strict=True))
    before = found[RECORDED]
    found |= _with_begins(replay, sweep, named, found)
    took = spans.length(before)
    rows = []
    for name, end in found.items():
        saved = max(0.0, took - spans.length(end))
        spread = spans.spread(before, end)
        rows.append(_row(replay, name, took, saved, spread))
    overlapped = spans.overlapped(found[NO_EXPOSED])
    rows.append(_row(replay, "perfect overlap", took, max(0.0, took - overlapped), None))
    report("parts of the job", 3)
    divided = dict(parts(replay, named[RECORDED], named[UNIFORM]))
    for (kind, part), end in zip(divided, sweep.ends(list(divided.values())), strict=True):
        row = _row(replay, UNIFORM, took, took - spans.length(end), None)
        rows.append(row | {"part_kind": kind, "part": part})
    report("faster kernels", 4)
    changed = dict(faster(replay, named[RECORDED]))
    for (scenario, (kind, part)), end in zip(
        changed, sweep.ends(list(changed.values())), strict=True
    ):
        saved, spread = max(0.0, took - spans.length(end)), spans.spread(before, end)
        rows.append(_row(replay, scenario, took, saved, spread) | {"part_kind": kind, "part": part})
    return rows


def _with_begins(
    replay: Replay, sweep: Sweep, named: dict[str, Durations], found: dict[str, Floats]
) -> dict[str, Floats]:
    """Return the node ends of scenarios in which ranks begin the capture earlier than recorded."""
    begins = {name: shifted_begins(replay, found[RECORDED], end) for name, end in found.items()}
    again = {
        name: replace(named[name], begin=begin)
        for name, begin in begins.items()
        if begin is not None
    }
    return dict(zip(again, sweep.ends(list(again.values())), strict=True))


def _row(replay: Replay, name: str, took: float, saved: float, spread: float | None) -> Row:
    ranks = np.unique(replay.nodes["rank"][replay.values["is_straggler"]]).tolist()
    return {
        "scenario": name,
        "recorded_ns": round(took),
        "replayed_ns": round(took - saved),
        "low_ns": None if spread is None else round(max(0.0, saved - spread)),
        "high_ns": None if spread is None else round(min(took, saved + spread)),
        "changed_ranks": json.dumps(ranks) if name == NO_STRAGGLER else None,
        "node_count": len(replay),
        "free_host_count": _free_hosts(replay),
    }


def _free_hosts(replay: Replay) -> int:
    """Return the number of recordings whose host launches work but never waits for the device."""
    graph = replay.graph
    launching, waiting = (
        np.unique(graph.line[which]) for which in (graph.host_place > 0, graph.awaited >= 0)
    )
    return len(np.setdiff1d(launching, waiting))


class _Spans:
    """Lengths of a run's recordings and steps.

    Args:
        replay: The run.
    """

    def __init__(self, replay: Replay) -> None:
        nodes, is_operation = replay.nodes, replay.graph.is_operation
        self._replay = replay
        span = nodes["span"]
        # A recording without device operations has no length.
        present = np.unique(span[is_operation])
        self._spans = [np.flatnonzero(is_operation & (span == one)) for one in present]
        step = np.ma.filled(nodes["step"], -1)
        self._steps = []
        for mine in self._spans:
            here = mine[step[mine] >= 0]
            here = here[np.argsort(step[here], kind="stable")]
            self._steps.append((here, np.unique(step[here], return_index=True)[1]))
        self._begins = [float(nodes["begin_ns"][mine].min()) for mine in self._spans]

    def length(self, end: Floats) -> float:
        """Return the time from the first start to the last end, summed over recordings [ns]."""
        lasts = [float(end[mine].max()) for mine in self._spans]
        return sum(last - begin for last, begin in zip(lasts, self._begins, strict=True))

    def spread(self, before: Floats, end: Floats) -> float | None:
        """Return half the width of the 95 % confidence interval of the saving [ns].

        It is estimated from the variation between steps; None for fewer than two steps.
        """
        saved: list[float] = []
        for (here, firsts), begin in zip(self._steps, self._begins, strict=True):
            if len(here):
                lasts = [np.maximum.reduceat(one[here], firsts) for one in (before, end)]
                lengths = [np.diff(last, prepend=begin) for last in lasts]
                saved += (lengths[0] - lengths[1]).tolist()
        if len(saved) < 2:
            return None
        freedom = len(saved) - 1
        quantile = T_QUANTILES[freedom - 1] if freedom <= len(T_QUANTILES) else 2.0
        return quantile * float(np.std(saved, ddof=1)) * math.sqrt(len(saved))

    def overlapped(self, alone: Floats) -> float:
        """Return the length if all transfers of each rank perfectly overlapped with its work [ns].

        For each recording, this is the maximum over ranks of the larger of work and transfers.

        Args:
            alone: Ends of nodes without communication.
        """
        rank, total = self._replay.nodes["rank"], 0.0
        transfer = np.ma.filled(self._replay.nodes["transfer_ns"], 0)
        for mine, begin in zip(self._spans, self._begins, strict=True):
            ordered = mine[np.argsort(rank[mine], kind="stable")]
            firsts = np.unique(rank[ordered], return_index=True)[1]
            worked = np.maximum.reduceat(alone[ordered], firsts) - begin
            total += float(np.maximum(worked, np.add.reduceat(transfer[ordered], firsts)).max())
        return total
