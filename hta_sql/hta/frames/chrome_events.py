"""Events of the Chrome trace format as dicts."""

from __future__ import annotations

from typing import Any

import pandas as pd

from hta_sql.errors import ParameterError

PHASE_COUNTER = "C"
PHASE_FLOW_START = "s"
PHASE_FLOW_END = "f"


def counter_events(
    series: pd.DataFrame, counter_name: str, counter_col: str, zero: float
) -> list[dict[str, Any]]:
    """Make counter events of a series, to be added to ``traceEvents``.

    Args:
        series: ``pid, ts`` (µs since the first event) and the counter; ``name`` and ``id`` are
            taken where there are such columns.
        counter_name: Name of the counter, and of the events where the series has no names.
        counter_col: Its column.
        zero: What time 0 is in the trace's own clock [µs].

    Raises:
        ParameterError: A column is missing.
    """
    if missing := {"pid", "ts", counter_col} - set(series.columns):
        raise ParameterError(f"The series has no {', '.join(sorted(missing))}.")
    events = pd.DataFrame({"pid": series["pid"], "ts": series["ts"] + zero})
    args = [{counter_name: value} for value in series[counter_col].tolist()]
    events["args"] = pd.Series(args, index=events.index, dtype=object)
    events["ph"] = PHASE_COUNTER
    events["name"] = series.get("name", counter_name)
    if "id" in series:
        events["id"] = series["id"]
    rows: list[dict[str, Any]] = events.to_dict("records")  # type: ignore[assignment]  # text keys
    return rows


def flow_event(  # noqa: PLR0917 - HTA's signature
    id: int,  # noqa: A002 - likewise
    pid: int,
    tid: int,
    ts: float,
    is_start: bool,
    name: str,
    cat: str,
    args: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Make one end of an arrow, to be added to ``traceEvents``."""
    phase = PHASE_FLOW_START if is_start else PHASE_FLOW_END
    event = {"ph": phase, "id": id, "pid": pid, "tid": tid, "ts": ts, "cat": cat, "name": name}
    more = {} if args is None else {"args": args}
    return {**event, **more, **({} if is_start else {"bp": "e"})}
