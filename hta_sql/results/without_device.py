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

_NEED = re.compile(r"GPU activity(?!,? or )")


def without_device(
    run: Callable[..., Result], analysis: SqlObject | None, given: Mapping[str, Any]
) -> str:
    """Return the sentence about missing device activity if it explains an empty result, or "".

    Args:
        run: ``TraceStore.run`` of the store.
        analysis: The analysis without rows; None for a query.
        given: Its parameters.
    """
    scope = {key: given[key] for key in ("runs", "ranks", "roles") if key in given}
    if analysis is None or not lacks_device(analysis, run("rank_health", **scope).records()):
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
