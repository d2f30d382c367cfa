"""Tests that time is attributed to the lowest running layer, in lanes and in steps.

The results are compared with a reference function.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.macros import engine_with

if TYPE_CHECKING:
    from collections.abc import Sequence

MACROS = ("counted_segments", "layer_segments", "layers_in_steps")

LAYERS = range(1, 9)


class Span(NamedTuple):
    """A span on a rank, and its layer."""

    run: str
    rank: int
    layer: int
    ts: int
    dur: int


class Step(NamedTuple):
    """A step on a rank."""

    run: str
    rank: int
    step: int
    from_ts: int
    to_ts: int


RANKS = (("a", 0), ("a", 1), ("b", 0))


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """Return one shared engine with the macros and their input tables."""
    con = engine_with(MACROS)
    con.execute(
        "CREATE TABLE spans (run VARCHAR, rank INTEGER, layer INTEGER, ts BIGINT, dur BIGINT)"
    )
    con.execute(
        "CREATE TABLE steps (run VARCHAR, rank INTEGER, step BIGINT, from_ts BIGINT, to_ts BIGINT)"
    )
    con.execute("CREATE VIEW lanes AS SELECT s.run || s.rank AS lane, s.* FROM spans AS s")
    return con


def fill(table: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Replace the rows of a table."""
    con = connection()
    con.execute(f"DELETE FROM {table}")  # noqa: S608 - one of two names
    if rows:
        con.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)", rows)  # noqa: S608 - likewise


@st.composite
def spans(draw: st.DrawFn) -> list[Span]:
    """Draw a few spans of any layer that nest, touch or have zero length."""
    layers, starts, lengths = st.sampled_from(LAYERS), st.integers(0, 12), st.integers(0, 6)
    span = st.tuples(st.sampled_from(RANKS), layers, starts, lengths).map(
        lambda drawn: Span(*drawn[0], *drawn[1:])
    )
    return draw(st.lists(span, max_size=10))


@st.composite
def steps(draw: st.DrawFn) -> list[Step]:
    """Draw consecutive steps with or without gaps, some of which have zero length."""
    found = []
    for run, rank in RANKS:
        bounds = draw(st.lists(st.integers(0, 18), max_size=6))
        pairs = list(pairwise(sorted(bounds)))[:: draw(st.sampled_from((1, 2)))]
        found += [Step(run, rank, number, *pair) for number, pair in enumerate(pairs, 3)]
    return found


def lowest(some: Sequence[Span], at: int) -> int:
    """Return the lowest layer that is running at a given time, or 0 if there is none."""
    return min((s.layer for s in some if s.ts <= at < s.ts + s.dur), default=0)


@given(some=spans())
@settings(max_examples=examples(25), deadline=None)
def test_segments_have_the_lowest_layer_that_runs(some: list[Span]) -> None:
    """Segments tile the time of a lane from its first bound to its last, whether or not a layer runs."""
    fill("spans", some)
    found = connection().execute("FROM lib.layer_segments('lanes') ORDER BY lane, ts").fetchall()
    wanted = []
    for run, rank in RANKS:
        own = [s for s in some if (s.run, s.rank) == (run, rank)]
        bounds = {s.ts for s in own} | {s.ts + s.dur for s in own}
        units = range(min(bounds, default=0), max(bounds, default=0))
        wanted += [(f"{run}{rank}", at, lowest(own, at)) for at in units]
    assert [
        (lane, at, layer) for lane, ts, dur, layer in found for at in range(ts, ts + dur)
    ] == wanted


@given(some=spans(), rows=steps())
@settings(max_examples=examples(25), deadline=None)
def test_layers_of_a_step_are_those_of_its_time(some: list[Span], rows: list[Step]) -> None:
    """Each unit of time in a step counts towards the lowest running layer, if there is one."""
    fill("spans", some)
    fill("steps", rows)
    found = connection().execute("FROM lib.layers_in_steps('steps', 'spans')").fetchall()
    wanted: Counter[tuple[str, int, int, int]] = Counter()
    for run, rank, step, from_ts, to_ts in rows:
        own = [s for s in some if (s.run, s.rank) == (run, rank)]
        wanted.update((run, rank, step, lowest(own, at)) for at in range(from_ts, to_ts))
    assert {tuple(row[:4]): row[4] for row in found} == {
        key: ns for key, ns in wanted.items() if key[3]
    }
    assert len(found) == len({row[:4] for row in found})


@pytest.mark.parametrize("count", [8192, 100_000])
@pytest.mark.parametrize("layer", LAYERS)
def test_many_spans_at_once_are_no_other_layer(layer: int, count: int) -> None:
    """Many concurrent spans of one layer are neither missed nor counted as another layer."""
    con = connection()
    con.execute("DELETE FROM spans")
    con.execute(
        "INSERT INTO spans SELECT 'a', 0, l.layer, 0, l.layer FROM range($1), (VALUES ($2), ($2 + 1)) AS l(layer) "
        "WHERE l.layer <= 8",
        [count, layer],
    )
    found = con.execute("FROM lib.layer_segments('lanes') ORDER BY ts").fetchall()
    above = [("a0", layer, 1, layer + 1)] if layer < LAYERS[-1] else []
    assert found == [("a0", 0, layer, layer), *above]
