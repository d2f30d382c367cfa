"""HTA's functions on trace files."""

from __future__ import annotations

from hta_sql.trace_files import (
    create_rank_to_trace_dict,
    create_rank_to_trace_dict_from_dir,
    get_trace_files,
    read_trace,
    update_trace_rank,
    write_trace,
)

__all__ = [
    "create_rank_to_trace_dict",
    "create_rank_to_trace_dict_from_dir",
    "get_trace_files",
    "read_trace",
    "update_trace_rank",
    "write_trace",
]
