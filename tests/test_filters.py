"""Filters: HTA's classes on frames, and docs/filters.md, whose SQL chooses the same rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import hta_sql
from hta_sql.errors import ParameterError
from hta_sql.hta.common import trace_filter, trace_stack_filter
from hta_sql.hta.common.trace_filter import (
    CompositeFilter,
    CPUOperatorFilter,
    Filter,
    FirstIterationFilter,
    GPUKernelFilter,
    IterationFilter,
    IterationIndexFilter,
    MemCopyEventFilter,
    NameFilter,
    QueryFilter,
    RankFilter,
    TimeRangeFilter,
)
from hta_sql.hta.common.trace_stack_filter import CombinedOperatorFilter, UnderOperatorFilter
from hta_sql.hta.trace_analysis import TraceAnalysis

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).parents[1] / "docs" / "filters.md").read_text(encoding="utf-8")


def recipes() -> list[tuple[str, str]]:
    """Each class on the page, a paragraph that starts with it, and the SQL behind that."""
    found, name = [], ""
    for part in re.split(r"\n\n(?=`[A-Z]|```|#)", PAGE):
        if sql := re.match(r"```sql\n(.*?)```", part, re.DOTALL):
            found.append((name, sql[1]))
        elif named := re.match(r"`([^`]+)`", part):
            name = named[1]
    return found


RECIPES = recipes()


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceAnalysis]:
    """The tiny trace, all steps."""
    folder = tmp_path_factory.mktemp("filters")
    trace = str(Path(__file__).parent / "traces" / "filters.json")
    hta_sql.ingest({0: trace}, folder / "job.store", run="run").close()
    store = folder / "job.store"
    with TraceAnalysis(store=store, run="run", include_last_profiler_step=True) as opened:
        opened.t.decode_symbol_ids(use_shorten_name=False)
        yield opened


@pytest.fixture
def frame(analysis: TraceAnalysis) -> pd.DataFrame:
    """Its frame."""
    return analysis.t.get_trace(0)


def ids(frame: pd.DataFrame) -> list[int]:
    """Positions of the events of a frame, sorted."""
    return sorted(frame["index"])


def test_the_page_has_every_filter() -> None:
    """Each class that stands for a selection has a recipe."""
    shown = {recipe.partition("(")[0] for recipe, _ in RECIPES}
    names = {*trace_filter.__all__, *trace_stack_filter.__all__}
    general = {"Filter", "CompositeFilter", "NameIdColumnFilter", "NameStringColumnFilter"}
    assert shown == names - general - {"OperatorFilterMethod"}
    assert PAGE.count("```sql") == len(RECIPES)


@pytest.mark.parametrize(("recipe", "sql"), RECIPES, ids=[recipe for recipe, _ in RECIPES])
def test_sql_and_class_choose_the_same(recipe: str, sql: str, analysis: TraceAnalysis) -> None:
    """The SQL of the page gives the rows that the class keeps, some and not all."""
    names = {**vars(trace_filter), **vars(trace_stack_filter)}
    chosen: Filter = eval(recipe, names)  # noqa: S307 - our own page
    frame = analysis.t.get_trace(0).assign(rank=0)
    kept = chosen(frame, analysis.t.symbol_table)
    assert ids(kept) == sorted(analysis.store.sql(sql).df()["event_id"])
    assert 0 < len(kept) <= len(frame)
    assert len(kept) < len(frame) or recipe == "RankFilter([0])"


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (IterationFilter(551), [9, 10, 11, 12, 15]),
        (IterationFilter([550, 551]), list(range(17))),
        (IterationFilter(7), []),
        (IterationIndexFilter([1, 5]), [9, 10, 11, 12, 15]),
        (IterationIndexFilter(5), []),
        (FirstIterationFilter(), [*range(9), 13, 14, 16]),
        (TimeRangeFilter((0, 10)), [2, 3]),
        (NameFilter("aten::"), [2, 5, 11]),
        (NameFilter("linear"), []),
        (NameFilter("void", name_column="s_name"), [13]),
        (QueryFilter("dur > 49"), [0, 1, 9, 10]),
        (GPUKernelFilter(), [13, 14, 16]),
        (CPUOperatorFilter(), [*range(13), 15, 17]),
        (MemCopyEventFilter("Memcpy HtoD (Pinned -> Device)"), [14]),
        (MemCopyEventFilter("Memcpy DtoH (Device -> Pinned)"), []),
        (CompositeFilter([IterationIndexFilter(0), NameFilter("aten::")]), [2, 5]),
        (UnderOperatorFilter("## forward ##", 0), [1, 2, 3, 4, 5, 6, 7, 8]),
        (UnderOperatorFilter("## forward ##", -1), [10, 11]),
        (UnderOperatorFilter("## forward ##", 2), []),
        (UnderOperatorFilter("aten::linear", 0, include_gpu_kernels=True), [2, 3, 13]),
        (CombinedOperatorFilter("## forward ##", "wait", "preprocess"), [5, 6, 7]),
        (CombinedOperatorFilter("## forward ##", "wait", "nothing", True), [5, 6, 7, 8, 14]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Filter) else None,
)
def test_rows_by_hand(chosen: Filter, expected: list[int], frame: pd.DataFrame) -> None:
    """Without a symbol table: names are read from s_name, syncs without a stream stay host."""
    kept = chosen(frame)
    assert ids(kept) == expected
    assert list(kept.columns) == list(frame.columns)


def test_names_as_numbers(analysis: TraceAnalysis) -> None:
    """With the symbol table the numbers in ``name`` are looked up; Context Sync is on the device."""
    frame = analysis.t.get_trace(0).drop(columns=["s_name", "s_cat"])
    symbols = analysis.t.symbol_table
    assert ids(NameFilter("aten::")(frame, symbols)) == [2, 5, 11]
    assert ids(NameFilter("aten::", symbols)(frame)) == [2, 5, 11]
    assert ids(GPUKernelFilter()(frame, symbols)) == [13, 14, 15, 16]
    copies = MemCopyEventFilter("Memcpy HtoD (Pinned -> Device)", symbols)
    assert ids(copies(frame)) == [14]


def test_frames_without_the_column_stay_whole(
    frame: pd.DataFrame, caplog: pytest.LogCaptureFixture
) -> None:
    """As HTA: a warning and every row."""
    assert len(RankFilter([1])(frame)) == len(frame)
    assert "no column 'rank'" in caplog.text
    bare = frame[["index", "ts", "dur"]]
    for chosen in (IterationFilter(1), IterationIndexFilter(0), GPUKernelFilter(), NameFilter("a")):
        assert len(chosen(bare)) == len(frame)
    only_outside = frame.assign(iteration=-1)
    assert len(FirstIterationFilter()(only_outside)) == len(frame)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: IterationFilter("550"),  # type: ignore[arg-type]
        lambda: RankFilter((0, 1)),  # type: ignore[arg-type]
        lambda: TimeRangeFilter((2, 1)),
        lambda: TimeRangeFilter([1, 2]),  # type: ignore[arg-type]
        lambda: CompositeFilter([len]),  # type: ignore[list-item]
    ],
)
def test_wrong_arguments_are_refused(wrong: Any) -> None:
    """The message says what was given."""
    with pytest.raises(ParameterError):
        wrong()
