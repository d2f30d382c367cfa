"""MindSpore Insight's raw cluster data: CSV and JSON summaries of each rank, without events."""

from __future__ import annotations

from hta_sql.ingestion.vendors.mindspore.discovery import (
    SUPPORTED,
    ClusterFile,
    cluster_file,
    is_unsupported,
    parts_of_rank,
)
from hta_sql.ingestion.vendors.mindspore.reading import CLUSTER_TABLES, stage_cluster_data

__all__ = [
    "CLUSTER_TABLES",
    "SUPPORTED",
    "ClusterFile",
    "cluster_file",
    "is_unsupported",
    "parts_of_rank",
    "stage_cluster_data",
]
