"""Convert counter series and their summaries to HTA's frames, in microseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from hta_sql.text import NS

_DESCRIBED = {
    "count": "point_count",
    "mean": "mean",
    "std": "std",
    "min": "min",
    "25%": "p25",
    "50%": "p50",
    "75%": "p75",
    "max": "max",
}
"""Column of pandas' describe() ─▶ our column, without its suffix."""


def queue_series(table: pd.DataFrame, ranks: Sequence[int]) -> dict[int, pd.DataFrame]:
    """Return the frames of ``get_queue_length_time_series``, indexed by event id.

    Ranks without points are omitted.
    """
    frame = pd.DataFrame(
        {
            "ts": table["ts"] / NS,
            "pid": table["device"],
            "tid": table["stream"],
            "stream": table["stream"],
            "queue_length": table["queue_length"],
        }
    ).set_index(pd.Index(table["event_id"], name="index"))
    return _by_rank(frame, table["rank"], ranks)


def bandwidth_series(table: pd.DataFrame, ranks: Sequence[int]) -> dict[int, pd.DataFrame]:
    """Return the frames of ``get_memory_bw_time_series``; ranks without copies are omitted."""
    frame = pd.DataFrame(
        {
            "ts": table["ts"] / NS,
            "pid": table["device"],
            "name": table["name"],
            "memory_bw_gbps": table["bandwidth_gbps"].astype(float),
        }
    )
    frames = _by_rank(frame, table["rank"], ranks)
    return {rank: frame.reset_index(drop=True) for rank, frame in frames.items()}


def queue_summary(table: pd.DataFrame) -> pd.DataFrame | None:
    """Return the frame of ``get_queue_length_summary``, or None if nothing was queued."""
    return _described(table, "stream", "queue_length", "_length")


def bandwidth_summary(table: pd.DataFrame) -> pd.DataFrame | None:
    """Return the frame of ``get_memory_bw_summary``, or None if no bandwidth was recorded."""
    return _described(table, "name", "memory_bw_gbps", "_gbps")


def described_series(series: Mapping[int, pd.DataFrame]) -> pd.DataFrame | None:
    """Return the frame of ``get_queue_length_summary_from_time_series`` for the given frames."""
    parts = [frame.assign(rank=rank) for rank, frame in series.items()]
    if not parts:
        return None
    points = pd.concat(parts)[["rank", "stream", "queue_length"]]
    described: pd.DataFrame = points.groupby(["rank", "stream"]).describe()
    return described


def full_time(table: pd.DataFrame, series: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
    """Return the frame of ``get_time_spent_blocked_on_full_queue``: streams with a full queue."""
    asked = {(rank, stream) for rank, frame in series.items() for stream in frame["stream"]}
    keys = zip(table["rank"], table["stream"], strict=True)
    is_asked = pd.Series([key in asked for key in keys], index=table.index, dtype=bool)
    shown = table[(table["full_count"] > 0) & is_asked]
    return pd.DataFrame(
        {
            "rank": shown["rank"].astype("int64"),
            "stream": shown["stream"],
            "duration_at_max_queue_length": shown["full_ns"] / NS,
            "relative_duration_at_max_queue_length": shown["full_pct"].astype(float) / 100,
        }
    ).reset_index(drop=True)


def _described(table: pd.DataFrame, key: str, name: str, ending: str) -> pd.DataFrame | None:
    shown = table[table["point_count"] > 0]
    if shown.empty:
        return None
    columns = {
        (name, hta): shown[ours if ours == "point_count" else f"{ours}{ending}"].astype(float)
        for hta, ours in _DESCRIBED.items()
    }
    frame = pd.DataFrame(columns)
    frame.index = pd.MultiIndex.from_arrays([shown["rank"].astype("int64"), shown[key]])
    return frame


def _by_rank(
    frame: pd.DataFrame, rank_of: pd.Series, ranks: Sequence[int]
) -> dict[int, pd.DataFrame]:
    mine = {rank: frame[(rank_of == rank).to_numpy()] for rank in ranks}
    return {rank: part for rank, part in mine.items() if len(part)}
