"""Load a job in HolisticTraceAnalysis, then run each method with a counterpart in hta_sql."""

from __future__ import annotations

import importlib
import logging
from typing import Any

from benchmarks.workers.laps import Laps, request

ALL_RANKS = {"get_idle_time_breakdown", "get_cuda_kernel_launch_stats"}
"""Methods that return only rank 0 unless ranks are given."""


def main(asked: dict[str, Any]) -> None:
    """Load the job, then call the methods; an exception is recorded as the result."""
    laps = Laps()
    # Imported by name, because the environment of the type checker does not have it.
    trace_analysis = importlib.import_module("hta.trace_analysis")
    logging.disable(logging.CRITICAL)
    laps.lap("import")
    files = {int(rank): path for rank, path in asked["files"].items()}
    try:
        analyzer = trace_analysis.TraceAnalysis(trace_files=files)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the result
        laps.lap("load", error=_short(error))
        laps.print()
        return
    loaded = sorted(analyzer.t.get_all_traces())
    laps.lap("load", ranks=len(loaded))
    for name in asked["names"]:
        options: dict[str, Any] = {"visualize": False}
        if name in ALL_RANKS:
            options["ranks"] = loaded
        try:
            getattr(analyzer, name)(**options)
        except Exception as error:  # noqa: BLE001 - likewise
            laps.lap(name, error=_short(error))
        else:
            laps.lap(name)
    laps.print()


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


if __name__ == "__main__":
    main(request())
