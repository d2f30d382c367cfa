"""Warns about traces that contradict each other, or rejects them, before they are ingested."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hta_sql.errors import RankError
from hta_sql.ingestion.captures import distinct_names
from hta_sql.text import first_of, missing_rank_spans

if TYPE_CHECKING:
    from hta_sql.ingestion.rank_job import RankResult
    from hta_sql.ingestion.trace_file import TraceFile

log = logging.getLogger(__name__)

NAMES = 3
"""Maximum number of file names in a warning."""


def warn_of_mixed_jobs(found: Sequence[TraceFile], *, all_wanted: bool) -> None:
    """Log contradictions between the traces of each capture.

    Roles that number their ranks separately are checked separately.

    Args:
        found: The traces; those without stated facts are ignored.
        all_wanted: Whether all ranks were requested, so that missing ranks matter.

    Raises:
        RankError: A rank is not below the world size that the traces of its capture state.
    """
    worlds: dict[tuple[int, int], list[TraceFile]] = defaultdict(list)
    for file in found:
        worlds[file.capture, file.first_rank].append(file)
    for files in worlds.values():
        if len(files) < 2:
            continue
        _warn_of_values(
            files, "world sizes", [file.stated and file.stated.world_size for file in files]
        )
        _warn_of_values(files, "backends", [file.stated and file.stated.backend for file in files])
        _check_ranks(files, all_wanted=all_wanted)
    _warn_of_copies(found)


def _warn_of_values(files: Sequence[TraceFile], what: str, values: Sequence[object]) -> None:
    by_value: dict[object, list[TraceFile]] = defaultdict(list)
    for file, value in zip(files, values, strict=True):
        if value is not None:
            by_value[value].append(file)
    if len(by_value) > 1:
        parts = "; ".join(
            f"{value}: {_names(file.path for file in of)}" for value, of in by_value.items()
        )
        log.warning(
            "The traces have different %s, so they may come from several jobs: %s.", what, parts
        )


def warn_of_mixed_clocks(results: Sequence[RankResult]) -> None:
    """Log the traces without a base time, if other traces of the same run have one.

    This is known only after a trace was read completely, because the key may be at its end.
    """
    runs: dict[str, list[RankResult]] = defaultdict(list)
    for result in results:
        if result.event_count:
            runs[result.job.run].append(result)
    for run, read in runs.items():
        without = [result for result in read if not result.has_base_time]
        if without and len(without) < len(read):
            log.warning(
                "Only some traces of run %s have baseTimeNanoseconds; their times cannot be "
                "compared with those of the other traces. Without baseTimeNanoseconds: %s.",
                run,
                _names(result.job.path for result in without),
            )


def _check_ranks(files: Sequence[TraceFile], *, all_wanted: bool) -> None:
    sizes = [file.stated.world_size for file in files if file.stated and file.stated.world_size]
    if not sizes:
        return
    first = files[0].first_rank
    size, ranks = max(sizes), {file.rank - first for file in files}
    beyond = [file for file in files if file.rank - first >= size]
    # A rank given explicitly for a file overrides what the trace states.
    refused = [file for file in beyond if file.rank_source != "given"]
    if refused:
        numbers = ", ".join(map(str, sorted({file.rank - first for file in refused})[:NAMES]))
        raise RankError(
            f"The job has a world size of {size}, so it has no rank {numbers}: "
            f"{_names(file.path for file in refused)}. Ingest the traces of each job separately, "
            "or pass the correct ranks as {rank: path}."
        )
    if beyond:
        log.warning(
            "Ranks beyond the world size of %d: %s. They may belong to another job.",
            size,
            _names(file.path for file in beyond),
        )
    missing = missing_rank_spans(ranks, size)
    if missing and all_wanted:
        role = files[0].role if first else None
        whole = f"Role {role} has" if role else "The job has"
        log.warning("%s %d ranks; the traces of these ranks are missing: %s.", whole, size, missing)


def _warn_of_copies(found: Sequence[TraceFile]) -> None:
    by_id: dict[str, list[TraceFile]] = defaultdict(list)
    for file in found:
        if file.stated and file.stated.trace_id:
            by_id[file.stated.trace_id].append(file)
    for files in by_id.values():
        if len(files) > 1:
            log.warning(
                "These files have the same trace_id, so they are copies of each other: %s.",
                _names(file.path for file in files),
            )


def _names(paths: Iterable[str]) -> str:
    return first_of(distinct_names(list(paths)), NAMES)
