"""Times are exact to the nanosecond, even if the events in a chunk are far apart."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.ingestion.ways import Way, rows_by_event, staged

MICROSECONDS = st.one_of(
    st.decimals("0", "3e15", places=3),
    st.decimals("1.6e15", "1.600001e15", places=3),
    st.decimals("0", "1000", places=6),
    st.sampled_from(["0", "0.001", "899999999999.999", "900000000000", "999999999999.9995"]),
    st.decimals("0", "1e13", places=3),
).map(str)


def nanoseconds(microseconds: str) -> int:
    """Convert microseconds exactly, rounding half a nanosecond up as documented."""
    return int((Decimal(microseconds) * 1000).to_integral_value(ROUND_HALF_UP))


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(MICROSECONDS, min_size=1, max_size=8))
def test_times_of_one_chunk(tmp_path: Path, times: list[str]) -> None:
    """The start and duration of each event equal the decimal numbers in the file."""
    durations = [time if nanoseconds(time) < 9 * 10**14 else "0.5" for time in reversed(times)]
    events = ",".join(
        f'{{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": {ts}, "dur": {dur}}}'
        for ts, dur in zip(times, durations, strict=True)
    )
    path = tmp_path / "trace.json"
    path.write_text(f'{{"traceEvents": [{events}]}}')
    rows = rows_by_event(staged(path, Way(is_deep=False)))
    assert [rows[event_id][6:8] for event_id in range(len(times))] == [
        (nanoseconds(ts), nanoseconds(dur)) for ts, dur in zip(times, durations, strict=True)
    ]
