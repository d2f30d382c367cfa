"""Tests of charts that user analyses declare in their headers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hta_sql
from hta_sql.authoring.new import write_new_analysis
from hta_sql.cli import main
from hta_sql.errors import LibraryError
from hta_sql.library.chart_header import MARKS
from hta_sql.library.user_analyses import library_with
from hta_sql.report.contents import topics
from tests.drawn_marks import charts_in, drawn_rows, visible_marks
from tests.user_analyses.folders import ANALYSIS, write_folder

PAGE = (Path(__file__).parents[2] / "docs" / "your_own_analyses.md").read_text(encoding="utf-8")

CHART = """\
-- Chart:
--   mark = "ranks"
--   title = "Load of each stream"
--   bar = ["rank", "stream"]
--   value = "busy_ns"
--   measure = "Busy time"
--   tooltip.kernel_count = "Kernels"
"""


def with_chart(folder: Path, chart: str) -> Path:
    """Write a folder whose analysis declares a chart; return the folder."""
    text = ANALYSIS.replace("-- Report: table\n", chart)
    return write_folder(folder, text=text)


def test_a_user_analysis_draws_the_chart_in_its_header(store: Path, tmp_path: Path) -> None:
    """The chart has a bar per stream in a readable unit, with the labels of the header."""
    with hta_sql.open(store, analyses=with_chart(tmp_path, CHART)) as opened:
        chart = opened.run("stream_load").chart()
    rows = drawn_rows(chart)
    assert [(row["lane"], row["amount"]) for row in rows] == [("0 / 7", 25.0), ("0 / 9", 10.0)]
    assert visible_marks(chart)["rect"] == 2
    spec = chart.to_dict()
    assert spec["title"]["text"] == "Load of each stream"
    assert spec["encoding"]["y"]["title"] == "Busy time [µs]"
    assert {tip["title"] for tip in spec["encoding"]["tooltip"]} == {
        *("Rank / Stream", "Busy time [µs]", "Kernels")
    }


def test_a_chart_is_a_section_of_the_report(store: Path, tmp_path: Path) -> None:
    """An analysis with a chart has a section with it, without a line ``Report``."""
    team = with_chart(tmp_path, CHART)
    found = {s.name: s for topic in topics(library_with(team)) for s in topic.sections}
    assert found["stream_load"].has_chart
    page = tmp_path / "page.html"
    assert main(["report", str(store), "-o", str(page), "--analyses", str(team)]) == 0
    spec = charts_in(page.read_text(encoding="utf-8"))["chart-stream_load"]
    assert spec["encoding"]["y"]["title"] == "Busy time [µs]"


def test_rows_of_a_bar_are_averaged_and_high_bars_highlighted(store: Path, tmp_path: Path) -> None:
    """The bar of a rank is the mean of its streams; ``above`` is in the unit of the column."""
    chart = CHART.replace('bar = ["rank", "stream"]', "above = 15_000")
    with hta_sql.open(store, analyses=with_chart(tmp_path, chart)) as opened:
        (row,) = drawn_rows(opened.run("stream_load").chart())
    assert (row["lane"], row["amount"], row["part"]) == ("0", 17.5, "above 15000")


def test_parts_without_a_color_have_different_ones(store: Path, tmp_path: Path) -> None:
    """Labels that are no concepts get colors that are distinguishable."""
    lines = 'mark = "bars"; name = "stream"; value = "busy_ns"; part = "rank"; title = "a"; measure = "b"'
    chart = "-- Chart:\n" + "".join(f"--   {line}\n" for line in lines.split("; "))
    with hta_sql.open(store, analyses=with_chart(tmp_path, chart)) as opened:
        (panel,) = opened.run("stream_load").chart(top=1).to_dict()["vconcat"]
    assert panel["encoding"]["color"]["scale"] == {"domain": ["0"], "range": ["#0072B2"]}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('mark = "ranks"', "mark = ranks", "are not TOML"),
        ('mark = "ranks"', 'mark = "pie"', "the mark 'pie'; write one of stack, bars"),
        ('--   measure = "Busy time"\n', "", "Chart has no measure, which the mark ranks requires"),
        ('value = "busy_ns"', "value = 1", "Chart has value = 1; expected: a text"),
        ("tooltip.", 'part = "stream"\n--   color.', "Chart has color = {'kernel_count'"),
        (
            "measure =",
            'whole = "x"\n--   measure =',
            "the key whole; the mark ranks takes above, bar,",
        ),
        ('value = "busy_ns"', 'value = "idle_ns"', "names 'idle_ns', which is not a column"),
        ("tooltip.kernel_count", "tooltip.kernels", "names 'kernels', which is not a column"),
        ('["rank", "stream"]', '"rank"', "Chart has bar = 'rank'; expected: a list of texts"),
    ],
)
def test_a_malformed_chart_is_reported_when_the_folder_is_read(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    """An unknown key, mark or column is an error with the file, the key and what to write."""
    assert old in CHART
    team = with_chart(tmp_path, CHART.replace(old, new))
    with pytest.raises(LibraryError, match=re.escape(said)) as error:
        library_with(team)
    assert str(error.value).startswith(f"{team}/kernels/stream_load_v1.sql:")


def test_the_chart_of_the_page_fits_a_new_analysis(store: Path, tmp_path: Path) -> None:
    """The example in docs/your_own_analyses.md is the chart of the analysis that ``new`` writes."""
    write_new_analysis("longest_kernels", "team", tmp_path)
    (block,) = re.findall(r"^```text\n(-- Chart:\n.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (path,) = tmp_path.glob("team/*.sql")
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("CREATE OR REPLACE", f"{block}CREATE OR REPLACE", 1), encoding="utf-8"
    )
    assert main(["check", str(tmp_path)]) == 0
    with hta_sql.open(store, analyses=tmp_path) as opened:
        assert visible_marks(opened.run("longest_kernels").chart())["rect"] > 0


def test_the_page_lists_every_mark_and_key() -> None:
    """docs/your_own_analyses.md describes all marks, and the keys of each of them."""
    table = dict(re.findall(r"^\| `(\w+)` \|(.*)$", PAGE, re.MULTILINE))
    for mark, (required, others) in MARKS.items():
        assert set(re.findall(r"`(\w+)`", table[mark])) - {"ts", "dur"} >= required | others, mark
