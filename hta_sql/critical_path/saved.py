"""Save critical path graphs as a zip of Parquet tables, readable by any Python version."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hta_sql.errors import StoreError
from hta_sql.traces.writing import replacing

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = ("nodes", "edges", "events")
_ABOUT = "graph.json"


def write_graph(target: Path, tables: Mapping[str, pa.Table], about: Mapping[str, Any]) -> None:
    """Write the tables of a graph and its metadata."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - imported only when needed

    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        replacing(target) as partial,
        zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        archive.writestr(_ABOUT, json.dumps(about))
        for name in TABLES:
            buffer = io.BytesIO()
            pq.write_table(tables[name], buffer)
            archive.writestr(f"{name}.parquet", buffer.getvalue())


def read_graph(source: str | os.PathLike[str]) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    """Read a file that :func:`write_graph` wrote.

    Raises:
        StoreError: The file is not a saved graph.
    """
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with zipfile.ZipFile(source) as archive:
            about: dict[str, Any] = json.loads(archive.read(_ABOUT))
            tables = {
                name: pq.read_table(io.BytesIO(archive.read(f"{name}.parquet"))) for name in TABLES
            }
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, pa.ArrowException) as error:
        raise StoreError(
            f"{os.fspath(source)!r} is not a saved critical path: {error}. Save it again."
        ) from error
    return tables, about
