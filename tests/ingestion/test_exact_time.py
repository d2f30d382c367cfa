"""Times are exact to the nanosecond, however far apart the events of a chunk are."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.ingestion.reading import Reading

MICROSECONDS = st.one_of(
    st.decimals("0", "3e15", places=3),
    st.decimals("1.6e15", "1.600001e15", places=3),
    st.decimals("0", "1000", places=6),
    st.sampled_from(["0", "0.001", "899999999999.999", "900000000000", "999999999999.9995"]),
    st.decimals("0", "1e13", places=3),
).map(str)


def nanoseconds(microseconds: str) -> int:
    """Convert as the README promises: exactly, half a nanosecond up."""
    return int((Decimal(microseconds) * 1000).to_integral_value(ROUND_HALF_UP))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(MICROSECONDS, min_size=1, max_size=8))
def test_times_of_one_chunk(read: Callable[..., Reading], times: list[str]) -> None:
    """Start and duration of each event are the decimal number that the file says."""
    durations = [time if Decimal(time) <= Decimal("1e15") else "0.5" for time in reversed(times)]
    events = ",".join(
        f'{{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": {ts}, "dur": {dur}}}'
        for ts, dur in zip(times, durations, strict=True)
    )
    got = read(f'{{"traceEvents": [{events}]}}'.encode())
    first = min(map(nanoseconds, times))
    assert [(row["ts"], row["dur"]) for row in got.tables["cpu_ops"]] == [
        (nanoseconds(ts) - first, nanoseconds(dur))
        for ts, dur in zip(times, durations, strict=True)
    ]
