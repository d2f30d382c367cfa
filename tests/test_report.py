"""Tests of the report: one file that opens anywhere and never runs content of a trace."""

from __future__ import annotations

import html
import io
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from markupsafe import escape

import hta_sql
from hta_sql import charts
from hta_sql.cli import main
from hta_sql.errors import RankError
from hta_sql.library.objects import load_library
from hta_sql.report import write_report
from hta_sql.report.contents import topics
from hta_sql.report.first_screen import QUESTIONS
from hta_sql.report.links import linked
from hta_sql.results.result import Result
from hta_sql.results.without_device import NO_DEVICE
from tests.drawn_marks import charts_in
from tests.many_ranks import ManyRanks
from tests.report_pages import Browser, Elements, job_report, kernel, section_of

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

MEGABYTE = 1_000_000
PAYLOADS = [
    "</script><script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title = 'owned'\">",
    "--><svg onload=\"document.title='owned'\">",
    "' onmouseover='document.title=1' \" x=\"",
    "\x1b[31mred\x00\n\u202egnp.exe\u2066",
    "{{constructor.constructor('return 1')()}} ${1} </pre></details>",
    "x" * 10_000,
]


@pytest.fixture(scope="module")
def job_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Open the store of a simulated job of four ranks."""
    with hta_sql.open(job_report(tmp_path_factory)[0]) as store:
        yield store


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the report on the simulated job."""
    return job_report(tmp_path_factory)[1]


def test_the_page_is_whole_and_reaches_nothing(page: Path) -> None:
    """Links stay within the page, no element has an event handler, and every chart has its data."""
    text = page.read_text(encoding="utf-8")
    elements = Elements(text)
    assert elements.handlers == []
    assert all(link.startswith(("#", "data:")) for link in elements.links)
    targets = set(re.findall(r' id="([^"]+)"', text))
    assert {link[1:] for link in elements.links if link.startswith("#")} <= targets
    assert len(text) < 3 * MEGABYTE
    specs = charts_in(text)
    assert set(specs) == set(re.findall(r'data-chart="([^"]+)"', text))
    assert len(specs) > 10
    for spec in specs.values():
        assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
        assert all(spec["datasets"].values())


def test_what_costs_most_stands_first_with_its_numbers(page: Path, job_store: TraceStore) -> None:
    """Each cost of at least 0.1 % has an entry, and the highest cost comes first."""
    costs = section_of(page.read_text(encoding="utf-8"), "costs")
    shares = [float(share) for share in re.findall(r'class="share">([\d.]+) %', costs)]
    rows = job_store.run("top_costs").df()
    assert shares == [round(share, 1) for share in rows["cost_pct"] if share >= 0.1]
    assert [float(width) for width in re.findall(r'style="width:([\d.]+)%', costs)] == shares
    assert "most on rank" in costs


def test_every_topic_has_its_analyses(page: Path) -> None:
    """Each analysis has a chart or a table with its SQL, or is in the list of omitted sections."""
    text = page.read_text(encoding="utf-8")
    sections = [section for topic in topics(load_library()) for section in topic.sections]
    assert {"temporal_breakdown", "gpu_kernel_types", "rank_health"} <= {s.name for s in sections}
    left = section_of(text, "not-shown")
    for section in sections:
        markup = section_of(text, section.name)
        assert bool(markup) != (f'<li id="{section.name}"' in left), section.name
        if markup:
            shown = "<table>" if section.has_table else 'class="chart"'
            assert shown in markup, section.name
            assert f"CREATE OR REPLACE MACRO {section.name}" in markup, section.name
    assert section_of(text, "temporal_breakdown").count('class="chart"') == 1


def test_the_questions_are_those_of_the_documentation(page: Path) -> None:
    """The page answers the documented questions in order, or links to the reason why it cannot."""
    text = (Path(__file__).parents[1] / "docs" / "questions.md").read_text(encoding="utf-8")
    table = text.partition("Other commands")[0]
    asked = re.findall(r"^\| (.+?) \| `hta-sql run STORE (\w+)` \|", table, re.MULTILINE)
    assert list(QUESTIONS.items()) == asked
    overview = section_of(page.read_text(encoding="utf-8"), "overview")
    for question, answer in asked:
        assert f'<a href="#{answer}">{escape(question)}</a>' in overview or (
            f'<li>{escape(question)} <a class="why" href="#not-shown">' in overview
        ), question


def test_a_message_calls_analyses_by_their_headings() -> None:
    """Analysis names in a message become links or headings, and names from a trace are escaped."""
    message = "Rank 1 is late in <b>; look at step_accounting. links says more than no_such_thing"
    assert linked(message, {"step_accounting"}) == (
        'Rank 1 is late in &lt;b&gt;; look at <a href="#step_accounting">“Where a step goes”</a>. '
        "links says more than no_such_thing"
    )
    assert linked("look at links", set()) == "look at “Links between ranks”"


@pytest.fixture(scope="module")
def narrow_page(
    job_store: TraceStore, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str, str]:
    """Write a report on two ranks with three rows per table; return its path and the output."""
    out, err = io.StringIO(), io.StringIO()
    page = tmp_path_factory.mktemp("narrow") / "out.html"
    scope = ("--runs", "job", "--ranks", "1,2", "--rows", "3", "--title", "Mine", "--all")
    with redirect_stdout(out), redirect_stderr(err):
        assert main(["report", str(job_store.path), "-o", str(page), *scope]) == 0
    return page, out.getvalue(), err.getvalue()


def test_the_sql_on_the_page_gives_the_rows_on_the_page(
    job_store: TraceStore, narrow_page: tuple[Path, str, str]
) -> None:
    """The SQL of a section can be pasted, because it contains the scope, and returns its rows."""
    text = narrow_page[0].read_text(encoding="utf-8")
    call = html.unescape(re.findall(r"<pre>(.*?)</pre>", section_of(text, "temporal_breakdown"))[0])
    assert call == "FROM temporal_breakdown_v1(runs := ['job'], ranks := [1, 2]);"
    rows = job_store.run("temporal_breakdown", runs=["job"], ranks=[1, 2]).rows()
    assert job_store.sql(call).rows() == rows
    exact = re.findall(r'data-v="(\d+)"', section_of(text, "temporal_breakdown"))
    assert str(rows[0][2]) in exact


def test_rows_that_are_left_out_are_counted(
    job_store: TraceStore, narrow_page: tuple[Path, str, str]
) -> None:
    """A note states how many rows are shown, how they were selected, and how they are sorted."""
    section = section_of(narrow_page[0].read_text(encoding="utf-8"), "idle_time_breakdown")
    rows = job_store.run("idle_time_breakdown", ranks=[1, 2]).df()
    said = f"The 3 of {len(rows):,} rows with the largest values of “Idle”, "
    assert f"{said}sorted by “Rank”, then “Device”." in section
    kept = [int(value) for value in re.findall(r'data-v="(\d{5,})"', section)]
    highest = rows.sort_values("idle_ns", ascending=False, kind="stable").head(3)
    assert kept == list(highest.sort_index()["idle_ns"])


def test_a_page_has_the_main_sections_and_those_that_it_names(
    job_store: TraceStore, page: Path, tmp_path: Path
) -> None:
    """Other analyses are listed by name; the page with all of them does not list any."""
    text = write_report(job_store, tmp_path / "main.html").read_text(encoding="utf-8")
    more = section_of(text, "more")
    named = {
        name
        for table in ("advice", "top_costs")
        for name in job_store.run(table).df()["next_analysis"].dropna()
    }
    for topic in topics(load_library()):
        for section in topic.sections:
            is_listed = f"<code>{section.name}</code>" in more
            left = f'<li id="{section.name}"' in section_of(text, "not-shown")
            assert bool(section_of(text, section.name)) + is_listed + left == 1, section.name
            if section.is_main or section.name in named:
                assert not is_listed, section.name
    assert "<code>queue_length_summary</code>" in more
    assert not section_of(page.read_text(encoding="utf-8"), "more")


def test_an_analysis_that_a_finding_names_has_a_section(
    job_store: TraceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name in a text of the first screen is enough."""
    told = "Two queues are full; look at queue_length_summary."
    costs = job_store.run("top_costs").arrow()
    texts = pa.array([told] * len(costs), pa.string())
    changed = costs.set_column(costs.column_names.index("message"), "message", texts)
    run = type(job_store).run

    def telling(store: TraceStore, name: str, **given: Any) -> Result:
        result = run(store, name, **given)
        return Result.of_rows(changed, result.analysis) if name == "top_costs" else result

    monkeypatch.setattr(type(job_store), "run", telling)
    text = write_report(job_store, tmp_path / "told.html").read_text(encoding="utf-8")
    assert section_of(text, "queue_length_summary")


def test_equal_stores_give_equal_pages(job_store: TraceStore, page: Path, tmp_path: Path) -> None:
    """Equal stores give byte-identical pages."""
    again = write_report(job_store, tmp_path / "again.html", everything=True)
    assert again.read_bytes() == page.read_bytes()


def test_without_gpu_activity_sentences_stand_in_for_charts(
    ingest_trace: Callable[..., TraceStore], tmp_path: Path
) -> None:
    """Sections without rows are replaced by sentences that state what they need."""
    store = ingest_trace("host_only.json")
    text = write_report(store, tmp_path / "a.html").read_text(encoding="utf-8")
    left = section_of(text, "not-shown").partition(f"<p>{NO_DEVICE}</p>")[0]
    assert '<li id="temporal_breakdown"' in left.rpartition("<ul>")[2]
    assert NO_DEVICE in section_of(text, "costs")
    assert "The trace has no kernels, copies or memsets." in section_of(text, "findings")


@pytest.mark.parametrize(
    "trace",
    [
        "no_events.json",
        "nothing_lasts.json",
        "suspect_and_unlinked.json",
    ],
)
def test_odd_traces_have_reports(
    trace: str, ingest_trace: Callable[..., TraceStore], tmp_path: Path
) -> None:
    """Traces that are empty or have kernels of zero or impossible duration still have a report."""
    text = write_report(ingest_trace(trace), tmp_path / "a.html").read_text(encoding="utf-8")
    assert "The chart could not be drawn" not in text
    assert section_of(text, "rank_health")


def test_several_runs_are_told_apart(tiny_store: TraceStore, tmp_path: Path) -> None:
    """Each run has its own sections, and tables have a run column; ``runs`` selects runs."""
    both = write_report(tiny_store, tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<title>base, test: performance</title>" in both
    assert "<h3>Run base</h3>" in both
    assert ">Run</button>" in section_of(both, "temporal_breakdown")
    path = write_report(tiny_store, tmp_path / "b.html", runs=["test"], title="One <run>")
    one = path.read_text(encoding="utf-8")
    assert "<h1>One &lt;run&gt;</h1>" in one
    assert ">Run</button>" not in section_of(one, "temporal_breakdown")
    with pytest.raises(RankError, match="nope"):
        write_report(tiny_store, tmp_path / "c.html", runs=["nope"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html"]


def page_of_kernels(folder: Path, names: list[str]) -> Path:
    """Write a report on one kernel per name."""
    trace = {"traceEvents": [kernel(number, name) for number, name in enumerate(names)]}
    (folder / "trace.json").write_text(json.dumps(trace), encoding="utf-8")
    with hta_sql.ingest(folder / "trace.json", folder / "a.store", run="run") as store:
        return write_report(store, folder / "a.html", title="Safe")


@pytest.fixture(scope="module")
def payload_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report on kernels with hostile names."""
    return page_of_kernels(tmp_path_factory.mktemp("payloads"), PAYLOADS)


def test_names_make_no_elements(payload_page: Path, tmp_path: Path) -> None:
    """A page with hostile names has the same elements as one with plain names."""
    plain = page_of_kernels(tmp_path, [f"k{number}" for number in range(len(PAYLOADS))])
    plain_tags = Elements(plain.read_text(encoding="utf-8")).tags
    # Long names have a folded middle, which is an <s> element.
    tags = Elements(payload_page.read_text(encoding="utf-8")).tags
    assert [tag for tag in tags if tag != "s"] == plain_tags


def test_names_of_a_trace_are_text(payload_page: Path, page: Path) -> None:
    """No kernel name becomes an element or an event handler."""
    text = payload_page.read_text(encoding="utf-8")
    elements = Elements(text)
    assert set(elements.tags) <= set(Elements(page.read_text(encoding="utf-8")).tags) | {"s"}
    assert not {"img", "svg"} & set(Elements(text.rpartition("</main>")[0]).tags)
    assert elements.handlers == []
    assert "&lt;img src=x onerror=" in text
    # Only the page itself has newlines. Other control and bidi characters are escaped.
    names = text.rpartition("</main>")[0]
    assert not [c for c in names if not c.isprintable() and c != "\n"]
    assert "x" * 6_000 not in names


def test_the_command_writes_it(
    job_store: TraceStore,
    narrow_page: tuple[Path, str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The command prints one line to stderr and nothing to stdout; an unknown rank is an error."""
    page, out, err = narrow_page
    assert out == ""
    assert err.startswith("Wrote ")
    assert err.count("\n") == 1
    assert f"Wrote {page} (" in err
    assert "<h1>Mine</h1>" in page.read_text(encoding="utf-8")
    no = str(tmp_path / "no.html")
    assert main(["report", str(job_store.path), "-o", no, "--ranks", "7"]) == 1
    assert "No rank 7" in capsys.readouterr().err


def test_the_command_opens_it(
    ingest_trace: Callable[..., TraceStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --open, the report is opened after it is written."""
    opened: list[str] = []
    monkeypatch.setattr("click.launch", opened.append)
    page = tmp_path / "a.html"
    store = str(ingest_trace("host_only.json").path)
    assert main(["report", store, "-o", str(page), "--open"]) == 0
    assert opened == [str(page)]
    assert page.exists()


@pytest.fixture(scope="module")
def many_page(job_store: TraceStore, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report on 4,096 ranks."""
    path = tmp_path_factory.mktemp("many") / "many.html"
    return write_report(ManyRanks(job_store), path)  # type: ignore[arg-type]  # what a report needs of a store


@pytest.mark.slow(reason="large")
def test_4096_ranks_make_a_page_below_10_mb(many_page: Path) -> None:
    """Rows that do not fit are omitted with a note, but the main charts are complete."""
    text = many_page.read_text(encoding="utf-8")
    assert 1 * MEGABYTE < len(text) < 10 * MEGABYTE
    for name in ("temporal_breakdown", "idle_time_breakdown", "comm_comp_overlap"):
        section = section_of(text, name)
        assert 'class="chart"' in section
        assert " rows the 200 with the largest values" in section
    left = section_of(text, "not-shown").partition("4,096 ranks are too many")[0]
    assert '<li id="gpu_kernels_by_name"' in left.rpartition("<ul>")[2]
    assert "The 8 of 4,096 ranks that are late" in section_of(text, "overview")


def test_4096_ranks_open_in_seconds(many_page: Path, chromium: Browser) -> None:
    """A page with 4,096 ranks opens in less than 20 s."""
    chromium.complaints()
    started = time.perf_counter()
    chromium.open(many_page)
    assert time.perf_counter() - started < 20
    assert chromium.complaints() == []


DRAWN_ALONE = {"temporal_breakdown", "gpu_timeline", "stragglers", "memory_bandwidth_series"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[] if name in DRAWN_ALONE else [pytest.mark.slow(reason="documents")]
        )
        for name in charts.FIGURES
    ],
)
def test_chart_pages_draw_by_themselves(
    name: str, job_store: TraceStore, chromium: Browser, tmp_path: Path
) -> None:
    """A page that --chart FILE.html writes needs no other file."""
    path = tmp_path / "chart.html"
    charts.save(job_store.run(name).chart(), path)
    chromium.complaints()
    chromium.requests()
    chromium.open(path)
    assert chromium.ask("return document.querySelector('.chart').dataset.drawn") == "yes"
    assert chromium.complaints() == []
    assert [url for url in chromium.requests() if not url.startswith(("data:", "blob:"))] == [
        path.as_uri()
    ]


def test_payloads_do_not_run(payload_page: Path, chromium: Browser) -> None:
    """The page's policy only allows its own scripts, even for an element that is injected later."""
    chromium.open(payload_page)
    assert chromium.ask("return document.title") == "Safe: performance"
    assert chromium.ask("return document.querySelectorAll('main img, main [onload]').length") == 0
    assert chromium.complaints() == []
    # Selenium's own script may run, but handlers in what it writes into the page may not.
    injected = "<img src=x onerror=\"document.title = 'owned'\">"
    chromium.ask(
        "document.querySelector('main').insertAdjacentHTML('beforeend', arguments[0])", injected
    )
    chromium.ask("return new Promise(done => setTimeout(done, 300))")
    assert chromium.ask("return document.title") == "Safe: performance"
    assert any("Content Security Policy" in complaint for complaint in chromium.complaints())
