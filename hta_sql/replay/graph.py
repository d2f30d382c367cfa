"""Reads the dependency graph of a run's replay; the library's SQL defines its nodes and edges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from hta_sql.library import sqltext
from hta_sql.replay.arrays import Graph, Ints
from hta_sql.replay.watch import UNWATCHED, Watch

Columns = dict[str, Any]

NODES = "replay_nodes"
EDGES = "_replay_edges"
WEIGHTS = "replay_weights"
STRAGGLERS = "_replay_stragglers"
VALUES = "replay_values"

READS: dict[str, tuple[str, ...]] = {
    NODES: (),
    STRAGGLERS: (),
    EDGES: (NODES,),
    WEIGHTS: (NODES, EDGES),
    VALUES: (NODES, WEIGHTS, STRAGGLERS),
}
"""Macro of lib ─▶ macros whose results it reads; a macro that reads none gets the run as argument.

A parameter has the name of the macro whose result it takes, without ``_``. Results are stored in temporary tables.
"""

STAGES = len(READS) + 5
"""Number of progress stages of a replay.

Stages: each table, reading the tables, sorting nodes, scenarios, parts of the job, faster kernels.
"""

NODE_BYTES = 2_000
"""Upper bound of the memory of a node [bytes]; 64 ranks of 5,000 operations take 1,400 per node."""

NODE_COLUMNS = (
    "node_id", "rank", "span", "kind", "name_id", "class", "step", "stage", "replica", "start_ns", "end_ns", "return_ns",
    "key_ns", "begin_ns", "collective_id", "lag_ns", "transfer_ns",
)  # fmt: skip


@dataclass(frozen=True)
class Replay:
    """The dependency graph of one run, with the values per node that scenarios need.

    Attributes:
        graph: Nodes and their dependencies.
        nodes: Columns of lib.replay_nodes and lib.replay_weights.
        values: Columns of lib.replay_values.
        names: name_id ─▶ name.
    """

    graph: Graph
    nodes: Columns
    values: Columns
    names: dict[int, str]

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.graph)


def read_replay(con: duckdb.DuckDBPyConnection, run: str, watch: Watch = UNWATCHED) -> Replay:
    """Compute the nodes, edges and durations of a run in SQL, and read the results.

    Args:
        con: Connection to a catalog in which temporary tables can be created.
        run: The run.
        watch: Limits of the computation.

    Raises:
        duckdb.Error: The engine failed, or the run has too many operations for the memory limit.
        ComputationStoppedError: The computation was interrupted, or exceeded its time limit.
    """
    try:
        for done, name in enumerate(READS):
            watch.report(f"replay of {run}: {name.lstrip('_')}", done, STAGES)
            con.execute(sqltext.create_table(name, select_of(name, run), "TEMPORARY"))
            if name == NODES:
                needed = NODE_BYTES * con.table(NODES).shape[0]
                watch.check_memory(f"the replay of run {run}", needed)
        watch.report(f"replay of {run}: reading", len(READS), STAGES)
        nodes = _sorted(con.table(NODES).select(*NODE_COLUMNS).fetchnumpy(), ["node_id"])
        weights = _sorted(_without(con.table(WEIGHTS), ["run"]).fetchnumpy(), ["node_id"])
        values = _sorted(_without(con.table(VALUES), ["run"]).fetchnumpy(), ["node_id"])
        edges = _without(con.table(EDGES), ["run"]).fetchnumpy()
        names = con.table(NODES).select("name_id", "name").distinct().fetchall()
    finally:
        for name in READS:
            con.execute(sqltext.drop_table(name))
    edges = _sorted(
        {name: column[edges["edge_type"] != "host"] for name, column in edges.items()},
        ["from_id", "node_id"],
    )
    return Replay(_graph(nodes, weights, edges), nodes | weights, values, dict(names))


def select_of(name: str, run: str) -> str:
    """Return the query of a macro of READS; the results that it reads must be in temporary tables."""
    given = {table.lstrip("_"): sqltext.literal(table) for table in READS[name]}
    return sqltext.call(f"lib.{name}", given or {"runs": sqltext.literal_list([run])})


def _without(table: duckdb.DuckDBPyRelation, names: Iterable[str]) -> duckdb.DuckDBPyRelation:
    return table.select(*[name for name in table.columns if name not in names])


def _sorted(columns: Columns, by: list[str]) -> Columns:
    order = np.lexsort([columns[name] for name in by])
    return {name: column[order] for name, column in columns.items()}


def _graph(nodes: Columns, weights: Columns, edges: Columns) -> Graph:
    is_operation = np.asarray(nodes["kind"] == "operation", bool)
    counts = np.bincount(edges["node_id"], minlength=len(is_operation))
    lines = nodes["rank"].astype(np.int64) << 20 | nodes["span"].astype(np.int64)
    _, firsts, line = np.unique(lines, return_index=True, return_inverse=True)
    begin = nodes["begin_ns"].astype(np.float64)
    start = nodes["start_ns"].astype(np.float64)
    return Graph(
        is_operation=is_operation,
        key=nodes["key_ns"].astype(np.float64),
        returned=filled(nodes["return_ns"], np.nan),
        line=line.astype(np.int64),
        host_place=np.maximum(filled(weights["host_place"], -1, np.int64), 0),
        awaited=filled(weights["awaited_id"], -1, np.int64),
        first=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        waits=edges["from_id"].astype(np.int64),
        after=filled(weights["after_ns"], np.nan),
        launch_gap=filled(weights["launch_gap_ns"]),
        early=np.minimum(0.0, start - begin),
        collective=_numbered(nodes["collective_id"]),
        begin=begin[firsts],
    )


def _numbered(ids: Any) -> Ints:
    """Number the collectives from 0; -1 for nodes without a collective."""
    known = filled(ids, -1, np.int64)
    numbers = np.full(len(known), -1, np.int64)
    is_member = known >= 0
    numbers[is_member] = np.unique(known[is_member], return_inverse=True)[1]
    return numbers


def filled(values: Any, missing: float = 0, kind: type[np.generic] = np.float64) -> Any:
    """Return a column as an array of a type, with a value for NULL."""
    return np.ma.filled(np.ma.asarray(values, kind), missing)
