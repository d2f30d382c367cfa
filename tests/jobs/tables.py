"""Write the events of many jobs directly into the stored tables of one database.

No traces are written or ingested. Only columns that the cross-rank analyses read have values; all
other columns are NULL.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from hta_sql import replay
from hta_sql.library import sqltext
from hta_sql.library.creation import RANK_SCOPE
from hta_sql.library.objects import load_library
from hta_sql.library.sql_files import stored_columns
from hta_sql.replay.rows import replays_of_all
from hta_sql.store.catalog.template import CONFIG, template
from tests.jobs.spec import PlantedJob
from tests.jobs.traces import Captured, Trace

DATABASE = "jobs.duckdb"

Rows = dict[str, list[dict[str, Any]]]

TABLES = ("gpu_ops", "cpu_ops", "annotations", "runtime_calls", "steps", "ranks")


def database(folder: Path, threads: int = 2) -> duckdb.DuckDBPyConnection:
    """Create a catalog whose stored tables are empty and can be filled."""
    path = folder / DATABASE
    shutil.copyfile(template(load_library()), path)
    con = duckdb.connect(str(path), config=CONFIG | {"threads": threads})
    for name, kinds in _kinds().items():
        empty = sqltext.values(kinds, [])
        for statement in sqltext.replace_view_by_table(f"stored.{name}", empty):
            con.execute(statement)
    return con


def _kinds() -> dict[str, dict[str, str]]:
    columns = stored_columns()
    span = {"span": "INTEGER"}
    return {name: columns[name] | span for name in TABLES} | {"rank_scope": RANK_SCOPE}


def fill(con: duckdb.DuckDBPyConnection, rows: Mapping[str, pa.Table]) -> None:
    """Append rows to the stored tables, matching columns by name."""
    for name, table in rows.items():
        con.register("new_rows", table)
        con.execute(f"INSERT INTO stored.{name} BY NAME FROM new_rows")
        con.unregister("new_rows")


def derive(con: duckdb.DuckDBPyConnection) -> None:
    """Compute the derived tables of all runs."""
    for about in load_library().derived:
        table = f"derived.{about.base_name}"
        con.execute(f"DROP VIEW IF EXISTS {table}")
        if about.base_name == replay.TABLE:
            con.register("replayed", replays_of_all(con))
            con.execute(sqltext.create_table(table, "FROM replayed"))
            con.unregister("replayed")
            continue
        con.execute(sqltext.create_table(table, f"FROM derived.{about.name}(NULL)"))


def rows_of(jobs: Mapping[str, tuple[PlantedJob, list[Trace]]]) -> dict[str, pa.Table]:
    """Convert captured events to rows of the stored tables."""
    rows: Rows = {name: [] for name in (*TABLES, "rank_scope")}
    for run, (job, traces) in jobs.items():
        for trace in traces:
            _add_rank(rows, run, job, trace)
    return {
        name: pa.table({column: [row.get(column) for row in rows[name]] for column in kinds})
        for name, kinds in _kinds().items()
    }


def _add_rank(rows: Rows, run: str, job: PlantedJob, trace: Trace) -> None:
    rank = trace.did.rank
    base = {"run": run, "rank": rank, "span": 0}
    steps = [e for e in trace.events if e.event.name.startswith("ProfilerStep")]
    last_step = steps[-1].ts if steps else None
    launches: dict[int, tuple[int, Captured, int | None, int | None]] = {}
    for place, captured, parents in _nested(trace.events):
        event = captured.event
        step = _step_at(steps, captured.ts)
        common = base | {"event_id": place, "ts": captured.ts, "dur": captured.end - captured.ts}
        common["step"] = step
        common["in_tail"] = last_step is not None and captured.ts >= last_step
        host = common | {"name": event.name, "pid": 100, "tid": 100, "external_id": event.external}
        host["parent_id"] = parents[-1][0] if parents else None
        op = next((p for p, c in reversed(parents) if c.event.category == "cpu_op"), None)
        if event.name.startswith("ProfilerStep"):
            row = common | {"step": int(event.name.partition("#")[2]), "name": event.name}
            del row["in_tail"]
            rows["steps"].append(row | {"is_last": captured is steps[-1]})
        elif event.category == "cpu_op":
            rows["cpu_ops"].append(host | {"parent_op_id": op} | _columns(captured.args))
        elif event.category == "user_annotation":
            rows["annotations"].append(host | {"on_gpu": False})
        elif event.category == "cuda_runtime":
            launches[event.correlation] = (place, captured, op, step)
            rows["runtime_calls"].append(
                host | {"op_id": op, "category": "cuda_runtime", "correlation": event.correlation}
            )
    for place, captured in enumerate(trace.events):
        if captured.event.stream is not None:
            rows["gpu_ops"].append(base | _kernel(place, captured, launches, steps, last_step))
    ends = [captured.end for captured in trace.events]
    first = min(captured.ts for captured in trace.events)
    rows["ranks"].append(
        base
        | {"dur": max(ends) - first, "event_count": len(ends)}
        | {"host_name": job.host_of(rank) if job.names_hosts else None}
    )
    # The times above are already relative to the job's time origin.
    known = {"offset_ns": 0, "drops_last_step": len(steps) > 1, "dur": max(ends) - first}
    rows["rank_scope"].append(base | known | {"event_count": len(ends)})


def _nested(events: list[Captured]) -> Iterator[tuple[int, Captured, list[tuple[int, Captured]]]]:
    """Yield each host event with its index and its enclosing events, in time order."""
    around: list[tuple[int, Captured]] = []
    host = [(i, e) for i, e in enumerate(events) if e.event.stream is None]
    for place, captured in sorted(host, key=lambda item: (item[1].ts, -item[1].end)):
        while around and around[-1][1].end < captured.end:
            around.pop()
        yield place, captured, list(around)
        around.append((place, captured))


def _step_at(steps: list[Captured], ts: int) -> int | None:
    for step in steps:
        if step.ts <= ts < step.end:
            return int(step.event.name.partition("#")[2])
    return None


def _kernel(
    place: int,
    captured: Captured,
    launches: dict[int, tuple[int, Captured, int | None, int | None]],
    steps: list[Captured],
    last_step: int | None,
) -> dict[str, Any]:
    event, args = captured.event, captured.args
    call, launch, op, step = launches.get(event.correlation, (None, None, None, None))
    at = launch.ts if launch else captured.ts
    is_recorded = "Collective name" in args
    return {
        "event_id": place,
        "ts": captured.ts,
        "dur": captured.end - captured.ts,
        "is_suspect": False,
        "kind": "kernel",
        "class": "communication" if event.collective else "computation",
        "class_source": "metadata" if is_recorded else "rule" if event.collective else "default",
        "name": event.name,
        "device": 0,
        "stream": event.stream,
        "correlation": event.correlation,
        "launch_id": call,
        "launch_ts": launch.ts if launch else None,
        "launch_dur": launch.end - launch.ts if launch else None,
        "op_id": op,
        "step": step if launch else _step_at(steps, captured.ts),
        "in_tail": last_step is not None and at >= last_step,
        "grid_x": event.grid,
        "grid_y": 1,
        "grid_z": 1,
        "block_x": 128,
        "block_y": 1,
        "block_z": 1,
        "external_id": event.external,
    } | (_columns(args) if event.collective else {})


def _columns(args: dict[str, Any]) -> dict[str, Any]:
    """Convert the arguments that PyTorch records for a collective to columns."""
    names = {
        "Collective name": "collective",
        "In msg nelems": "in_elems",
        "Out msg nelems": "out_elems",
        "Group size": "group_size",
        "dtype": "elem_type",
        "Process Group Name": "pg_name",
        "Process Group Description": "pg_desc",
        "Process Group Ranks": "pg_ranks",
        "In split size": "in_split_sizes",
        "Out split size": "out_split_sizes",
        "Seq": "seq",
        "Src Rank": "src_rank",
        "Dst Rank": "dst_rank",
    }
    return {names[key]: value for key, value in args.items() if key in names}
