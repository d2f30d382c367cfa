"""Critical path graph of a rank, with the methods of HTA's CPGraph."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hta_sql.critical_path.edges import CPEdge, CPEdgeType, EdgeView, integers
from hta_sql.critical_path.longest import IntArray, longest_path
from hta_sql.critical_path.saved import TABLES, read_graph, write_graph
from hta_sql.errors import ExtraNotInstalledError, ParameterError
from hta_sql.library.names import short_names
from hta_sql.text import NS

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd
    import pyarrow as pa

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CPNode:
    """The start or the end of an event.

    Attributes:
        idx: Number of the node; edges lead from lower to higher numbers.
        ev_idx: Event of the node: its index in ``traceEvents``.
        ts: Time since the first event of the run [µs].
        is_start: True for the start of the event, False for its end.
        is_blocking: The event is a call that waits for the device.
    """

    idx: int = -1
    ev_idx: int = -1
    ts: float = 0
    is_start: bool = False
    is_blocking: bool = False


@dataclass(frozen=True)
class WhatIf:
    """Length of a path if some events took less time.

    Attributes:
        length_ns: Length as recorded [ns].
        new_length_ns: Length of the longest path with the shortened events [ns].
        events: Number of shortened events.
    """

    length_ns: int
    new_length_ns: int
    events: int

    @property
    def saved_ns(self) -> int:
        """Time saved [ns]."""
        return self.length_ns - self.new_length_ns

    @property
    def saved_pct(self) -> float | None:
        """Share of the length that is saved [%]; None if the length is 0."""
        return 100 * self.saved_ns / self.length_ns if self.length_ns else None


class CPGraph:
    """Nodes and edges of one rank, and the longest path through them.

    Created by :func:`hta_sql.critical_path.critical_path`. HTA's class is a networkx graph; this
    one offers its ``nodes``, ``edges`` and counts, and :meth:`to_networkx`.

    Args:
        nodes: Rows of the analysis ``critical_path_nodes`` for one rank.
        edges: Rows of the analysis ``critical_path_edges`` for the same rank.
        events: event_id, name, category, pid, tid and stream of every event that time is attributed
            to.
        run: Run of the graph.
        rank: Rank of the graph.

    Attributes:
        critical_path_nodes: Node numbers along the path; empty before :meth:`critical_path` runs.
        critical_path_length_ns: Length of the path [ns].
    """

    def __init__(
        self, nodes: pa.Table, edges: pa.Table, events: pa.Table, *, run: str, rank: int
    ) -> None:
        self.run, self.rank = run, rank
        self.nodes_table, self.edges_table, self.events_table = nodes, edges, events
        self._event_of_node = integers(nodes, "event_id")
        self.edges = EdgeView(edges)
        self.critical_path_nodes: list[int] = []
        self.critical_path_length_ns = 0
        self._path: IntArray = np.empty(0, np.int64)

    @property
    def nodes(self) -> range:
        """Numbers of the nodes."""
        return range(self.nodes_table.num_rows)

    def number_of_nodes(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)

    def number_of_edges(self) -> int:
        """Return the number of edges."""
        return len(self.edges)

    @cached_property
    def node_list(self) -> list[CPNode]:
        """All nodes, ordered by number."""
        table = self.nodes_table
        columns = [
            table.column(c).to_pylist() for c in ("event_id", "ts", "is_start", "is_blocking")
        ]
        return [
            CPNode(at, event, ts / NS, is_start, is_blocking)
            for at, (event, ts, is_start, is_blocking) in enumerate(zip(*columns, strict=True))
        ]

    @cached_property
    def _nodes_of_event(self) -> dict[int, tuple[int, int]]:
        starts: dict[int, int] = {}
        ends: dict[int, int] = {}
        is_start = self.nodes_table.column("is_start").to_pylist()
        for node, (event, start) in enumerate(
            zip(self._event_of_node.tolist(), is_start, strict=True)
        ):
            (starts if start else ends)[event] = node
        return {event: (node, ends[event]) for event, node in starts.items()}

    def get_nodes_for_event(self, ev_id: int) -> tuple[CPNode | None, CPNode | None]:
        """Return the start and end node of an event, or two Nones if the graph lacks the event."""
        found = self._nodes_of_event.get(ev_id)
        return (self.node_list[found[0]], self.node_list[found[1]]) if found else (None, None)

    def place(self, node: int) -> tuple[int, int, bool]:
        """Return the time [ns] of a node, its event, and whether it is a start."""
        ts = self.nodes_table.column("ts")[node].as_py()
        is_start = self.nodes_table.column("is_start")[node].as_py()
        return ts, int(self._event_of_node[node]), is_start

    def device_of(self, node: int) -> int | None:
        """Return the device of a node, or None for a host node."""
        device: int | None = self.nodes_table.column("device")[node].as_py()
        return device

    def start_of(self, event: int) -> int:
        """Return the start node of an event in the graph."""
        return self._nodes_of_event[event][0]

    def get_events_for_edge(self, edge: CPEdge) -> tuple[int, int]:
        """Return the events of the first and the second node of an edge."""
        return int(self._event_of_node[edge.begin]), int(self._event_of_node[edge.end])

    def get_event_attribution_for_edge(self, edge: CPEdge) -> int | None:
        """Return the event that the duration of an edge is attributed to.

        None for launch delays and dependencies.
        """
        return self.edges.event_of(edge.begin, edge.end)

    def get_edges_attributed_to_event(self, ev_idx: int) -> list[CPEdge]:
        """Return the edges whose duration is attributed to an event."""
        return [self.edges.edge(at) for at in np.flatnonzero(self.edges.events == ev_idx).tolist()]

    def critical_path(self) -> bool:
        """Find the longest path, using the current weights of ``edges``.

        Returns:
            Whether a path exists. A window without host operators and calls has none.
        """
        edges = self.edges
        self._path, self.critical_path_length_ns = longest_path(
            edges.begins, edges.ends, edges.weights, len(self.nodes)
        )
        ends = edges.ends[self._path].tolist()
        self.critical_path_nodes = [int(edges.begins[self._path[0]]), *ends] if ends else []
        return bool(ends)

    @property
    def critical_path_events_set(self) -> set[int]:
        """Events with a node on the path."""
        return set(self._event_of_node[self.critical_path_nodes].tolist())

    @property
    def critical_path_edges_set(self) -> set[CPEdge]:
        """Edges of the path, as a set."""
        return set(self.critical_path_edges)

    @property
    def critical_path_edges(self) -> list[CPEdge]:
        """Edges of the path, in order."""
        return [self.edges.edge(at) for at in self._path.tolist()]

    def path_table(self) -> pa.Table:
        """Return the rows of ``edges_table`` along the path, in order, with the current weights."""
        import pyarrow as pa  # noqa: PLC0415 - imported only when needed

        rows = self.edges_table.take(pa.array(self._path.tolist(), pa.int64()))
        weights = pa.array(self.edges.weights[self._path].tolist(), pa.int64())
        return rows.set_column(rows.schema.get_field_index("weight_ns"), "weight_ns", weights)

    def get_critical_path_breakdown(self) -> pd.DataFrame | None:
        """Return one row per edge of the path, in order.

        Returns:
            ``event_idx, duration, type, s_name, cat, pid, tid, stream, index, bound_by``. The event
            columns describe the event that the duration is attributed to (NaN for launch delays and
            dependencies). ``s_name`` is shortened like in HTA; ``duration`` is in µs. None if no
            path has been computed.
        """
        if not len(self._path):
            return None
        path = self.path_table().to_pandas()
        events = self.events_table.to_pandas().set_index("event_id")
        what = events.reindex(path["event_id"].fillna(-1).astype("int64")).reset_index(drop=True)
        event_id = path["event_id"].astype(float)
        breakdown = what.rename(columns={"name": "s_name", "category": "cat"})
        short = short_names(events["name"].unique())
        breakdown["s_name"] = breakdown["s_name"].map(short)
        breakdown.insert(0, "event_idx", event_id)
        breakdown.insert(1, "duration", path["weight_ns"] / NS)
        breakdown.insert(2, "type", [CPEdgeType.of(kind).value for kind in path["edge_type"]])
        breakdown["index"] = event_id
        breakdown["bound_by"] = path["bound_by"].fillna("")
        frame: pd.DataFrame = breakdown
        return frame

    def summary(self) -> pd.Series:
        """Return the share of the path's length by bound [%], indexed by ``bound_by``."""
        breakdown = self.get_critical_path_breakdown()
        if breakdown is None:
            raise ParameterError("There is no critical path yet: call critical_path() first.")
        by_bound = breakdown.groupby("bound_by")["duration"].sum()
        shares: pd.Series = by_bound / by_bound.sum() * 100
        return shares

    def show_critical_path(self) -> None:
        """Log the nodes of the path, one per line."""
        names = self.nodes_table.column("name")
        for node in self.critical_path_nodes:
            log.info("Critical %s, ev_name = %s", self.node_list[node], names[node].as_py())

    def what_if(
        self, times_faster: float, *, name: str | None = None, kernel_class: str | None = None
    ) -> WhatIf:
        """Return the length of the path before and after some events are made faster.

        The factor applies to the self time of events: the whole duration of a device operation, and
        the time of a host operator outside of nested events. Delays are unchanged. With
        ``include_launch_edges``, no kernel starts before its launch. Without it, the saving is
        overestimated if kernels wait for the host.

        Args:
            times_faster: 2 halves the times; rounded to whole ns.
            name: Substring of the names of the events.
            kernel_class: ``computation``, ``communication`` or ``memory``; selects device
                operations only.

        Raises:
            ParameterError: The factor is not positive, or neither a name nor a class is given.
        """
        if not times_faster > 0 or (name is None and kernel_class is None):
            raise ParameterError(
                "what_if needs a positive factor, and a part of an event name, a kernel class, or both; got "
                f"{times_faster!r}, name={name!r}, kernel_class={kernel_class!r}."
            )
        chosen = self._events_like(name, kernel_class)
        edges = self.edges
        is_faster = np.isin(edges.events, chosen) & (edges.types == CPEdgeType.OPERATOR_KERNEL.code)
        shorter = np.array(
            [round(w / times_faster) for w in edges.weights[is_faster].tolist()], np.int64
        )
        weights = edges.weights.copy()
        weights[is_faster] = shorter
        _, before = longest_path(edges.begins, edges.ends, edges.weights, len(self.nodes))
        _, after = longest_path(edges.begins, edges.ends, weights, len(self.nodes))
        return WhatIf(before, after, len(np.unique(edges.events[is_faster])))

    def _events_like(self, name: str | None, kernel_class: str | None) -> IntArray:
        import pyarrow.compute as pc  # noqa: PLC0415 - imported only when needed

        table = self.nodes_table
        if name is not None:
            table = table.filter(pc.match_substring(table.column("name"), name))
        if kernel_class is not None:
            table = table.filter(pc.equal(table.column("class"), kernel_class))
        return integers(table, "event_id")

    def save(self, out_dir: str | os.PathLike[str]) -> str:
        """Write the graph to ``<out_dir>.zip`` and return that path; see ``restore_cpgraph``."""
        target = f"{os.fspath(out_dir).rstrip('/')}.zip"
        about = {
            "run": self.run,
            "rank": self.rank,
            "has_path": bool(self.critical_path_nodes),
            "weights": self.edges.weights.tolist(),
        }
        tables = (self.nodes_table, self.edges_table, self.events_table)
        write_graph(Path(target), dict(zip(TABLES, tables, strict=True)), about)
        return target

    def path_parts(self) -> list[dict[str, Any]]:
        """Sum the time of the path by bound, longest first.

        Returns:
            ``run, rank, bound_by`` (dependencies take no time), ``path_ns``, ``path_pct`` (share of
            the path's length; None if the length is 0) and ``edge_count`` of each bound.
        """
        path = self.path_table()
        parts: dict[str, list[int]] = {}
        for bound, weight in zip(
            path.column("bound_by").to_pylist(), path.column("weight_ns").to_pylist(), strict=True
        ):
            parts.setdefault(bound or "dependencies", []).append(weight)
        length = self.critical_path_length_ns
        return [
            {
                "run": self.run,
                "rank": self.rank,
                "bound_by": bound,
                "path_ns": sum(weights),
                "path_pct": 100 * sum(weights) / length if length else None,
                "edge_count": len(weights),
            }
            for bound, weights in sorted(parts.items(), key=lambda part: (-sum(part[1]), part[0]))
        ]

    def chart(self) -> alt.TopLevelMixin:
        """Draw the time of the path by bound."""
        import pandas as pd  # noqa: PLC0415 - imported only when needed

        from hta_sql.charts.path import critical_path_summary  # noqa: PLC0415

        return critical_path_summary(pd.DataFrame(self.path_parts()))

    def to_networkx(self) -> Any:
        """Return a ``networkx.DiGraph`` whose edges have ``weight`` [ns] and ``object``.

        Raises:
            ExtraNotInstalledError: networkx is not installed.
        """
        try:
            import networkx as nx  # type: ignore[import-untyped,import-not-found,unused-ignore]  # noqa: PLC0415
        except ImportError as error:
            raise ExtraNotInstalledError(
                "networkx is not installed: pip install networkx"
            ) from error
        graph = nx.DiGraph()
        graph.add_nodes_from(self.nodes)
        for at in range(len(self.edges)):
            edge = self.edges.edge(at)
            graph.add_edge(edge.begin, edge.end, weight=edge.weight_ns, object=edge)
        return graph

    def __repr__(self) -> str:
        return (
            f"CPGraph(run={self.run!r}, rank={self.rank}, {len(self.nodes)} nodes, "
            f"{len(self.edges)} edges, critical path of {self.critical_path_length_ns / NS} µs)"
        )


def restore_cpgraph(
    zip_filename: str | os.PathLike[str],
    t_full: object = None,  # noqa: ARG001 - HTA's parameter; the file contains everything needed
    rank: int | None = None,  # noqa: ARG001 - HTA's parameter
) -> CPGraph:
    """Read a graph that :meth:`CPGraph.save` wrote.

    Args:
        zip_filename: Path of the file.
        t_full: Not used.
        rank: Not used.

    Raises:
        StoreError: The file is not a saved graph.
    """
    tables, about = read_graph(zip_filename)
    graph = CPGraph(**tables, run=about["run"], rank=about["rank"])
    graph.edges.weights[:] = about["weights"]
    if about["has_path"]:
        graph.critical_path()
    return graph
