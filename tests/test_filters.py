"""Tests of HTA's filter classes on data frames, and of the equivalent SQL in docs/filters.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from hta_sql.errors import ParameterError
from hta_sql.hta.common import trace_filter
from hta_sql.hta.common.trace_filter import (
    CompositeFilter,
    Filter,
    GPUKernelFilter,
    IterationIndexFilter,
    NameFilter,
    TimeRangeFilter,
)
from hta_sql.hta.trace_analysis import TraceAnalysis
from tests.filter_recipes import PAGE, RECIPES
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceAnalysis]:
    """Open the tiny trace, including its last profiler step."""
    folder = tmp_path_factory.mktemp("filters")
    trace = str(Path(__file__).parent / "traces" / "filters.json")
    ingest_only({0: trace}, folder / "job.store", run="run")
    store = folder / "job.store"
    with TraceAnalysis(store=store, run="run", include_last_profiler_step=True) as opened:
        opened.t.decode_symbol_ids(use_shorten_name=False)
        yield opened


@pytest.fixture
def frame(analysis: TraceAnalysis) -> pd.DataFrame:
    """Return the data frame of the tiny trace."""
    return analysis.t.get_trace(0)


def ids(frame: pd.DataFrame) -> list[int]:
    """Return the sorted event numbers in a data frame."""
    return sorted(frame["index"])


CHOSEN: dict[str, list[int]] = {
    "IterationFilter(551)": [9, 10, 11, 12, 15],
    "IterationIndexFilter([1])": [9, 10, 11, 12, 15],
    "FirstIterationFilter()": [*range(9), 13, 14, 16],
    "RankFilter([0])": list(range(18)),
    "TimeRangeFilter((10, 60))": [4, 5, 6, 7, 8, 13, 17],
    "ZeroDurationFilter": [*range(7), *range(8, 18)],
    'NameFilter("aten::|wait")': [2, 4, 5, 11],
    'QueryFilter("dur >= 10 and stream == -1")': [0, 1, 4, 5, 9, 10, 12, 15],
    "GPUKernelFilter()": [13, 14, 15, 16],
    "CPUOperatorFilter()": [*range(13), 17],
    'MemCopyEventFilter("Memcpy HtoD (Pinned -> Device)")': [14],
    'UnderOperatorFilter("## forward ##", 0)': list(range(1, 9)),
    'UnderOperatorFilter("## forward ##", 0, include_gpu_kernels=True)': [*range(1, 9), 13, 14],
    'AfterOperatorFilter("wait", -1)': [*range(5, 13), 15, 17],
    'BeforeOperatorFilter("preprocess", 0)': [2, 3, 4, 5, 6, 7],
    'OperatorFilter("aten::linear", 0, OperatorFilterMethod.Ancestors)': [0, 1, 2],
    'CombinedOperatorFilter("## forward ##", "wait", "preprocess")': [5, 6, 7],
}
"""Events that each recipe on the page selects, computed by hand."""


def test_every_recipe_is_looked_at() -> None:
    """Every recipe on the page has expected events here, in page order."""
    assert [recipe for recipe, _ in RECIPES] == list(CHOSEN)
    assert PAGE.count("```sql") == len(RECIPES)


@pytest.mark.parametrize(("recipe", "sql"), RECIPES, ids=[recipe for recipe, _ in RECIPES])
def test_the_page_chooses(recipe: str, sql: str, analysis: TraceAnalysis) -> None:
    """The SQL on the page, and the filter class if there is one, selects the expected events."""
    assert sorted(analysis.store.sql(sql).df()["event_id"]) == CHOSEN[recipe]
    if recipe.partition("(")[0] in trace_filter.__all__:
        chosen: Filter = eval(recipe, vars(trace_filter).copy())  # noqa: S307 - our own page
        assert ids(chosen(analysis.t.get_trace(0), analysis.t.symbol_table)) == CHOSEN[recipe]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (IterationIndexFilter([1, 5]), [9, 10, 11, 12, 15]),
        (IterationIndexFilter(5), []),
        (TimeRangeFilter((0, 10)), [2, 3]),
        (NameFilter("aten::"), [2, 5, 11]),
        (NameFilter("linear"), []),
        (NameFilter("void", name_column="s_name"), [13]),
        (GPUKernelFilter(), [13, 14, 16]),
        (CompositeFilter([IterationIndexFilter(0), NameFilter("aten::")]), [2, 5]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Filter) else None,
)
def test_rows_by_hand(chosen: Filter, expected: list[int], frame: pd.DataFrame) -> None:
    """Filters select the expected rows of a data frame that has no symbol table.

    Names are read from s_name, and synchronizations without a stream count as host events.
    """
    kept = chosen(frame)
    assert ids(kept) == expected
    assert list(kept.columns) == list(frame.columns)


def test_names_as_numbers(analysis: TraceAnalysis) -> None:
    """With a symbol table, filters decode numeric names, and Context Sync is a device event."""
    frame = analysis.t.get_trace(0).drop(columns=["s_name", "s_cat"])
    symbols = analysis.t.symbol_table
    assert ids(NameFilter("aten::")(frame, symbols)) == [2, 5, 11]
    assert ids(NameFilter("aten::", symbols)(frame)) == [2, 5, 11]
    assert ids(GPUKernelFilter()(frame, symbols)) == [13, 14, 15, 16]


def test_frames_without_the_column_stay_whole(
    frame: pd.DataFrame, caplog: pytest.LogCaptureFixture
) -> None:
    """A frame without the filtered column is returned unchanged with a warning, as in HTA."""
    bare = frame[["index", "ts", "dur"]]
    for chosen in (IterationIndexFilter(0), GPUKernelFilter(), NameFilter("a")):
        assert len(chosen(bare)) == len(frame)
    assert "no column 'iteration'" in caplog.text
    only_outside = frame.assign(iteration=-1)
    assert len(IterationIndexFilter(0)(only_outside)) == len(frame)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: IterationIndexFilter("0"),  # type: ignore[arg-type]
        lambda: TimeRangeFilter((2, 1)),
        lambda: TimeRangeFilter([1, 2]),  # type: ignore[arg-type]
        lambda: CompositeFilter([len]),  # type: ignore[list-item]
    ],
)
def test_wrong_arguments_are_refused(wrong: Any) -> None:
    """Wrong arguments are errors."""
    with pytest.raises(ParameterError):
        wrong()


def test_a_filter_does_not_contain_itself() -> None:
    """A filter that contains itself is an error, because it would recurse forever."""
    chosen = CompositeFilter([])
    with pytest.raises(ParameterError, match="contains itself"):
        chosen.__init__([chosen])  # type: ignore[misc]  # on purpose
