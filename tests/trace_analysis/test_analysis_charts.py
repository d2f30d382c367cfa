"""Charts of TraceAnalysis: when they appear, and what they show."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import altair as alt
import pytest

from hta_sql import charts
from hta_sql.errors import ParameterError
from hta_sql.hta.trace_analysis import TraceAnalysis
from tests.trace_analysis.writing import kernel, write_trace


def test_a_script_shows_no_chart_unless_asked(analysis: TraceAnalysis) -> None:
    """visualize=None draws charts in notebooks only."""
    analysis.get_temporal_breakdown()
    assert not (analysis.store.path / "charts").exists()


def test_a_script_gets_charts_as_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """visualize=True saves an HTML page that needs no network, and logs its path."""
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


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the charts that a simulated notebook displays, each with the active renderer."""
    shown: list[Any] = []
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.__dict__["get_ipython"] = lambda: SimpleNamespace(kernel=object())
    display.__dict__["display"] = lambda chart: shown.append((chart, alt.renderers.active))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown


def test_a_notebook_displays_charts(analysis: TraceAnalysis, displayed: list[Any]) -> None:
    """In a notebook, visualize=None displays a chart, and visualize=False does not."""
    analysis.get_temporal_breakdown()
    analysis.get_temporal_breakdown(visualize=False)
    titles = [chart.to_dict()["title"]["text"] for chart, _ in displayed]
    assert titles == ["Where the time of each GPU goes"]


@pytest.mark.parametrize(
    ("given", "renderer"),
    [("svg", "svg"), ("pdf", "png"), ("notebook", "default"), ("", "default")],
)
def test_an_image_renderer_is_honored(
    given: str, renderer: str, analysis: TraceAnalysis, displayed: list[Any]
) -> None:
    """Image formats give a picture; any other plotly renderer is replaced by the default one."""
    analysis.get_gpu_kernel_breakdown(image_renderer=given)
    assert [active for _, active in displayed] == [renderer] * 2
    assert alt.renderers.active == "default"


def test_a_script_gets_the_picture_that_it_asks_for(analysis: TraceAnalysis) -> None:
    """In a script, a requested picture replaces the HTML page."""
    analysis.get_gpu_kernel_breakdown(visualize=True, image_renderer="svg")
    pictures = sorted(path.name for path in (analysis.store.path / "charts").iterdir())
    assert pictures == ["gpu_kernel_types.svg", "gpu_kernels_by_name.svg"]


def test_idle_charts_switch_between_shares_and_times(analysis: TraceAnalysis) -> None:
    """Idle charts show shares, times, or both."""
    result = analysis.store.run("idle_time_breakdown", runs=[analysis.run])
    panels = [
        charts.draw(result, percent=percent).to_dict()["hconcat"] for percent in (True, False, None)
    ]
    axes = [[panel["layer"][0]["encoding"]["x"]["field"] for panel in few] for few in panels]
    assert axes == [["share"], ["time"], ["share", "time"]]


def test_an_unknown_result_has_no_chart(analysis: TraceAnalysis) -> None:
    """The error for a result without a chart lists the results that have one."""
    with pytest.raises(ParameterError, match="temporal_breakdown"):
        charts.draw(analysis.store.sql("SELECT 1"))
