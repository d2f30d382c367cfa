"""Find the critical path of a rank: the longest dependency chain across host and device.

The nodes and edges come from the SQL analyses ``critical_path_nodes`` and ``critical_path_edges``;
this package finds the longest path through them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hta_sql.critical_path.edges import CPEdge, CPEdgeType
from hta_sql.critical_path.graph import CPGraph, CPNode, WhatIf, restore_cpgraph
from hta_sql.critical_path.windows import count_windows
from hta_sql.errors import ParameterError
from hta_sql.library.parameters import check_parameters
from hta_sql.library.sql_files import query_sql

if TYPE_CHECKING:
    import pyarrow as pa

    from hta_sql.store.query.trace_store import TraceStore

__all__ = [
    "CPEdge",
    "CPEdgeType",
    "CPGraph",
    "CPNode",
    "WhatIf",
    "critical_path",
    "critical_paths",
    "restore_cpgraph",
]

NAMES = {"ts": "node_ts", "event_ts": "ts"}
"""Columns of the analysis that have a different name in the macro."""

GRAPH_PARAMETERS = {"include_launch_edges", "infer_syncs"}
"""Parameters that affect the edges but not the nodes."""


def critical_path(
    store: TraceStore, rank: int, run: str | None = None, **parameters: Any
) -> CPGraph | None:
    """Find the critical path of a rank.

    Args:
        store: An open store.
        rank: Rank to analyze.
        run: Run of the rank; default: the first run of the store.
        **parameters: Parameters of the analysis ``critical_path_edges``: ``annotation``,
            ``first_instance``, ``last_instance``, ``steps``, ``include_last_profiler_step``,
            ``data_load_names``, ``include_launch_edges``, ``infer_syncs``.

    Returns:
        The graph with its critical path. ``critical_path_nodes`` is empty if no operator starts in
        the window. None if no host event in the scope has the requested name.

    Raises:
        RankError: The run or the rank does not exist.
        ParameterError: A parameter is unknown, or the instance does not exist.
    """
    wanted = run if run is not None else store.runs()[0]
    scope = {"runs": [wanted], "ranks": [rank], **parameters}
    wanted_kinds = {k: scope[k] for k in GRAPH_PARAMETERS & scope.keys()}
    window = {k: v for k, v in scope.items() if k not in wanted_kinds}
    nodes = _nodes_of(store, window)
    if not len(nodes) and (annotation := parameters.get("annotation")):
        kept = {k: v for k, v in window.items() if k in {"steps", "include_last_profiler_step"}}
        windows = count_windows(store, wanted, rank, annotation, **kept)
        if not windows.in_scope:
            return None
        if (first := parameters.get("first_instance", 0)) >= windows.in_scope:
            raise ParameterError(f"There is no instance {first}. {windows}")
    edges = _edges_between(store, nodes, wanted, rank, wanted_kinds)
    ids = edges.column("event_id").unique().drop_null().to_pylist()
    events = store.sql(
        query_sql("critical_path", "events"), {"run": wanted, "rank": rank, "ids": ids}
    ).arrow()
    graph = CPGraph(nodes, edges, events, run=wanted, rank=rank)
    graph.critical_path()
    return graph


def _edges_between(
    store: TraceStore, nodes: pa.Table, run: str, rank: int, kinds: Mapping[str, Any]
) -> pa.Table:
    """Return the rows of ``critical_path_edges``; reusing the nodes halves the run time."""
    chosen = {"runs": [run], "ranks": [rank], **_values(store, "critical_path_edges", kinds)}
    scope = {name: chosen[name] for name in ("runs", "ranks", *GRAPH_PARAMETERS)}
    renamed = nodes.rename_columns([NAMES.get(name, name) for name in nodes.column_names])
    return store.run_over(
        "critical_path_edges_v1",
        query_sql("critical_path", "edges"),
        {"path_nodes": renamed},
        scope,
    ).arrow()


def _nodes_of(store: TraceStore, window: Mapping[str, Any]) -> pa.Table:
    """Return the rows of ``critical_path_nodes`` for a window of one rank."""
    values = _values(store, "critical_path_nodes", window)
    store.check_scope(values)
    found = store.run_over(
        "critical_path_nodes_v1", query_sql("critical_path", "nodes"), {}, values
    ).arrow()
    columns = [column.name for column in store.describe("critical_path_nodes").columns]
    return found.select([NAMES.get(name, name) for name in columns]).rename_columns(columns)


def _values(store: TraceStore, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the given parameters of an analysis and fill in the defaults."""
    analysis = store.describe(name)
    words: dict[str | None, Any] = {"NULL": None, "true": True, "false": False}
    defaults = {
        p.name: words[p.default] if p.default in words else json.loads(str(p.default))
        for p in analysis.parameters
    }
    return {**defaults, **check_parameters(analysis, given)}


def critical_paths(
    store: TraceStore,
    runs: Iterable[str] | None = None,
    ranks: Iterable[int] | None = None,
    **parameters: Any,
) -> Iterator[CPGraph]:
    """Yield the graph of each rank that has the requested window, one at a time.

    Args:
        store: An open store.
        runs: Runs to analyze; default: all.
        ranks: Ranks to analyze; default: all.
        **parameters: Parameters of :func:`hta_sql.critical_path.critical_path`.
    """
    of_ranks = None if ranks is None else set(ranks)
    for run in store.runs() if runs is None else runs:
        for rank in store.ranks(run):
            if of_ranks is None or rank in of_ranks:
                graph = critical_path(store, rank, run, **parameters)
                if graph is not None:
                    yield graph
