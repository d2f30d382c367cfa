"""The rows do not depend on how a trace is formatted, or on how it is read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import IS_DEEP, examples
from tests.ingestion.small_trace import EVENTS, HEADER, TRAILER
from tests.ingestion.ways import Way, check_nothing_vanished, staged

STYLES = st.fixed_dictionaries(
    {
        "indent": st.sampled_from((None, 0, 1, 4, "\t")),
        "separators": st.sampled_from(((",", ":"), (", ", ": "), (" ,", " :"), (",\r\n", ":\t"))),
        "ensure_ascii": st.booleans(),
    }
)
WAYS = st.builds(
    Way,
    chunk_bytes=st.integers(40, 5000),
    batch_chunks=st.sampled_from((4, 64, 256)),
    threads=st.sampled_from((1, 2)),
    careful=st.booleans(),
    memory_limit=st.sampled_from((None, "200MB")),
)
relaxed = settings(
    max_examples=examples(12),
    deadline=None,
    derandomize=not IS_DEEP,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


WORDS = st.one_of(
    st.sampled_from(
        ("ph", "X", "ts", "traceEvents", "Infinity", '"},{"ph":"X"', "]}", "\\", "1.5")
    ),
    st.text(max_size=8),
)
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.decimals("0", "1e10", places=3).map(float),
    st.floats(allow_nan=True, allow_infinity=True),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
CATEGORIES = ("cpu_op", "kernel", "cuda_runtime", "python_function", "user_annotation", "other")
ANY_EVENT = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from("XXXXiCMsf") | VALUES,
        "cat": st.sampled_from(CATEGORIES) | VALUES,
        "name": WORDS | VALUES,
        "pid": NUMBERS | VALUES,
        "tid": NUMBERS | VALUES,
        "ts": NUMBERS | VALUES,
        "dur": NUMBERS | VALUES,
        "id": NUMBERS | VALUES,
        "args": st.dictionaries(WORDS, VALUES, max_size=4) | VALUES,
    },
)


def written(order: list[int], *, is_first: bool, style: dict[str, Any]) -> bytes:
    """Return the trace as JSON in a given style, with the events before or after the metadata."""
    ordered = [
        dict(sorted(event.items(), key=lambda item: order[len(item[0]) % len(order)]))
        for event in EVENTS
    ]
    rest = {**HEADER, **TRAILER}
    events: dict[str, Any] = {"traceEvents": ordered}
    whole = {**events, **rest} if is_first else {**rest, **events}
    return json.dumps(whole, **style).encode()


@relaxed
@given(order=st.permutations(range(4)), is_first=st.booleans(), style=STYLES, way=WAYS)
def test_style_and_way_change_nothing(
    tmp_path: Path, order: list[int], style: dict[str, Any], way: Way, *, is_first: bool
) -> None:
    """Neither the JSON style nor any setting for reading the file changes the rows."""
    path = tmp_path / "trace.json"
    path.write_bytes(json.dumps({**HEADER, "traceEvents": EVENTS, **TRAILER}).encode())
    plain = staged(path, Way())
    path.write_bytes(written(order, is_first=is_first, style=style))
    styled = staged(path, way)
    assert styled.keys() == plain.keys()
    for table in plain.keys() - {"metadata"}:
        assert styled[table] == plain[table], table


@pytest.mark.slow(reason="fuzz")
@relaxed
@given(events=st.lists(ANY_EVENT | VALUES, max_size=6), style=STYLES, way=WAYS)
def test_any_values_are_read_alike_in_every_way(
    tmp_path: Path, events: list[Any], style: dict[str, Any], way: Way
) -> None:
    """Events with arbitrary values are read identically with all settings."""
    path = tmp_path / "trace.json"
    path.write_bytes(json.dumps({**HEADER, "traceEvents": events, **TRAILER}, **style).encode())
    plain = staged(path, Way())
    if "error" not in plain:
        check_nothing_vanished(plain)
    for other in (replace(way, careful=True), replace(way, careful=False)):
        assert staged(path, other) == plain


@pytest.mark.parametrize(
    "number", ["1500.25", "1.50025e3", "1500.250", "150025E-2", '"1500.25"', "1500.2500000000000"]
)
def test_a_number_is_the_same_in_every_format(tmp_path: Path, number: str) -> None:
    """A time is exact to the nanosecond in every notation."""
    path = tmp_path / "trace.json"
    path.write_text(
        '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, '
        f'"ts": {number}, "dur": {number}}}]}}',
        encoding="utf-8",
    )
    ((event_id, ts, dur, *_),) = staged(path, Way())["cpu_ops"]
    assert (event_id, ts, dur) == (0, 1_500_250, 1_500_250)
