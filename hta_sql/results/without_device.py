"""Explains why an analysis of device activity has no rows for a job whose traces have none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from hta_sql.library.objects import SqlObject

NO_DEVICE = (
    "No device activity was recorded. To record it: "
    "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]."
)

_NEED = re.compile(r"GPU activity(?!,? or )")


def lacks_device(analysis: SqlObject, health: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether an analysis needs device activity and no trace has any.

    Args:
        analysis: The analysis.
        health: Rows of ``rank_health``; without any, the answer is False.
    """
    counts = [row["gpu_op_count"] for row in health]
    needs = analysis.facts.get("Needs", "")
    return bool(_NEED.match(needs) and counts and not any(counts))
