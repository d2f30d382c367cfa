"""The explorer shows the selected runs, ranks and steps, and works without a network."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pandas as pd
import pytest

import hta_sql
from hta_sql.library.objects import load_library
from hta_sql.results.result import Result
from hta_sql.serve.explorer import views
from tests.explorer.explored import explored
from tests.golden_cases import TESTS
from tests.report_pages import OPENS_WITHIN_S, Browser, browser
from tests.shared_stores import ingest_only

WAITS = {0: "waits_0.json", 1: "waits_1.json"}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest a job of two ranks that wait for each other."""
    store = tmp_path_factory.mktemp("explorer") / "job.store"
    traces = {rank: str(TESTS / "traces" / name) for rank, name in WAITS.items()}
    ingest_only(traces, store, run="job", jobs=1)
    return store


@pytest.fixture(scope="module")
def store(path: Path) -> Iterator[hta_sql.TraceStore]:
    """Open the store the way the page opens it."""
    with views.opened({views.STORE: str(path), views.MEMORY_LIMIT: "1GB"}) as opened:
        yield opened


def test_every_analysis_has_its_topic(store: hta_sql.TraceStore) -> None:
    """Every analysis is listed under exactly one topic, next to the questions."""
    topics = views.topics(store)
    topics.pop(views.QUESTIONS_TOPIC)
    listed = [name for names in topics.values() for name in names.values()]
    assert sorted(listed) == sorted(a.base_name for a in load_library().newest())
    assert "Where the time goes" in topics


def test_the_page_opens_with_the_first_answered_question(
    store: hta_sql.TraceStore, tmp_path: Path
) -> None:
    """The page opens with the parts of a step; without a device, with those of the host."""
    topic, names = next(iter(views.topics(store).items()))
    assert topic == views.QUESTIONS_TOPIC
    assert names[views.opening(store, "job", names)] == "step_accounting"
    ingest_only({0: str(TESTS / "traces" / "host_parts.json")}, tmp_path / "host.store", run="host")
    with views.opened({views.STORE: str(tmp_path / "host.store")}) as host:
        assert names[views.opening(host, "host", names)] == "host_accounting"
        assert "No device activity" in str(views.answer(host, "step_accounting", "host"))


def test_answering_columns_come_first(store: hta_sql.TraceStore) -> None:
    """The rows have all columns of the result, beginning with those that answer the question."""
    result = views.answer(store, "step_accounting", "job")
    assert isinstance(result, Result)
    rows = views.rows_of(result)
    assert list(rows)[:4] == ["rank", "step", "step_ns", "recorded_ns"]
    assert set(rows) == set(result.columns)


def test_answers_keep_to_their_scope(store: hta_sql.TraceStore) -> None:
    """Analyses are restricted to the selected run, ranks and steps; empty results have a reason."""
    found = views.answer(store, "profiler_steps", "job", [1], [])
    assert isinstance(found, Result)
    assert {row["rank"] for row in found.records()} == {1}
    assert views.steps_of(store, "job") == [1, 2]
    assert "No rows. memory_curve needs: " in str(
        views.answer(store, "memory_curve", "job", [], [])
    )
    assert "No rank 9" in str(views.answer(store, "profiler_steps", "job", [9], []))


def test_questions_read_the_store_and_nothing_else(store: hta_sql.TraceStore, path: Path) -> None:
    """A query that does more than read the store returns an error message."""
    rows = views.asked(store, "SELECT count(*) AS n FROM range(20000)")
    assert isinstance(rows, Result)
    assert len(views.asked(store, "FROM range(20000)")) == views.ROWS
    assert isinstance(views.asked(store, f"COPY (SELECT 1) TO '{path}/x.csv'"), str)
    assert isinstance(views.asked(store, "SELECT nothing"), str)


@pytest.mark.parametrize("name", ["step_accounting", "cluster_overview", "gpu_kernels_by_name"])
def test_marks_of_a_chart_are_chosen(store: hta_sql.TraceStore, name: str) -> None:
    """The selection of a chart uses columns that the result also has."""
    result = views.answer(store, name, "job", [], [])
    assert isinstance(result, Result)
    chart = views.chart_of(result)
    assert chart is not None
    (chosen,) = re.findall(r'"name": "chosen", "select": (\{.*?\})', json.dumps(chart.to_dict()))
    assert set(json.loads(chosen)["fields"]) <= {views.LANE, *result.columns} - {"run"}


def test_a_selection_leaves_its_rows() -> None:
    """A selection filters rows by its columns; unknown columns are ignored."""
    rows = pd.DataFrame({"rank": [0, 1, 1], "step": [1, 1, 2]})
    chosen = {views.CHOSEN: {"rank": [1], "vlPoint": [2], "other": ["x"]}, "zoom": {"rank": [0, 0]}}
    assert views.selected(rows, chosen).index.tolist() == [1, 2]
    assert views.selected(rows, {}).index.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("lane", "left"), [("1", [1, 2]), ("1 / 2", [2]), ("0 / 1", [0]), ("gemm", [1])]
)
def test_a_bar_is_chosen_by_what_names_it(lane: str, left: list[int]) -> None:
    """A bar is identified by rank, by rank and step, or by name."""
    rows = pd.DataFrame({"rank": [0, 1, 1], "step": [1, 1, 2], "name": ["add", "gemm", "add"]})
    chosen = {views.CHOSEN: {views.LANE: [lane]}}
    assert views.selected(rows, chosen).index.tolist() == left


@pytest.fixture(scope="module")
def page(path: Path) -> Iterator[str]:
    """Start the explorer and return its URL, which includes the token."""
    with explored(path) as (_, url):
        yield url


def eventually(is_so: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + OPENS_WITHIN_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.2)


def rows_shown(page: Browser) -> str:
    """Return the row and column counts in the table's footer."""
    found = re.search(r"[0-9,]+ rows?, [0-9]+ columns", page.text())
    return found.group() if found else ""


def test_the_page_ends_with_its_command(path: Path) -> None:
    """The explorer's server exits when the command is terminated."""
    with explored(path) as (process, url):
        port = urlsplit(url).port
        process.terminate()

    def is_gone() -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) != 0

    eventually(is_gone)


def test_a_taken_port_is_an_error(path: Path) -> None:
    """If the port is in use, the error names the port and stdout stays empty."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        command = [sys.executable, "-m", "hta_sql", "explore", str(path), "--print", "--port", port]
        done = subprocess.run(  # noqa: S603 - our own program
            command, capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stdout) == (1, "")
    first, last = done.stderr.splitlines()
    assert first.startswith(f"Port {port} on this machine cannot be used: ")
    assert last == "error: The explorer exited; see its messages above."


@pytest.mark.browser
def test_a_click_filters_the_table(page: str, tmp_path: Path) -> None:
    """Charts are drawn in Chromium, and clicking a mark filters the rows.

    The page contacts no other server.
    """
    site = page.partition("?")[0]
    assert site.startswith("http://127.0.0.1:")
    with browser(tmp_path / "profile", offline=False) as chromium:
        chromium.visit(page)
        chromium.wait(
            "return document.querySelector('marimo-vega')?.shadowRoot?.querySelector('canvas')"
        )
        eventually(lambda: rows_shown(chromium).startswith("4 rows"))
        # Left of the center: the upper bar, which is rank 0 with its two steps.
        chromium.click_in("marimo-vega", -0.85, 0.0)
        eventually(lambda: rows_shown(chromium).startswith("2 rows"))
        own = (
            site,
            site.replace("http", "ws", 1),
            "data:",
            "blob:",
            "chrome:",
            "chrome-untrusted:",
        )
        assert [url for url in chromium.requests() if not url.startswith(own)] == []
