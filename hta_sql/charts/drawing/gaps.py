"""Removes the gaps between several recordings of a run, so that they follow each other."""

from __future__ import annotations

import numpy as np
import pandas as pd

NOTE = "Recordings are drawn one after another, without the time between them."


def by_event(table: pd.DataFrame, *times: str) -> tuple[pd.DataFrame, list[str]]:
    """Close the gaps between recordings, which are identified by event ids.

    Args:
        table: Rows with ``run``, ``event_id`` and times.
        times: Time columns [ns], the earliest first and the latest last.

    Returns:
        The rows with shifted times, and a note; empty if there is only one recording.
    """
    if "event_id" not in table:
        return table, []
    return _closed_up(table, table["event_id"] // 2**32, *times)


def by_bucket(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Close the gaps in ``utilization_over_time``, whose buckets are contiguous per recording."""
    buckets = table.drop_duplicates(["run", "bucket"]).sort_values(["run", "bucket"])
    ends = (buckets["start_ns"] + buckets["dur_ns"]).groupby(buckets["run"]).shift()
    buckets = buckets.assign(
        recording=(buckets["start_ns"] > ends).groupby(buckets["run"]).cumsum()
    )
    known = table.merge(buckets[["run", "bucket", "recording"]], on=["run", "bucket"], how="left")
    return _closed_up(known, known["recording"], "start_ns", dur="dur_ns")


def by_steps(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Close the gaps in series of ``lane, ts, dur``; a recording's last row has no duration."""
    in_order = table.sort_values(["run", "lane", "ts"])
    following = in_order.groupby(["run", "lane"])["ts"].shift(-1)
    seams = in_order.assign(to=following)[in_order["dur"].isna() & following.notna()]
    recording = table["ts"] * 0
    for run, rows in seams.groupby("run"):
        bounds: list[tuple[float, float]] = []
        for low, high in sorted(zip(rows["ts"], rows["to"], strict=True)):
            if bounds and low < bounds[-1][1]:
                bounds[-1] = max(low, bounds[-1][0]), min(high, bounds[-1][1])
            else:
                bounds.append((low, high))
        of_run = table["run"] == run
        starts = [high for _, high in bounds]
        recording[of_run] = np.searchsorted(starts, table.loc[of_run, "ts"], side="right")
    return _closed_up(table, recording, "ts")


def _closed_up(
    table: pd.DataFrame, recording: pd.Series[int], *times: str, dur: str | None = None
) -> tuple[pd.DataFrame, list[str]]:
    if recording.nunique() < 2:
        return table, []
    ends = table[times[-1]] + (table[dur] if dur else 0)
    of = [table["run"], recording.rename("recording")]
    bounds = table[times[0]].groupby(of).min().to_frame("start").assign(end=ends.groupby(of).max())
    gaps = bounds["start"] - bounds.groupby("run")["end"].shift()
    left_out = gaps.fillna(0).clip(lower=0).groupby("run").cumsum()
    places = list(zip(table["run"], recording, strict=True))
    shift = left_out.loc[places].to_numpy().astype("int64")
    return table.assign(**{column: table[column] - shift for column in times}), [NOTE]
