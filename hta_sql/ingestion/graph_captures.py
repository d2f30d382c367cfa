"""Which files are traces of the capture of CUDA or HIP graphs, and which ranks replay these graphs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from hta_sql.ingestion.listing import split_by_name
from hta_sql.ingestion.trace_file import TraceFile

CAPTURE_NAME = re.compile(r"(?:^|[^a-z])graph[-_]?captures?(?:[^a-z]|$)", re.IGNORECASE)
"""How captures are named: graph_capture_rank_0.….pt.trace.json.gz of vLLM."""


def split_captures(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Separate the paths of captures of graphs from the others by name.

    Returns:
        The other paths, and those of the captures.
    """
    return split_by_name(paths, CAPTURE_NAME)


def with_captures(files: list[TraceFile], captures: list[TraceFile]) -> list[TraceFile]:
    """Give each trace the captures of its rank, or those of the first rank if its own has none.

    Ranks of one job capture the same graphs, so that one capture serves all of them.
    """
    if not captures:
        return files
    by_rank: dict[str | None, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for capture in captures:
        by_rank[capture.role][capture.rank].append(capture.path)
    # Captures without a role serve all roles.
    every = by_rank.get(None) or by_rank[captures[0].role]
    return [
        replace(file, captures=_of_rank(by_rank.get(file.role, every), file.rank - file.first_rank))
        for file in files
    ]


def _of_rank(captures: dict[int, list[str]], rank: int) -> tuple[str, ...]:
    return tuple(captures[rank] if rank in captures else captures[min(captures)])
