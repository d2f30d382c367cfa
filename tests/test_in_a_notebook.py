"""Tests of display and completion in a notebook: tables, descriptions, charts and names."""

from __future__ import annotations

import base64
import inspect
import json
import pickle
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pytest

import hta_sql
from hta_sql.errors import ParameterError
from hta_sql.report.notebook import store_markup
from hta_sql.results.result import Result
from tests.golden_cases import TESTS
from tests.report_pages import Browser, Elements

TRACE = str(TESTS / "traces" / "every_table.json")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """Ingest a single small rank."""
    path = Path(tmp_path_factory.mktemp("notebook")) / "job.store"
    with hta_sql.ingest([TRACE], path, run="job", jobs=1) as opened:
        yield opened


def test_a_result_is_a_table(store: hta_sql.TraceStore) -> None:
    """A result is shown as a table with descriptions, in which names are never markup."""
    markup = store.run("gpu_kernels_by_name")._repr_html_()
    assert {"table", "th", "td"} <= set(Elements(markup).tags)
    assert "gpu_kernels_by_name_v1" in markup
    assert 'title="Run name."' in markup
    evil = store.sql("SELECT '<script>x</script>' AS name FROM range(30)")._repr_html_()
    assert "script" not in Elements(evil).tags
    assert "(30 rows, 20 shown; exact values: .df()" in evil


def test_a_store_is_the_first_screen_of_its_report(store: hta_sql.TraceStore) -> None:
    """A store is shown as a page in a frame, small and without scripts."""
    frame = Elements(store._repr_html_())
    assert frame.tags == ["iframe"]
    page = unescape(store._repr_html_())
    assert "A step takes" in page
    assert 'store.report("report.html")' in page
    assert "<script" not in page
    assert len(store._repr_html_()) < 100_000


def test_a_store_that_cannot_be_shown_in_time_lists_its_runs(store: hta_sql.TraceStore) -> None:
    """Analyses that exceed the time limit are interrupted, and the runs are listed instead."""
    page = unescape(store_markup(store, seconds=0))
    assert ">job</td>" in page
    assert 'The analyses take more than 0 s: store.report("report.html") runs them.' in page
    assert "<iframe" not in page
    assert "A step takes" in unescape(store._repr_html_())


def test_a_store_that_cannot_be_read_states_why(store: hta_sql.TraceStore) -> None:
    """A closed store is shown as a text with the reason; displaying it raises no error."""
    closed = hta_sql.open(store.path)
    closed.close()
    assert "is closed; open it again" in closed._repr_html_()


def test_a_description_shows_itself(store: hta_sql.TraceStore) -> None:
    """A description shows parameters, columns and SQL."""
    markup = store.describe("idle_causes")._repr_html_()
    assert "include_last_profiler_step" in markup
    assert "details" in Elements(markup).tags
    assert store.analyses.idle_causes._repr_html_() == markup


def test_names_are_completed_and_called(store: hta_sql.TraceStore) -> None:
    """Names, parameters and help of an analysis come from its SQL file."""
    assert "idle_causes" in dir(store.analyses)
    assert "gpu_ops" in dir(store.tables)
    rows = store.analyses.profiler_steps(ranks=0).rows()
    assert rows == store.run("profiler_steps", ranks=[0]).rows()
    assert store.tables.gpu_ops().rows() == store.table("gpu_ops").rows()
    call = store.analyses.idle_causes
    assert "ranks" in inspect.signature(call).parameters
    assert (call.__doc__ or "").startswith(store.describe("idle_causes").summary)
    with pytest.raises(
        AttributeError, match=r"No analysis 'idle_cause'\. Did you mean 'idle_causes'"
    ):
        store.analyses.idle_cause()


def test_analyses_and_commands_are_methods(store: hta_sql.TraceStore, tmp_path: Path) -> None:
    """``store.advice()`` runs an analysis, ``store.report(path)`` a command; others are refused."""
    methods: Any = store  # type checkers do not know the names of analyses
    assert methods.profiler_steps(ranks=0).rows() == store.run("profiler_steps", ranks=[0]).rows()
    assert methods.report(tmp_path / "page.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    assert [part.name for part in methods.export(tmp_path / "csv", "csv")][:1]
    assert {"advice", "report", "export", "run"} <= set(dir(store))
    assert store.describe("gpu_ops").name == "gpu_ops"
    with pytest.raises(AttributeError, match=r"No analysis 'stragler'\. Did you mean 'stragglers'"):
        methods.stragler()
    assert not hasattr(store, "_nothing")


@pytest.mark.parametrize("ranks", [0, np.int64(0), [0], (0,), np.array([0])])
def test_one_value_stands_for_a_list_of_it(store: hta_sql.TraceStore, ranks: object) -> None:
    """A single value is accepted instead of a list, and a value of a wrong type is an error."""
    assert store.run("profiler_steps", ranks=ranks, runs="job").rows() == (
        store.run("profiler_steps", ranks=[0], runs=["job"]).rows()
    )
    with pytest.raises(ParameterError, match="ranks must be an integer, not 'zero'"):
        store.run("profiler_steps", ranks="zero")


def shown(result: Result) -> dict[str, Any]:
    """Return the notebook output of a result's chart."""
    data: Any = result.chart()._repr_mimebundle_()
    return dict(data)


REACHES = re.compile(
    r"""<script|<foreignObject|(?:href|src)=["'](?!#|data:)|url\((?!["']?#)|@import"""
)
"""Patterns in a picture that would load an external resource."""


@pytest.mark.parametrize("name", ["temporal_breakdown", "stragglers", "gpu_kernels_by_name"])
def test_a_chart_shows_itself_without_a_request(store: hta_sql.TraceStore, name: str) -> None:
    """A chart has an image and data for front ends with their own Vega, and loads nothing."""
    bundle = shown(store.run(name))
    assert set(bundle) == {"application/vnd.vegalite.v5+json", "image/svg+xml", "text/plain"}
    picture = bundle["image/svg+xml"]
    assert picture.startswith("<svg")
    assert not REACHES.search(picture)
    data = json.dumps(bundle["application/vnd.vegalite.v5+json"] | {"$schema": ""})
    assert "://" not in data
    assert bundle["text/plain"].startswith("<Chart: ")


def test_a_picture_on_request(store: hta_sql.TraceStore) -> None:
    """Altair's renderers can create a picture, and a pickled chart is equal to the original."""
    chart = store.run("temporal_breakdown").chart()
    for picture in ("png", "svg"):
        with alt.renderers.enable(picture):
            given: Any = chart._repr_mimebundle_()
        data = given[0] if isinstance(given, tuple) else given
        assert {kind.partition("/")[2].partition("+")[0] for kind in data} == {picture}
    again = pickle.loads(pickle.dumps(chart))  # noqa: S301 - our own chart
    assert (type(again), again.to_dict()) == (type(chart), chart.to_dict())


def test_a_page_that_altair_saves_holds_its_scripts(
    store: hta_sql.TraceStore, tmp_path: Path
) -> None:
    """A page that altair saves contains its scripts, even if the chart was changed."""
    chart = store.run("temporal_breakdown").chart().properties(title="Mine")
    chart.save(tmp_path / "chart.html")
    for page in (chart.to_html(), (tmp_path / "chart.html").read_text(encoding="utf-8")):
        assert not re.search(r"<(?:script|link)[^>]+(?:src|href)=", page)


def test_the_outputs_of_a_notebook_are_drawn_without_a_network(
    store: hta_sql.TraceStore, chromium: Browser, tmp_path: Path
) -> None:
    """Tables and charts are drawn in a page, with SVG both as an image and inline."""
    names = ("temporal_breakdown", "stragglers", "gpu_kernels_by_name")
    tables = "".join(store.run(name)._repr_html_() for name in names)
    pictures = [shown(store.run(name))["image/svg+xml"] for name in names]
    images = "".join(
        f'<img src="data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()}">'
        for picture in pictures
    )
    page = tmp_path / "notebook.html"
    page.write_text(f"<!DOCTYPE html><meta charset=utf-8>{tables}{images}{''.join(pictures)}")
    chromium.requests()
    chromium.visit(page.as_uri())
    widths = "return [...document.images].map((image) => image.complete && image.naturalWidth)"
    marks = "return [...document.querySelectorAll('body > svg')].map((s) => s.querySelectorAll('path').length)"
    assert min(chromium.ask(widths)) > 300
    assert min(chromium.ask(marks)) > 0
    assert not [url for url in chromium.requests() if not url.startswith(("file:", "data:"))]
    assert not chromium.complaints()


def test_a_store_is_drawn_without_a_network_or_effect_on_the_notebook(
    store: hta_sql.TraceStore, chromium: Browser, tmp_path: Path
) -> None:
    """The frame of a store draws its page, requests nothing, and changes no style around it."""
    page, font = tmp_path / "store.html", "return getComputedStyle(document.body).font"
    page.write_text("<!DOCTYPE html><meta charset=utf-8><p>A cell.</p>", encoding="utf-8")
    chromium.visit(page.as_uri())
    plain = chromium.ask(font)
    page.write_text(page.read_text("utf-8") + store._repr_html_(), encoding="utf-8")
    chromium.requests()
    chromium.visit(page.as_uri())
    assert chromium.ask(font) == plain
    assert chromium.ask("return document.querySelector('iframe').clientHeight") > 500
    assert not [
        url for url in chromium.requests() if not url.startswith(("file:", "data:", "about:"))
    ]
    assert not chromium.complaints()
