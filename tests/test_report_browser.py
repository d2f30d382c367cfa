"""The report in a browser without a network: drawn, chosen from, searched, sorted, printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report_pages import Browser, job_report


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report about a simulated job of four ranks."""
    return job_report(tmp_path_factory)[1]


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.slow)])
def test_every_chart_is_drawn_without_a_network(page: Path, chromium: Browser, width: int) -> None:
    """In a browser, panel by panel: marks in every chart, no complaint, no request but the file itself."""
    chromium.complaints()
    chromium.requests()
    chromium.open(page, width)
    assert chromium.ask("return document.querySelectorAll('[data-drawn]').length") == 0
    total = chromium.ask("return document.querySelectorAll('.chart').length")
    drawn = 0
    for key in chromium.ask("return [...document.querySelectorAll('nav a')].map(a => a.hash)"):
        chromium.go(key)
        places = "[...document.querySelectorAll('.panel.open .chart')]"
        drawn += chromium.ask(f"return {places}.filter(p => p.dataset.drawn === 'yes').length")
        # A chart that would have no marks has a sentence in their place.
        marks = "'.role-mark path, .role-mark line'"
        sentence = (
            "[...p.querySelectorAll('.role-mark text')].some(t => t.textContent.includes(' '))"
        )
        empty = f"p => !p.querySelector('canvas') && !p.querySelector({marks}) && !({sentence})"
        assert chromium.ask(f"return {places}.filter({empty}).map(p => p.dataset.chart)") == []
        assert chromium.ask("return document.documentElement.scrollWidth <= window.innerWidth")
    assert drawn == total > 4
    assert chromium.complaints() == []
    assert [url for url in chromium.requests() if not url.startswith(("data:", "blob:"))] == [
        page.as_uri()
    ]


def test_the_first_screen_needs_no_scrolling(page: Path, chromium: Browser) -> None:
    """At 1400 x 900 all of it is seen, down to what to do."""
    chromium.open(page, 1400)
    last = (
        "[...document.querySelectorAll('#overview .advice')].pop().getBoundingClientRect().bottom"
    )
    assert chromium.ask(f"return {last} <= 900")


def test_a_link_opens_its_panel(page: Path, chromium: Browser) -> None:
    """Only that one is seen; the side bar says which."""
    chromium.open(page)
    chromium.go("#stragglers")
    seen = "[...document.querySelectorAll('.panel')].filter(p => p.offsetHeight)"
    assert chromium.ask(f"return {seen}.length") == 1
    assert chromium.ask(f"return !!{seen}[0].querySelector('#stragglers')")
    now = chromium.ask("return document.querySelector('nav a[aria-current]').textContent")
    assert now == "Communication"


CHOOSE = """
const select = document.querySelector(`select[name=${arguments[0]}]`);
document.documentElement.dataset.ready = 'no';
select.value = arguments[1];
select.dispatchEvent(new Event('change'));
"""


def test_a_rank_is_chosen_for_the_whole_page(page: Path, chromium: Browser) -> None:
    """Tables and the bar of a step follow; what cannot says so."""
    chromium.open(page)
    before = chromium.ask("return document.querySelector('#overview .key').textContent")
    chromium.ask(CHOOSE, "rank", "3")
    chromium.wait()
    assert chromium.ask("return document.querySelector('#overview .key').textContent") != before
    assert "Mean of rank 3, all steps" in chromium.ask(
        "return document.querySelector('#overview .of').textContent"
    )
    chromium.go("#temporal_breakdown")
    seen = "[...document.querySelectorAll('#temporal_breakdown tbody tr')].filter(r => !r.hidden)"
    assert chromium.ask(f"return {seen}.map(r => r.cells[0].textContent)") == ["3"]
    bars = (
        "return document.querySelectorAll('#temporal_breakdown .mark-rect.role-mark path').length"
    )
    of_one = chromium.ask(bars)
    assert chromium.ask("return document.querySelector('#kpis .scope').textContent") == (
        "Table: of all ranks."
    )
    chromium.ask(CHOOSE, "rank", "")
    chromium.wait()
    assert chromium.ask(bars) == 4 * of_one > 0
    chromium.go("#overview")
    assert chromium.ask("return document.querySelector('#overview .key').textContent") == before


def test_rows_are_searched(page: Path, chromium: Browser) -> None:
    """Those with the words stay, and their number is said."""
    chromium.open(page)
    chromium.go("#kernel_table")
    find = (
        "const box = document.querySelector('#kernel_table .find input');"
        "box.value = arguments[0]; box.dispatchEvent(new Event('input', {bubbles: true}));"
        "const rows = [...document.querySelectorAll('#kernel_table tbody tr')];"
        "return [rows.filter(r => !r.hidden).map(r => r.textContent), rows.length,"
        " box.nextElementSibling.value];"
    )
    rows, total, said = chromium.ask(find, "NCCL")
    assert 0 < len(rows) < total
    assert all("nccl" in row.lower() for row in rows)
    assert said == f"{len(rows)} of these {total} rows"
    assert len(chromium.ask(find, "")[0]) == total


def test_the_theme_changes_the_charts_too(page: Path, chromium: Browser) -> None:
    """A button, reached by keys; light again by a second press."""
    chromium.open(page)
    chromium.go("#stragglers")
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = chromium.ask(ground)
    press = (
        "document.documentElement.dataset.ready = 'no';"
        "const b = document.querySelector('button.theme'); b.focus(); b.click();"
        "return document.activeElement === b"
    )
    assert chromium.ask(press)
    chromium.wait()
    assert chromium.ask(ground) != light
    label = (
        "return document.querySelector('#stragglers .role-axis-label text').getAttribute('fill')"
    )
    assert chromium.ask(label) == "#e8ecf0"
    chromium.ask(press)
    chromium.wait()
    assert chromium.ask(ground) == light


def test_paper_shows_everything(page: Path, chromium: Browser) -> None:
    """Before printing every chart is drawn and every table open."""
    chromium.open(page)
    chromium.ask("dispatchEvent(new Event('beforeprint'))")
    empty = "[...document.querySelectorAll('.chart')].filter(p => !p.querySelector('svg')).length"
    assert chromium.ask(f"return {empty}") == 0
    assert chromium.ask("return document.querySelectorAll('details.rows:not([open])').length") == 0


def test_tables_sort_by_exact_values(page: Path, chromium: Browser) -> None:
    """A click sorts numbers downwards, another one upwards; texts the other way round."""
    chromium.open(page)
    chromium.go("#temporal_breakdown")
    read = (
        "const t = document.querySelector('#temporal_breakdown table');"
        "const at = [...t.tHead.rows[0].cells].findIndex(c => c.dataset.name === 'idle_ns');"
        "for (let i = 0; i < arguments[0]; i++) t.tHead.rows[0].cells[at].firstChild.click();"
        "return [...t.tBodies[0].rows].map(r => Number(r.cells[at].dataset.v));"
    )
    as_it_is = chromium.ask(read, 0)
    assert len(set(as_it_is)) > 1
    assert chromium.ask(read, 1) == sorted(as_it_is, reverse=True)
    assert chromium.ask(read, 1) == sorted(as_it_is)
    classes = (
        "const t = document.querySelector('#gpu_kernel_types table');"
        "const at = [...t.tHead.rows[0].cells].findIndex(c => c.dataset.name === 'classes');"
        "t.tHead.rows[0].cells[at].firstChild.click();"
        "return [...t.tBodies[0].rows].map(r => r.cells[at].textContent);"
    )
    names = chromium.ask(classes)
    assert names == sorted(names)
    assert chromium.complaints() == []
