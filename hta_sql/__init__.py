"""hta_sql: PyTorch Profiler traces as Parquet tables, analyses as versioned SQL."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hta_sql._version import __version__
from hta_sql.api import ingest, ingest_shard, publish
from hta_sql.api import open_store as open  # noqa: A004 - hta_sql.open(), like gzip.open()
from hta_sql.errors import (
    AnalysisError,
    AnalysisNotFoundError,
    ExtraNotInstalledError,
    HtaSqlError,
    LibraryError,
    ParameterError,
    QueryError,
    RankError,
    StoreDamagedError,
    StoreError,
    StoreNotFoundError,
    StoreVersionError,
    TraceError,
    TraceFormatError,
    TraceNotFoundError,
)
from hta_sql.results import drawing
from hta_sql.store.query.namespaces import register_command

if TYPE_CHECKING:
    import os
    from pathlib import Path

    import altair as alt

    from hta_sql import torch as torch
    from hta_sql.charts import Drawable
    from hta_sql.exports.exports import Exported
    from hta_sql.hta.trace_analysis import TraceAnalysis
    from hta_sql.hta.trace_diff import LabeledTrace, TraceDiff
    from hta_sql.store.catalog.run_tags import tag_runs
    from hta_sql.store.maintenance.edits import remove_runs, rename_run
    from hta_sql.store.maintenance.retention import retain_runs
    from hta_sql.store.query.trace_store import TraceStore

__all__ = [
    "AnalysisError",
    "AnalysisNotFoundError",
    "ExtraNotInstalledError",
    "HtaSqlError",
    "LabeledTrace",
    "LibraryError",
    "ParameterError",
    "QueryError",
    "RankError",
    "StoreDamagedError",
    "StoreError",
    "StoreNotFoundError",
    "StoreVersionError",
    "TraceAnalysis",
    "TraceDiff",
    "TraceError",
    "TraceFormatError",
    "TraceNotFoundError",
    "TraceStore",
    "__version__",
    "ingest",
    "ingest_shard",
    "open",
    "publish",
    "remove_runs",
    "rename_run",
    "retain_runs",
    "tag_runs",
]


_MODULES = {
    "TraceStore": "hta_sql.store.query.trace_store",
    "TraceAnalysis": "hta_sql.hta.trace_analysis",
    "LabeledTrace": "hta_sql.hta.trace_diff",
    "TraceDiff": "hta_sql.hta.trace_diff",
    "tag_runs": "hta_sql.store.catalog.run_tags",
    "rename_run": "hta_sql.store.maintenance.edits",
    "remove_runs": "hta_sql.store.maintenance.edits",
    "retain_runs": "hta_sql.store.maintenance.retention",
}
"""Modules that are imported on first use, because their imports (duckdb, pandas) are slow."""


def _draw(result: Drawable, **options: Any) -> alt.TopLevelMixin:
    """Import charts (and altair) on the first call, and draw a result."""
    from hta_sql.charts import draw  # noqa: PLC0415

    return draw(result, **options)


drawing.register(_draw)


def _report(store: TraceStore, path: str | os.PathLike[str], **options: Any) -> Path:
    """Write a report of a store; see :func:`hta_sql.report.write_report`."""
    from hta_sql.report import write_report  # noqa: PLC0415

    return write_report(store, path, **options)


def _export(store: TraceStore, target: str | os.PathLike[str], format_name: str) -> list[Exported]:
    """Export a store to files; see :func:`hta_sql.exports.exports.export`."""
    from hta_sql.exports.exports import export  # noqa: PLC0415

    return export(store, target, format_name)


def _display(store: TraceStore) -> str:
    """Return what a notebook displays; see :func:`hta_sql.report.notebook.store_markup`."""
    from hta_sql.report.notebook import store_markup  # noqa: PLC0415

    return store_markup(store)


register_command("_repr_html_", _display)
register_command("report", _report)
register_command("export", _export)


def __getattr__(name: str) -> Any:
    if name == "torch":
        return import_module("hta_sql.torch")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
