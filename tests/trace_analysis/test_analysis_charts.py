"""TraceAnalysis: when a chart appears, and what charts hold."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hta_sql import charts
from hta_sql.errors import ParameterError
from hta_sql.hta.trace_analysis import TraceAnalysis
from tests.trace_analysis.writing import kernel, write_trace


def test_a_script_shows_no_chart_unless_asked(analysis: TraceAnalysis) -> None:
    """visualize=None draws in notebooks only."""
    analysis.get_temporal_breakdown()
    assert not (analysis.store.path / "charts").exists()


def test_a_script_gets_charts_as_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """visualize=True saves an HTML page that needs no network, and logs where."""
    write_trace(tmp_path, "a.json", [kernel(0, 10)])
    with (
        caplog.at_level(logging.INFO, logger="hta_sql"),
        TraceAnalysis(trace_dir=tmp_path) as analysis,
    ):
        analysis.get_temporal_breakdown(visualize=True)
    page = tmp_path / ".hta_sql" / "charts" / "temporal_breakdown.html"
    assert str(page) in caplog.text
    text = page.read_text(encoding="utf-8")
    assert "Where the time of each GPU goes" in text
    assert 'src="http' not in text


def test_a_notebook_displays_charts(
    analysis: TraceAnalysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """visualize=None displays; visualize=False does not."""
    displayed: list[Any] = []
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.__dict__["get_ipython"] = lambda: SimpleNamespace(kernel=object())
    display.__dict__["display"] = displayed.append
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    analysis.get_temporal_breakdown()
    analysis.get_temporal_breakdown(visualize=False)
    titles = [chart.to_dict()["title"]["text"] for chart in displayed]
    assert titles == ["Where the time of each GPU goes"]


def test_idle_charts_switch_between_shares_and_times(analysis: TraceAnalysis) -> None:
    """visualize_pctg=False draws times."""
    result = analysis.store.run("idle_time_breakdown", runs=[analysis.run])
    panels = [
        charts.draw(result, percent=percent).to_dict()["hconcat"] for percent in (True, False, None)
    ]
    axes = [[panel["layer"][0]["encoding"]["x"]["field"] for panel in few] for few in panels]
    assert axes == [["share"], ["time"], ["share", "time"]]


def test_an_unknown_result_has_no_chart(analysis: TraceAnalysis) -> None:
    """The message lists what has one."""
    with pytest.raises(ParameterError, match="temporal_breakdown"):
        charts.draw(analysis.store.sql("SELECT 1"))
