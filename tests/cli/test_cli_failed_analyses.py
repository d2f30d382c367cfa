"""An analysis that the engine cannot compute costs itself: the report and exports go on."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from openpyxl import load_workbook

import hta_sql
from hta_sql.errors import QueryError
from hta_sql.report.advice import advice_markup
from hta_sql.report.answers import first_screen
from hta_sql.report.headlines import costs_markup, findings_markup
from hta_sql.report.overview import overview_markup
from hta_sql.report.tiles import figures_markup
from hta_sql.store.query.trace_store import TraceStore
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Cli

    Fail = Callable[..., None]

TRACES = Path(__file__).parents[1] / "traces"
SAID = "Out of Memory Error: failed to allocate 1 MB."


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest two ranks, one of them late."""
    folder = tmp_path_factory.mktemp("failed") / "job.store"
    ingest_only({rank: str(TRACES / f"late_{rank}.json") for rank in (0, 1)}, folder, run="late")
    return folder


@pytest.fixture
def opened(store: Path) -> Iterator[TraceStore]:
    """Open the store."""
    with hta_sql.open(store) as opened:
        yield opened


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Fail:
    """Return a function that makes analyses fail as if the engine ran out of memory."""
    run = TraceStore.run

    def fail(*names: str) -> None:
        def failing(store: TraceStore, name: str, *given: Any, **named: Any) -> Any:
            if name in names:
                raise QueryError(SAID)
            return run(store, name, *given, **named)

        monkeypatch.setattr(TraceStore, "run", failing)

    return fail


def test_a_section_that_fails_shows_the_error(
    store: Path, tmp_path: Path, fail: Fail, cli: Cli
) -> None:
    """The section shows the engine's message and what to do; all other sections are written."""
    assert cli("report", store, "-o", tmp_path / "whole.html").code == 0
    fail("stragglers", "kernel_table")
    done = cli("report", store, "-o", tmp_path / "report.html")
    assert done.code == 1
    text = f"kernel_table could not be computed: {SAID}"
    assert f"warning: {text}" in done.err
    assert "The report shows errors instead of kernel_table, stragglers" in done.err
    whole, page = (
        unescape((tmp_path / f"{name}.html").read_text()) for name in ("whole", "report")
    )
    sections = [re.findall(r'<section id="(\w+)"', one) for one in (whole, page)]
    assert sections[0] == sections[1]
    for name in ("kernel_table", "stragglers"):
        (section,) = re.findall(rf'<section id="{name}">.*?</section>', page, re.DOTALL)
        assert f"{name} could not be computed: {SAID}" in section
        assert f"hta-sql run STORE {name}" in section
    assert "No straggler" not in page


def test_the_first_screen_goes_on_without_an_analysis(opened: TraceStore, fail: Fail) -> None:
    """Without key figures or stragglers, the first screen shows the step and the errors."""
    fail("kpis", "stragglers")
    first = first_screen(opened, {})
    page = unescape(overview_markup(first, set()))
    assert f"kpis could not be computed: {SAID}" in page
    assert f"stragglers could not be computed: {SAID}" in page
    assert "The capture takes" in page
    assert 'class="say' not in page
    figures = re.search(r"<script[^>]*>(.*)</script>", figures_markup(first), re.DOTALL)
    assert figures
    assert json.loads(figures[1])["failures"].keys() == {"kpis", "stragglers"}


@pytest.mark.parametrize("name", ["jobs", "rank_health", "step_accounting"])
def test_the_first_screen_states_nothing_that_is_unknown(
    name: str, opened: TraceStore, fail: Fail
) -> None:
    """Panels whose analysis fails show the error, and never that there is nothing."""
    fail(name, "advice", "top_costs", "findings")
    first = first_screen(opened, {})
    panels = {
        name: overview_markup(first, set()),
        "advice": advice_markup(first, {}, set(), 10),
        "top_costs": costs_markup(first, {}, 10),
        "findings": findings_markup(first, {}),
    }
    for failed, markup in panels.items():
        text = unescape(markup)
        assert f"{failed} could not be computed: {SAID}" in text
        assert not re.search("no profiler steps|no GPU activity|No recommendation|No errors", text)


def test_a_sheet_that_fails_shows_the_error(
    store: Path, tmp_path: Path, fail: Fail, cli: Cli
) -> None:
    """A sheet of an analysis that fails has the error; the other sheets have their rows."""
    fail("kpis")
    names = ("temporal_breakdown", "kpis", "gpu_kernels_by_name")
    done = cli("export", store, *names, "-o", tmp_path / "job.xlsx")
    assert done.code == 1
    assert f"warning: kpis could not be computed: {SAID}" in done.err
    assert "Wrote 2 results" in done.err
    book = load_workbook(tmp_path / "job.xlsx")
    assert book.sheetnames == list(names)
    assert book["kpis"]["A1"].value == f"kpis could not be computed: {SAID}"
    assert book["gpu_kernels_by_name"].max_row > 1


def test_a_file_that_fails_is_missing(store: Path, tmp_path: Path, fail: Fail, cli: Cli) -> None:
    """An export to a folder has no file for an analysis that fails, and all others."""
    fail("kpis")
    names = ("kpis", "temporal_breakdown")
    done = cli("export", store, *names, "--format", "csv", "-o", tmp_path / "out")
    assert done.code == 1
    assert f"warning: kpis could not be computed: {SAID}" in done.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["temporal_breakdown.csv"]
    with (tmp_path / "out" / "temporal_breakdown.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 2
