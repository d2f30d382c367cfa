"""How answers follow when a trace is changed: the expected value of each column."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hta_sql.library.declared import Column

_EVENT_ID = re.compile(r"event_id of|Position of the (event|operation)|Event to inspect")
_RANK = re.compile(
    r"^(rank|src_rank|dst_rank|last_rank|m(in|ax)_rank|worst_rank|common_rank|peer)$"
)
_IDS = {
    "stream": "stream",
    "wait_on_stream": "stream",
    "correlation": "correlation",
    "wait_on_record_correlation": "correlation",
    "lane_id": "tid",
    "pid": "pid",
    "tid": "tid",
}
_POINT = re.compile(r"(^|_)ts$|(^|_)(start|end)_ns$")
_OF_RANKS = frozenset({"channel", "part"})
_ABSOLUTE = frozenset({"base_time_ns"})
_KINDS = dict.fromkeys(("GB/s", "TB/s", "TFLOP/s", "1/s"), "rate") | {"%": "share"}


@dataclass(frozen=True)
class Effect:
    """What a change does to answers.

    Attributes:
        scale: Factor of all times.
        ids: Kind of id (``stream``, ``correlation``, ``pid``, ``tid``, ``rank``) ─▶ old ─▶ new.
        events: Rank (old) ─▶ old position of an event ─▶ new position.
        is_ordered: Whether rows keep their order; if not, answers are compared as sets.
        relative: Relative change of times and shares that the change itself explains.
        slack_ns: Change of times that the change itself explains [ns], before scaling.
    """

    scale: int = 1
    ids: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    events: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    is_ordered: bool = True
    relative: float = 2e-5
    slack_ns: float = 2


def kind_of(column: Column) -> str:
    """Return what a column holds: a kind of id, event, ranks, point, time, rate, share or value."""
    if column.type == "VARCHAR":
        return "ranks" if "ranks" in column.name or column.name in _OF_RANKS else "value"
    if column.name in _IDS:
        return _IDS[column.name]
    if column.unit == "ns" and column.name not in _ABSOLUTE:
        return "point" if _POINT.search(column.name) else "time"
    if column.type in ("INTEGER", "BIGINT") and _RANK.match(column.name):
        return "rank"
    if column.type == "BIGINT" and _EVENT_ID.search(column.doc):
        return "event"
    return _KINDS.get(column.unit or "", "value")
