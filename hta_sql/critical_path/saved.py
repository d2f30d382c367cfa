"""Graphs kept in a file: a zip of Parquet tables, which any version of Python reads."""

from __future__ import annotations

import io
import json
import os
import zipfile
from typing import TYPE_CHECKING, Any

from hta_sql.critical_path.graph import CPGraph
from hta_sql.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa

_TABLES = ("nodes", "edges", "events")
_ABOUT = "graph.json"


def save(graph: CPGraph, out_dir: str | os.PathLike[str]) -> str:
    """Write a graph, its path included, to ``<out_dir>.zip`` and return that path."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only where used

    target = f"{os.fspath(out_dir).rstrip('/')}.zip"
    partial = f"{target}.{os.getpid()}.tmp"
    tables = {
        "nodes": graph.nodes_table,
        "edges": graph.edges_table,
        "events": graph.events_table,
    }
    about = {
        "run": graph.run,
        "rank": graph.rank,
        "has_path": bool(graph.critical_path_nodes),
        "weights": graph.edges.weights.tolist(),
    }
    os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)  # noqa: PTH100, PTH103, PTH120
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_ABOUT, json.dumps(about))
        for name, table in tables.items():
            buffer = io.BytesIO()
            pq.write_table(table, buffer)
            archive.writestr(f"{name}.parquet", buffer.getvalue())
    os.replace(partial, target)  # noqa: PTH105
    return target


def restore_cpgraph(
    zip_filename: str | os.PathLike[str],
    t_full: object = None,  # noqa: ARG001 - HTA's parameter; the file holds what is needed
    rank: int | None = None,  # noqa: ARG001 - likewise
) -> CPGraph:
    """Read a graph that :meth:`CPGraph.save` wrote.

    Args:
        zip_filename: The file.
        t_full: Not used.
        rank: Not used.

    Raises:
        StoreError: It is not such a file.
    """
    import pyarrow as pa  # noqa: PLC0415 - only where used
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with zipfile.ZipFile(zip_filename) as archive:
            about: dict[str, Any] = json.loads(archive.read(_ABOUT))
            tables: dict[str, pa.Table] = {
                name: pq.read_table(io.BytesIO(archive.read(f"{name}.parquet"))) for name in _TABLES
            }
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, pa.ArrowException) as error:
        raise StoreError(
            f"{os.fspath(zip_filename)!r} is not a saved critical path: {error}. Save it again."
        ) from error
    graph = CPGraph(**tables, run=about["run"], rank=about["rank"])
    graph.edges.weights[:] = about["weights"]
    if about["has_path"]:
        graph.critical_path()
    return graph
