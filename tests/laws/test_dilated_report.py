"""The report of a job whose times are multiplied says the same, in longer times."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import hta_sql
from hta_sql.report import write_report
from tests.jobs.spec import MS, PlantedJob
from tests.jobs.traces import write_job as write_planted
from tests.laws import changes
from tests.laws.jobs import Job, read_trace, write_job

CHANGED = re.compile(
    r"-?\d[\d,.]*\s(ns|µs|ms|s|min|h|d)\b|\((ns|µs|ms|s|GB/s|TB/s|TFLOP/s)\): -?[\d,.]+"
)
"""Times and rates, which are multiplied."""

OF_TABLE = "The same in all of these rows"
"""Start of a text with columns of a table, which the other laws compare."""


class _Text(HTMLParser):
    """The text of a page, without charts, scripts and tables."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = 0
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 (the base class calls it)
        self.hidden += tag in ("script", "style", "svg", "table", "pre")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("script", "style", "svg", "table", "pre")

    def handle_data(self, data: str) -> None:
        if not self.hidden and data.strip() and not data.strip().startswith(OF_TABLE):
            self.texts.append(CHANGED.sub("TIME", " ".join(data.split())))


def texts_of(job: Job, folder: Path) -> list[str]:
    """Write the report of a job, and return the texts of its page with times masked."""
    traces = write_job(job, folder / "traces")
    with hta_sql.ingest(list(traces.values()), folder / "job.store", run="job") as store:
        page = write_report(store, folder / "report.html")
    text = _Text()
    text.feed(page.read_text(encoding="utf-8"))
    return text.texts


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Write a job of four ranks, one of which loads data slowly."""
    planted = PlantedJob(ranks=4, steps=6, layers=1, loading={1: 1 * MS})
    paths, _ = write_planted(tmp_path_factory.mktemp("planted"), planted)
    read = {rank: read_trace(Path(path)) for rank, path in paths.items()}
    return Job("late", {rank: trace for rank, trace in read.items() if trace})


@pytest.mark.parametrize("factor", [10, 1_000])
def test_the_report_of_a_dilated_job_says_the_same(job: Job, tmp_path: Path, factor: int) -> None:
    """Tiles, verdicts, recommendations, headings and what is not shown stay."""
    before = texts_of(job, tmp_path / "before")
    longer = changes.dilated(factor)(job)
    assert longer
    assert texts_of(longer.job, tmp_path / "after") == before
