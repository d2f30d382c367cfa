"""Tests the charts of golden cases that state their marks, such as ``Drawn: 3 rect, 1 text``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hta_sql.charts import draw
from hta_sql.results.result import Result
from tests.drawn_marks import visible_marks
from tests.golden_cases import all_cases, ingest_case, stated_marks

if TYPE_CHECKING:
    from pathlib import Path

    from hta_sql.authoring.golden import Case

CASES = [case for case in all_cases() if stated_marks(case)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_golden_case_has_the_marks_that_it_states(case: Case, tmp_path: Path) -> None:
    """All visible marks must be stated, except for text."""
    with ingest_case(case.traces, tmp_path / "golden.store") as store:
        analysis = store.library.find(case.path.stem)
        chart = draw(Result.of_rows(store.sql(case.call).arrow(), analysis))
    stated, counted = stated_marks(case), visible_marks(chart)
    assert {
        kind: count for kind, count in counted.items() if kind in stated or kind != "text"
    } == stated
    assert chart.to_dict().get("title"), "a chart has a title"
