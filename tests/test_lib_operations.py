"""Tests that compare sql/lib macros for operations with simple reference functions."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from statistics import variance
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.macros import engine_with

MACROS = (
    *("_enclosing_intervals", "exact_std", "short_name", "short_names", "is_requested"),
    *("_demangled_name", "_split_paths", "distinct_short_names"),
)

Span = tuple[int | None, int, int]
"""Lane, start and length."""


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """Return one shared engine with the macros."""
    return engine_with(MACROS)


def relation(spans: list[Span]) -> pa.Table:
    """Return a table of numbered spans."""
    columns: list[list[Any]] = [list(column) for column in zip(*spans, strict=True)] or [[], [], []]
    return pa.table(
        {
            "lane": pa.array(columns[0], pa.int64()),
            "id": pa.array(range(len(spans)), pa.int64()),
            "ts": pa.array(columns[1], pa.int64()),
            "dur": pa.array(columns[2], pa.int64()),
        }
    )


def spans_up_to(last: int) -> st.SearchStrategy[list[Span]]:
    """Draw intervals that nest, overlap, touch or repeat."""
    span = st.tuples(st.sampled_from([None, 1, 2]), st.integers(-5, last), st.integers(0, last))
    return st.lists(span, max_size=12)


@pytest.mark.parametrize("extent", [4095, 4096, 4097, 9000])
def test_each_instant_encloses_itself(extent: int) -> None:
    """Each zero-length interval encloses only itself, at any position within a cell."""
    instants: list[Span] = [
        (1, ts, 0) for ts in (*range(0, extent - 2, 97), extent - 2, extent - 1)
    ]
    con = connection()
    con.register("validation_inner", relation(instants))
    con.register("validation_outer", relation(instants))
    query = "FROM lib._enclosing_intervals('validation_inner', 'validation_outer')"
    pairs = con.execute(f"SELECT inner_id, outer_id {query} ORDER BY ALL").fetchall()
    assert pairs == [(place, place) for place in range(len(instants))]


@pytest.mark.parametrize("last", [12, 100_000], ids=["cells of one", "cells of many"])
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_enclosing_intervals_are_the_pairs_that_enclose(last: int, data: st.DataObject) -> None:
    """Each pair of intervals in a lane in which one encloses the other is returned exactly once."""
    inner, outer = data.draw(spans_up_to(last)), data.draw(spans_up_to(last))
    con = connection()
    con.register("validation_inner", relation(inner))
    con.register("validation_outer", relation(outer))
    found = con.execute(
        "SELECT inner_id, outer_id, lane, outer_ts, outer_dur "
        "FROM lib._enclosing_intervals('validation_inner', 'validation_outer')"
    ).fetchall()
    expected = [
        (i, o, lane, ts, dur)
        for i, (inner_lane, inner_ts, inner_dur) in enumerate(inner)
        for o, (lane, ts, dur) in enumerate(outer)
        if lane == inner_lane and ts <= inner_ts and inner_ts + inner_dur <= ts + dur
    ]
    assert sorted(found, key=lambda row: row[:2]) == expected


def shortened(name: str) -> str:
    """Return the short name by the rule in the macro's comment, implemented with a stack."""
    if name.startswith(("Memcpy", "Memset", "dma")) or not ("<" in name or "(" in name):
        return name
    kept: list[str] = []
    for character in name.replace("->", ""):
        if opening := {">": "<", ")": "("}.get(character):
            while kept and kept.pop() != opening:
                pass
        else:
            kept.append(character)
    return "".join(kept).split(" ")[-1]


def short_names(names: list[str], macro: str = "short_names") -> dict[str, str]:
    """Return the short names that the macro computes, by name."""
    con = connection()
    columns = {"run": ["r"] * len(names), "name": pa.array(names, pa.string())}
    con.register("validation_names", pa.table(columns))
    rows = con.execute(f"FROM lib.{macro}('validation_names')").fetchall()
    assert len(rows) == len(set(names))
    return {name: short for *_, name, short in rows}


DISTINCT = {
    "void gemm<128, 64, float>(P)": "gemm<…64, float…>",
    "void gemm<128, 64, a::half>(P)": "gemm<…64, half…>",
    "void gemm<128, 32, float>(P)": "gemm<…32…>",
    "void device_kernel<a::one::Gemm>(P)": "device_kernel<…one::Gemm…>",
    "void device_kernel<a::two::Gemm>(P)": "device_kernel<…two::Gemm…>",
    "void device_kernel<a::Attention>(P)": "device_kernel<…Attention…>",
    "void alone<7>(P)": "alone",
    "relu(float)": "relu",
    "relu(float, int)": "relu<…int…> #1",
    "relu(float,int)": "relu<…int…> #2",
    "Memset (Device)": "Memset (Device)",
    "_ZN2ns4gemmILi64EEEvi": "ns::gemm<…64…>",
    "_ZN2ns4gemmILi32EEEvi": "ns::gemm<…32…>",
    "x::(anonymous namespace)::f<1>()": "x::f",
}


def test_kernels_with_one_short_name_show_the_arguments_in_which_they_differ() -> None:
    """Arguments that all kernels of a group share, and groups of one kernel, add nothing."""
    assert short_names(list(DISTINCT), "distinct_short_names") == DISTINCT


def test_short_names_of_a_run_depend_on_no_other_run() -> None:
    """A kernel whose short name is unique in its run shows no arguments, whatever other runs have."""
    con = connection()
    one, other = "void gemm<128>(P)", "void gemm<64>(P)"
    rows = {"run": ["a", "b", "both", "both"], "name": [one, other, one, other]}
    con.register("names_of_runs", pa.table(rows))
    found = con.execute("FROM lib.distinct_short_names('names_of_runs')").fetchall()
    assert set(found) == {
        ("a", one, "gemm"),
        ("b", other, "gemm"),
        ("both", one, "gemm<…128…>"),
        ("both", other, "gemm<…64…>"),
    }


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.text(alphabet="ab<>(), :_Z1", max_size=14), max_size=12))
def test_distinct_short_names_differ_in_any_order_of_names(names: list[str]) -> None:
    """Every name has a short name of its own, which depends on no order."""
    found = short_names(names, "distinct_short_names")
    assert len(set(found.values())) == len(found)
    assert short_names(names[::-1], "distinct_short_names") == found


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.text(alphabet="ab<>()- \n:{", max_size=14), max_size=8))
def test_short_names_are_what_a_stack_leaves(names: list[str]) -> None:
    """Short names follow the rule even if brackets are unbalanced."""
    assert short_names(names) == {name: shortened(name) for name in names}


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("a<int>(b)", "a"),
        (
            "void at::native::vectorized_elementwise_kernel<4, F<float> >(int, F<float>)",
            "at::native::vectorized_elementwise_kernel",
        ),
        ("Memcpy DtoD (Device -> Device)", "Memcpy DtoD (Device -> Device)"),
        ("aten::mm", "aten::mm"),
        ("void (anonymous namespace)::f<x>()", "::f"),
        ("dma read (a)", "dma read (a)"),
        ("hipMemcpy HtoD (Host -> Device)", "hipMemcpy HtoD (Host -> Device)"),
        ("hipMemset (Device)", "hipMemset (Device)"),
        ("void my::Memcpy<int>(a)", "my::Memcpy"),
        ("f(x(y)", "f(x"),
    ],
)
def test_short_names_of_kernels(name: str, short: str) -> None:
    """Kernel names as profilers record them have the expected short names."""
    assert short_names([name]) == {name: short}


@pytest.mark.parametrize(
    ("asked", "value", "expected"),
    [
        (None, 3, True),
        (None, None, True),
        ([1, 3], 3, True),
        ([1, 3], 2, False),
        ([], 2, False),
        ([1, 3], None, None),
    ],
)
def test_wanted(asked: list[int] | None, value: int | None, expected: bool | None) -> None:
    """NULL instead of a list selects everything, and NULL is in no list."""
    row = connection().execute(
        "SELECT lib.is_requested($asked::BIGINT[], $value::BIGINT)",
        {"asked": asked, "value": value},
    )
    assert row.fetchall() == [(expected,)]


@given(values=st.lists(st.one_of(st.none(), st.integers(0, 2**40)), max_size=8))
@settings(max_examples=examples(40))
def test_exact_std(values: list[int | None]) -> None:
    """The standard deviation matches exact fractions, and is NULL for fewer than two values."""
    known = [Fraction(value) for value in values if value is not None]
    (((found,),)) = (
        connection()
        .execute(
            "SELECT lib.exact_std(v) FROM unnest($values::BIGINT[]) AS t(v)", {"values": values}
        )
        .fetchall()
    )
    if len(known) < 2:
        assert found is None
    else:
        assert found == pytest.approx(float(variance(known)) ** 0.5)
