"""Tests of the report in an offline browser: charts, selection, search, sorting and printing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.report_pages import Browser, job_report


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the report on a simulated job of four ranks."""
    return job_report(tmp_path_factory)[1]


@pytest.mark.parametrize("width", [1280, 390])
def test_every_chart_is_drawn_without_a_network(page: Path, chromium: Browser, width: int) -> None:
    """Every chart in every panel has marks, and the browser logs no messages.

    It requests no file except the page itself.
    """
    chromium.complaints()
    chromium.requests()
    chromium.open(page, width)
    assert chromium.ask("return document.querySelectorAll('[data-drawn]').length") == 0
    total = chromium.ask("return document.querySelectorAll('.chart').length")
    drawn = 0
    for key in chromium.ask("return [...document.querySelectorAll('nav > a')].map(a => a.hash)"):
        chromium.go(key)
        places = "[...document.querySelectorAll('.panel.open .chart')]"
        drawn += chromium.ask(f"return {places}.filter(p => p.dataset.drawn === 'yes').length")
        # A chart without marks shows a sentence instead.
        marks = "'.role-mark path, .role-mark line'"
        sentence = (
            "[...p.querySelectorAll('.role-mark text')].some(t => t.textContent.includes(' '))"
        )
        empty = f"p => !p.querySelector('canvas') && !p.querySelector({marks}) && !({sentence})"
        assert chromium.ask(f"return {places}.filter({empty}).map(p => p.dataset.chart)") == []
        assert chromium.ask("return document.documentElement.scrollWidth <= window.innerWidth")
    assert drawn == total > 4
    assert chromium.complaints() == []
    assert [
        url
        for url in chromium.requests()
        if not url.startswith(("data:", "blob:", "chrome:", "chrome-untrusted:"))
    ] == [page.as_uri()]


ALIKE = """
return [...document.querySelectorAll('.panel.open .chart .role-axis-label')].filter((axis) => {
  const cut = [...axis.querySelectorAll('text')].map((t) => t.textContent).filter((t) => t.includes('…'));
  return new Set(cut).size < cut.length;
}).map((axis) => axis.textContent);
"""


def test_names_that_are_cut_on_a_phone_differ_still(page: Path, chromium: Browser) -> None:
    """Names with equal ends are shortened to distinct labels, and captions explain them."""
    chromium.open(page, 390)
    chromium.go("#topic-kernels")
    assert "…" in chromium.ask("return document.querySelector('#kernel_table .chart').textContent")
    assert chromium.ask(ALIKE) == []
    notes = chromium.ask("return document.querySelector('#kernel_table .notes').textContent")
    assert notes.startswith("Above: ")
    strip = "const n = document.querySelector('nav'), t = n.querySelector('[aria-current=page]').getBoundingClientRect();"
    assert chromium.ask(f"{strip} return t.left >= 0 && t.right <= innerWidth && scrollY === 0")


def test_the_first_screen_needs_no_scrolling(page: Path, chromium: Browser) -> None:
    """At a width of 1400 pixels, the first screen with its recommendations needs no scrolling."""
    chromium.open(page, 1400)
    last = (
        "[...document.querySelectorAll('#overview .advice')].pop().getBoundingClientRect().bottom"
    )
    assert chromium.ask(f"return {last} <= 900")


@pytest.mark.parametrize("width", [1400, 1000])
def test_what_is_written_into_the_bar_of_a_step_is_whole(
    page: Path, chromium: Browser, width: int
) -> None:
    """A label that does not fit into its part of the bar is omitted; the others are complete."""
    chromium.open(page, width)
    parts = (
        "return [...document.querySelectorAll('[data-run] .step span')].filter(p => p.textContent)"
        ".map(p => { const r = document.createRange(); r.selectNodeContents(p);"
        " return [p.clientWidth, r.getBoundingClientRect().width]; })"
    )
    written = chromium.ask(parts)
    assert written
    assert all(text + 7 <= room for room, text in written)
    chromium.go("#advice")
    chromium.go("#overview")
    assert chromium.ask(parts) == written


def test_a_link_opens_its_panel(page: Path, chromium: Browser) -> None:
    """Only the panel of the link target is visible, and the side bar marks it."""
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
    """The selected rank filters the tables and the step bar; unfiltered parts have a note."""
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


def test_a_step_is_chosen_for_bars_that_are_means(page: Path, chromium: Browser) -> None:
    """A selected step changes the bar of a rank, and the note about all steps disappears."""
    chromium.open(page)
    chromium.go("#step_accounting")
    read = "return [...document.querySelectorAll('#step_accounting .mark-rect path')].map(p => p.getAttribute('d'))"
    of_all = chromium.ask(read)
    steps = chromium.ask(
        "return [...document.querySelector('select[name=step]').options].map(o => o.value)"
    )
    chromium.ask(CHOOSE, "step", steps[1])
    chromium.wait()
    of_one = chromium.ask(read)
    assert len(of_one) == len(of_all) > 0
    assert of_one != of_all
    assert "Chart" not in chromium.ask(
        "return document.querySelector('#step_accounting .scope').textContent"
    )


def test_a_question_is_answered_by_one_click(page: Path, chromium: Browser) -> None:
    """Each question on the first screen links to its answer."""
    chromium.open(page)
    links = "[...document.querySelectorAll('#overview .questions a:not(.why)')]"
    for at, answer in enumerate(chromium.ask(f"return {links}.map(a => a.hash)")):
        chromium.go("#overview")
        chromium.ask(f"document.documentElement.dataset.ready = 'no'; {links}[{at}].click()")
        chromium.wait()
        place = chromium.ask(
            f"const b = document.querySelector('{answer}').getBoundingClientRect(); return [b.top, b.height]"
        )
        assert -20 <= place[0] < 700, answer
        assert place[1] > 80, answer


def test_rows_are_searched(page: Path, chromium: Browser) -> None:
    """A search keeps only matching rows and states how many there are."""
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


def _light(color: str) -> float:
    """Return the mean of red, green and blue, as a fraction of 1."""
    return sum(map(int, re.findall(r"\d+", color))) / 3 / 255


def test_the_theme_changes_the_charts_too(page: Path, chromium: Browser) -> None:
    """A button toggles the theme, and high values contrast with either background."""
    chromium.open(page)
    chromium.go("#stragglers")
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = chromium.ask(ground)
    chromium.go("#utilization_over_time")
    ends = (
        "const stops = [...document.querySelectorAll('#utilization_over_time linearGradient stop')];"
        "return [stops[0], stops.at(-1)].map(stop => stop.getAttribute('stop-color'))"
    )
    least, most = map(_light, chromium.ask(ends))
    assert least > 0.8
    assert most < 0.25
    chromium.go("#stragglers")
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
    chromium.go("#utilization_over_time")
    least, most = map(_light, chromium.ask(ends))
    assert least < 0.2
    assert most > 0.6
    chromium.ask(press)
    chromium.wait()
    assert chromium.ask(ground) == light


def test_paper_shows_what_matters_of_each_topic(page: Path, chromium: Browser) -> None:
    """For printing, charts are drawn, tables are open, and omitted sections are listed by name."""
    chromium.open(page)
    chromium.ask("dispatchEvent(new Event('beforeprint'))")
    seen = "[...document.querySelectorAll('main section')].filter(s => s.offsetHeight)"
    assert chromium.ask(f"return {seen}.flatMap(s => [...s.querySelectorAll('.chart')]).length") > 3
    empty = f"{seen}.filter(s => s.querySelector('.chart') && !s.querySelector('.chart svg'))"
    assert chromium.ask(f"return {empty}.map(s => s.id)") == []
    closed = f"{seen}.filter(s => s.querySelector('details.rows:not([open])'))"
    assert chromium.ask(f"return {closed}.map(s => s.id)") == []
    hidden = (
        "[...document.querySelectorAll('#topic-timeline ~ section')].filter(s => !s.offsetHeight)"
    )
    names = chromium.ask(f"return {hidden}.map(s => s.querySelector('h3').textContent)")
    left = chromium.ask("return document.querySelector('#topic-timeline ~ .left').innerText")
    assert left == f"Not on paper: {', '.join(names)}."
    notes = "[...document.querySelectorAll('#findings > details:not(.sql)')]"
    assert chromium.ask(f"return {notes}.every(d => d.open)")
    chromium.ask("dispatchEvent(new Event('afterprint'))")
    assert not chromium.ask(f"return {notes}.some(d => d.open)")


def test_tables_sort_by_exact_values(page: Path, chromium: Browser) -> None:
    """The first click sorts numbers in descending order, and the second in ascending order.

    Strings are first sorted in ascending order.
    """
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
    hovered = (
        "const c = document.querySelector('#temporal_breakdown td[data-v]');"
        "c.dispatchEvent(new MouseEvent('mouseover', {bubbles: true})); return [c.title, c.dataset.v];"
    )
    title, exact = chromium.ask(hovered)
    assert title == f"{int(exact):,} ns"
    classes = (
        "const t = document.querySelector('#gpu_kernel_types table');"
        "const at = [...t.tHead.rows[0].cells].findIndex(c => c.dataset.name === 'classes');"
        "t.tHead.rows[0].cells[at].firstChild.click();"
        "return [...t.tBodies[0].rows].map(r => r.cells[at].textContent);"
    )
    names = chromium.ask(classes)
    assert names == sorted(names)
    assert chromium.complaints() == []


WIDE = "const box = document.querySelector('#kernel_table .table'); const shown = [...box.querySelectorAll('th')].filter(h => h.offsetWidth).map(h => h.dataset.name);"


@pytest.mark.parametrize("width", [1400, 390])
def test_a_wide_table_shows_the_columns_that_fit(page: Path, chromium: Browser, width: int) -> None:
    """The most important columns fit, and a button shows or hides the others."""
    chromium.open(page, width)
    chromium.go("#kernel_table")
    chromium.ask("document.querySelector('#kernel_table details.rows').open = true")
    chromium.wait("return document.querySelector('#kernel_table .columns')")
    shown, fits = chromium.ask(f"{WIDE} return [shown, box.scrollWidth <= box.clientWidth + 1]")
    assert fits
    assert {"rank", "short_name", "kernel_count", "sum_ns"} <= set(shown)
    button = "const b = document.querySelector('#kernel_table .columns'); b.focus();"
    total = chromium.ask("return document.querySelectorAll('#kernel_table th').length")
    assert chromium.ask(f"{button} return b.textContent") == f"All {total} columns"
    chromium.press("\ue007")
    assert len(chromium.ask(f"{WIDE} return shown")) == total
    assert chromium.ask(f"{button} return b.textContent") == f"Only {len(shown)} columns"
    chromium.press("\ue007")
    assert chromium.ask(f"{WIDE} return shown") == shown


def test_the_page_is_used_by_keys_alone(page: Path, chromium: Browser) -> None:
    """A panel can be selected and a table opened and sorted with the keyboard only.

    The focus is visible.
    """
    chromium.complaints()
    chromium.open(page, 1400)
    chromium.tab_to("nav a[href='#topic-timeline']")
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert chromium.ask(outline) == "solid"
    chromium.press("\ue007")
    chromium.wait(
        "return location.hash === '#topic-timeline' && document.documentElement.dataset.ready === 'yes'"
    )
    chromium.tab_to("#temporal_breakdown details.rows > summary")
    chromium.press("\ue007")
    chromium.wait("return document.querySelector('#temporal_breakdown details.rows').open")
    chromium.tab_to("#temporal_breakdown th[data-name=idle_ns] button")
    assert chromium.ask(outline) == "solid"
    chromium.press("\ue007")
    sort = "return document.querySelector('#temporal_breakdown th[data-name=idle_ns]').ariaSort"
    assert chromium.ask(sort) == "descending"
    chromium.go("#step_time_stats")
    assert chromium.complaints() == []


def test_names_and_sql_are_copied_whole(page: Path, chromium: Browser) -> None:
    """The button copies the SQL, and a folded name in a cell is copied in full."""
    chromium.complaints()
    chromium.open(page, 1400)
    chromium.allow_clipboard()
    chromium.go("#kernel_table")
    sql = "#kernel_table > details:not(.rows)"
    chromium.ask(f"document.querySelector('{sql}').open = true")
    chromium.tab_to(f"{sql} button.copy")
    chromium.press("\ue007")
    chromium.wait(f"return document.querySelector('{sql} button.copy').textContent === 'Copied'")
    assert chromium.pasted() == chromium.ask(
        f"return document.querySelector('{sql} pre').textContent"
    )
    chromium.ask("document.querySelector('#kernel_table details.rows').open = true")
    chromium.wait("return document.querySelector('#kernel_table .columns')")
    chromium.ask("document.querySelector('#kernel_table .columns').click()")
    folded = "const cell = [...document.querySelectorAll('#kernel_table td s')].map(s => s.parentElement).find(c => c.offsetWidth);"
    chromium.ask(f"{folded} getSelection().selectAllChildren(cell)")
    chromium.press("c", control=True)
    name = chromium.ask(f"{folded} return cell.textContent")
    assert chromium.pasted() == name
    assert len(name) > 84
    assert "…" not in name
    chromium.ask(f"{folded} cell.dispatchEvent(new MouseEvent('mouseover', {{bubbles: true}}))")
    assert chromium.ask(f"{folded} return cell.title") == name
    assert chromium.complaints() == []
