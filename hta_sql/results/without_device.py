"""Explains why an analysis of device activity has no rows for a job whose traces have none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hta_sql.library.objects import SqlObject

if TYPE_CHECKING:
    from hta_sql.results.result import Result

NO_DEVICE = (
    "No device activity was recorded. To record it: "
    "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]."
)

NO_TRACE = (
    "No rank has a trace with events. For Flight Recorder dumps: hta-sql hang; for memory snapshots: "
    "snapshot_peak."
)

_OTHER_FILES = re.compile(r"dump|snapshot|execution trace|MindSpore", re.IGNORECASE)

_NEED = re.compile(r"GPU activity(?!,? or )")


def without_device(
    run: Callable[..., Result], analysis: SqlObject | None, given: Mapping[str, Any]
) -> str:
    """Return why the traces give an analysis no rows: none has a device, or there is no trace.

    Args:
        run: ``TraceStore.run`` of the store.
        analysis: The analysis without rows; None for a query.
        given: Its parameters.

    Returns:
        The sentence; empty if the result is empty for another reason.
    """
    if analysis is None:
        return ""
    scope = {key: given[key] for key in ("runs", "ranks", "roles") if key in given}
    health = run("rank_health", **scope).records()
    reads_traces = not _OTHER_FILES.search(analysis.facts.get("Needs", ""))
    if reads_traces and health and not any(row["event_count"] for row in health):
        return NO_TRACE
    if not lacks_device(analysis, health):
        return ""
    return f"{NO_DEVICE} What the host did: host_accounting."


def lacks_device(analysis: SqlObject, health: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether an analysis needs device activity and no trace has any.

    Args:
        analysis: The analysis.
        health: Rows of ``rank_health``; without any, the answer is False.
    """
    counts = [row["gpu_op_count"] for row in health]
    needs = analysis.facts.get("Needs", "")
    return bool(_NEED.match(needs) and counts and not any(counts))
