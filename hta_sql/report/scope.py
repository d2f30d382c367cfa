"""Describes which part of a capture a section covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hta_sql.library.objects import SqlObject

_ENOUGH = 2
"""Minimum number of steps for the last one to be excluded, because profilers stop during it."""


def scope_of(
    analysis: SqlObject, values: Mapping[str, Any], health: Sequence[Mapping[str, Any]]
) -> str:
    """Describe whether an analysis covers steps (and the last one) or the whole capture.

    Args:
        analysis: The analysis.
        values: Parameters of the analysis.
        health: Rows of ``rank_health``, which count the steps.
    """
    about = {parameter.name: parameter.doc for parameter in analysis.parameters}
    most = max((row["step_count"] or 0 for row in health), default=0)
    if "steps" not in about or values.get("steps") or not most:
        return ""
    leaves_out = most >= _ENOUGH and "include_last_profiler_step" in about
    leaves_out &= "including the last one" not in about["steps"]
    if "outside steps" in about["steps"]:
        return f"Covers the whole capture{' except its last step' * leaves_out}."
    return f"Covers all steps{' except the last' * leaves_out}."
