"""Return the critical paths of several ranks as tables: bounds, edges and what-if results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from hta_sql.critical_path.graph import CPGraph


def summary_table(graphs: Iterable[CPGraph]) -> pa.Table:
    """Return the time of each path by bound, longest first.

    Returns:
        ``run, rank, bound_by`` (dependencies take no time), ``path_ns``, ``path_pct`` (share of the
        path's length; NULL if the length is 0) and ``edge_count``.
    """
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    rows = [row for graph in graphs for row in graph.path_parts()]
    schema = {"run": pa.string(), "rank": pa.int32(), "bound_by": pa.string()}
    schema |= {"path_ns": pa.int64(), "path_pct": pa.float64(), "edge_count": pa.int64()}
    return pa.Table.from_pylist(rows, pa.schema(schema))


def path_table(graphs: Iterable[CPGraph]) -> pa.Table:
    """Return the edges of each path in order: columns of ``critical_path_edges`` plus event names.

    Returns:
        ``run, rank, ts`` (of the first node), ``edge_type, weight_ns, bound_by, event_id``,
        ``name`` (of the event that the duration is attributed to), ``begin_event_id,
        end_event_id``.
    """
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    tables = [_named_path(graph) for graph in graphs]
    return pa.concat_tables(tables) if tables else pa.table({})


def what_if_table(
    graphs: Iterable[CPGraph], times_faster: float, name: str | None, kernel_class: str | None
) -> pa.Table:
    """Return the length of each path as recorded, and with some events made faster.

    Returns:
        ``run, rank, event_count`` (events that are faster), ``path_ns, new_path_ns, saved_ns,
        saved_pct`` (NULL if the length is 0).
    """
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    rows: list[dict[str, Any]] = []
    for graph in graphs:
        answer = graph.what_if(times_faster, name=name, kernel_class=kernel_class)
        rows.append(
            {
                "run": graph.run,
                "rank": graph.rank,
                "event_count": answer.events,
                "path_ns": answer.length_ns,
                "new_path_ns": answer.new_length_ns,
                "saved_ns": answer.saved_ns,
                "saved_pct": answer.saved_pct,
            }
        )
    schema = {"run": pa.string(), "rank": pa.int32(), "event_count": pa.int64()}
    schema |= dict.fromkeys(("path_ns", "new_path_ns", "saved_ns"), pa.int64())
    return pa.Table.from_pylist(rows, pa.schema(schema | {"saved_pct": pa.float64()}))


def _named_path(graph: CPGraph) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed

    path = graph.path_table()
    about = graph.events_table
    names = dict(
        zip(about.column("event_id").to_pylist(), about.column("name").to_pylist(), strict=True)
    )
    begins = pa.array(path.column("begin_node_id").to_pylist(), pa.int64())
    columns = {
        "run": path.column("run"),
        "rank": path.column("rank"),
        "ts": graph.nodes_table.column("ts").take(begins),
        "edge_type": path.column("edge_type"),
        "weight_ns": path.column("weight_ns"),
        "bound_by": path.column("bound_by"),
        "event_id": path.column("event_id"),
        "name": pa.array([names.get(e) for e in path.column("event_id").to_pylist()], pa.string()),
        "begin_event_id": path.column("begin_event_id"),
        "end_event_id": path.column("end_event_id"),
    }
    return pa.table(columns)
