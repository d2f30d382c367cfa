"""Finds traces of CUDA or HIP graph captures, and assigns them to the traces with the replays."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from hta_sql.ingestion.listing import split_by_name
from hta_sql.ingestion.trace_file import TraceFile

CAPTURE_NAME = re.compile(r"(?:^|[^a-z])graph[-_]?captures?(?:[^a-z]|$)", re.IGNORECASE)
"""File names of graph captures, such as vLLM's graph_capture_rank_0.….pt.trace.json.gz."""


def split_captures(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Separate graph captures from other files by name.

    Returns:
        The paths of the other files, and the paths of the graph captures.
    """
    return split_by_name(paths, CAPTURE_NAME)


def with_captures(files: list[TraceFile], captures: list[TraceFile]) -> list[TraceFile]:
    """Assign to each trace the graph captures of its rank, or of the lowest rank that has captures.

    Ranks of one job capture the same graphs, so the captures of one rank are valid for all of them.
    """
    if not captures:
        return files
    by_rank: dict[str | None, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for capture in captures:
        by_rank[capture.role][capture.rank].append(capture.path)
    # Captures without a role apply to all roles.
    every = by_rank.get(None) or by_rank[captures[0].role]
    return [
        replace(file, captures=_of_rank(by_rank.get(file.role, every), file.rank - file.first_rank))
        for file in files
    ]


def _of_rank(captures: dict[int, list[str]], rank: int) -> tuple[str, ...]:
    return tuple(captures[rank] if rank in captures else captures[min(captures)])
