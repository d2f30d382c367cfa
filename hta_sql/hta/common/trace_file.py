"""HTA's functions on trace files: which rank each of them is, read, written, given another rank."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from hta_sql.errors import TraceError
from hta_sql.ingestion.discover import discover
from hta_sql.traces.whole_files import read_trace, update_trace_rank, write_trace

__all__ = [
    "create_rank_to_trace_dict",
    "create_rank_to_trace_dict_from_dir",
    "get_trace_files",
    "read_trace",
    "update_trace_rank",
    "write_trace",
]

log = logging.getLogger(__name__)


def create_rank_to_trace_dict(file_list: Iterable[str]) -> tuple[bool, dict[int, str]]:
    """Find the rank of each trace; of several captures of a rank, the first in time.

    Returns:
        Whether there is a trace, and ``{rank: path}``.
    """
    try:
        found = discover(list(file_list))
    except TraceError as error:
        log.warning("%s", error)
        return False, {}
    return True, {file.rank: file.path for file in reversed(found)}


def create_rank_to_trace_dict_from_dir(trace_dir: str) -> tuple[bool, dict[int, str]]:
    """Find the traces in a folder and their ranks."""
    return create_rank_to_trace_dict([trace_dir])


def get_trace_files(trace_path: str) -> dict[int, str]:
    """Return ``{rank: path}`` of the traces in a folder; empty where there are none."""
    return dict(sorted(create_rank_to_trace_dict_from_dir(trace_path)[1].items()))
