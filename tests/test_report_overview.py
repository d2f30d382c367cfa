"""Tests of the sentences about a run on the first screen of the report."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from html import unescape
from pathlib import Path

import pyarrow as pa
import pytest

import hta_sql
from hta_sql.report import write_report
from hta_sql.report.advice import advice_markup
from hta_sql.report.answers import first_screen
from hta_sql.report.first_screen import DEVICE_PARTS, HOST_PARTS, STEP_PARTS, FirstScreen
from hta_sql.report.links import linked
from hta_sql.report.overview import UNRECORDED, overview_markup, shares
from hta_sql.report.tiles import figures_markup, job_text
from hta_sql.results.result import Result
from hta_sql.synthetic import JobSpec, write_job
from tests.shared_stores import ingest_only

TRACES = Path(__file__).parent / "traces"

JOBS = {
    "late": ["late_0.json", "late_1.json"],
    "seldom": ["waits_0.json", "waits_1.json"],
    "alone": ["overlap_two_streams.json"],
    "host": ["host_only.json"],
    "sleeps": ["host_parts.json"],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """Ingest jobs with a slow rank, too little data, a single rank, and no device."""
    folder = tmp_path_factory.mktemp("overview") / "store"
    for run, names in JOBS.items():
        traces = {rank: str(TRACES / name) for rank, name in enumerate(names)}
        ingest_only(traces, folder, run=run)
    with hta_sql.open(folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def answered(store: hta_sql.TraceStore) -> Callable[..., FirstScreen]:
    """Return a cached function that runs the analyses of the first screen for some or all runs."""
    return cache(lambda *runs: first_screen(store, {"runs": [*runs]} if runs else {}))


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (
            "late",
            "Straggler: rank 1 costs the other ranks up to 20.0 % of the time. All its kernels are",
        ),
        ("seldom", "there are fewer than two steps to compare"),
        ("alone", "Stragglers are unknown: the store has no other rank of this run"),
    ],
)
def test_who_is_late_stands_in_a_sentence(
    answered: Callable[..., FirstScreen], run: str, words: str
) -> None:
    """A sentence names the slow rank, or states why no rank can be named."""
    page, sentence = overview_markup(answered(run), set()), linked(words, set())
    assert unescape(sentence) in unescape(page)


def test_without_a_device_the_step_is_that_of_the_host(
    answered: Callable[..., FirstScreen],
) -> None:
    """The title, the tiles and the bar show what the host does; nothing is called idle."""
    page = unescape(overview_markup(answered("sleeps"), {"host_accounting"})).replace("\xa0", " ")
    assert "A step takes 200 µs, 47 % of it outside operators" in page
    for name, time in (("forward and other operators", "30.0"), ("backward", "25.0")):
        assert f"{name}: {time} µs" in page
    assert "idle" not in page.partition("<h3>Questions")[0].replace('data-part="idle', "").lower()
    held = json.loads(figures_markup(answered("sleeps")).partition(">")[2].rpartition("</")[0])
    row = dict(zip(held["steps"]["columns"], held["steps"]["rows"][0], strict=True))
    assert row["step_ns"] == sum(row[name] for name in HOST_PARTS) == 200_000
    assert all(row[name] is None for name in DEVICE_PARTS)


def test_what_ran_stands_in_a_line(answered: Callable[..., FirstScreen]) -> None:
    """The line about the job omits facts that the trace does not state."""
    told = job_text(answered("alone"), ["alone"])
    assert told == "1 rank on 1 device · no profiler steps · 6 events, none lost"


def test_runs_stand_side_by_side(answered: Callable[..., FirstScreen]) -> None:
    """Each run has a column of figures and a step bar."""
    markup = overview_markup(answered(), set())
    for run in JOBS:
        assert f'<th scope="col">{run}</th>' in markup
        assert f'<div data-run="{run}">' in markup


def test_what_is_not_in_the_traces_is_not_nought(
    answered: Callable[..., FirstScreen],
) -> None:
    """Without a device in the traces, GPU compute time is not shown as 0 %."""
    assert "; the traces have no GPU activity</h2>" in unescape(
        overview_markup(answered("host"), set())
    )
    assert "; GPUs compute " in unescape(overview_markup(answered("alone"), set()))


def test_summaries_alone_lead_to_what_they_tell(
    answered: Callable[..., FirstScreen],
) -> None:
    """Ranks with only summaries get a link to these; otherwise, a note states what is missing."""
    accounted = answered("host").step_accounting
    nothing = Result.of_rows(accounted.arrow().slice(0, 0), accounted.analysis)
    answers = replace(answered("host"), step_accounting=nothing)
    told = overview_markup(answers, {"cluster_step_trace", "links"})
    assert (
        'have summaries instead of events; for their steps, look at <a href="#cluster_step' in told
    )
    assert "Steps need the profiler's schedule." in unescape(overview_markup(answers, set()))


@pytest.mark.parametrize(
    "parts",
    [
        (1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0),
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7),
        (1, 2, 3, 4, 5, 6, 8, 9, 1, 2, 3),
    ],
)
def test_shares_add_up_to_100(parts: tuple[int, ...]) -> None:
    """Rounded shares of recorded time add up to 100; each is exact within 0.1."""
    whole = dict.fromkeys(STEP_PARTS, 0) | dict(zip(DEVICE_PARTS, parts, strict=True))
    whole["step_ns"] = sum(parts)
    told = shares(whole)
    assert set(told) == {*STEP_PARTS} - {*UNRECORDED}
    recorded = sum(whole[name] for name in told)
    assert round(sum(told.values()), 6) == 100
    assert all(abs(told[name] - 100 * whole[name] / recorded) <= 0.1 for name in told)


def test_a_part_too_small_for_a_tenth_is_none() -> None:
    """A part that is too small for 0.1 % is not rounded up."""
    parts = dict.fromkeys(STEP_PARTS, 1) | {"compute_ns": 50_004, "exposed_wait_ns": 49_990}
    told = shares({"step_ns": sum(parts.values()), **parts})
    assert {name: share for name, share in told.items() if share} == {
        "compute_ns": 50.0,
        "exposed_wait_ns": 50.0,
    }


def test_a_card_does_not_repeat_the_subject_that_its_message_names(
    answered: Callable[..., FirstScreen],
) -> None:
    """The message about a straggler contains its rank and its cause."""
    page = str(advice_markup(answered("late"), {}, set(), 10))
    assert "Cause: slower compute, mostly in gemm." in page
    assert "Most of it: <code>rank 1</code>" not in page
    assert "Most of it:" in page


def test_a_program_can_read_the_figures(answered: Callable[..., FirstScreen]) -> None:
    """The JSON on the first screen contains the exact values."""
    text = figures_markup(answered("late"))
    held = json.loads(text.partition(">")[2].rpartition("</")[0])
    rows = [dict(zip(held["steps"]["columns"], row, strict=True)) for row in held["steps"]["rows"]]
    assert all(row["step_ns"] == sum(row[name] or 0 for name in STEP_PARTS) for row in rows)
    assert {row["rank"] for row in rows} == {0, 1}
    assert held["stragglers"][0]["rank"] == 1


def test_a_page_without_steps_links_to_what_the_files_contain(tmp_path: Path) -> None:
    """Hang dumps have no steps, so the title is the sentence about the cause of the hang."""
    dumps = TRACES / "recorded" / "hangs" / "rank_missing"
    with hta_sql.ingest(dumps, tmp_path / "store", run="job") as store:
        page = write_report(store, tmp_path / "page.html").read_text(encoding="utf-8")
        hangs = store.run("hang").records()
    page = unescape(page).replace("\xa0", " ")
    title, _, rest = hangs[0]["message"].partition(". ")
    assert f'<h2 class="lead">{title}</h2>' in page
    assert rest in page.partition('id="advice"')[0]
    assert hangs[0]["stack"] in page
    assert str(hangs[0]["since_ns"]) not in page
    assert page.count("other questions</a> need a profiler trace.") == 1
    assert "GPU activity" not in page.partition('class="questions"')[2].partition("</section>")[0]


@pytest.fixture(scope="module")
def suspected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """Ingest a job of two steps, which are too few to name its slow rank for certain."""
    folder = tmp_path_factory.mktemp("suspected")
    write_job(folder / "job", JobSpec(ranks=4, steps=2, stragglers={1: 1_000_000}))
    with hta_sql.ingest(folder / "job", folder / "store", run="job") as opened:
        yield opened


def test_a_suspected_straggler_is_the_only_verdict_on_the_first_screen(
    suspected: hta_sql.TraceStore,
) -> None:
    """The sentence states why the verdict is uncertain, and no sentence denies a straggler."""
    page = unescape(overview_markup(first_screen(suspected, {}), set()))
    assert page.count("Suspected straggler: rank 1") == 1
    assert "Not certain: probability of chance" in page
    assert "No straggler" not in page
    assert "no single rank is the straggler" not in page


def test_a_suspicion_states_its_probability_and_its_limit(suspected: hta_sql.TraceStore) -> None:
    """The reason compares the probability with the limit, and counts blocks instead of steps."""
    (row,) = (row for row in suspected.run("stragglers").records() if row["verdict"] == "suspected")
    assert row["rank"] == 1
    assert re.fullmatch(
        r"probability of chance [\d.]+ %, above the limit of 0\.03 % "
        r"\(4 ranks compared in 3 blocks of [\d.]+ ms\)",
        row["verdict_reason"],
    )


def test_waits_for_a_suspected_straggler_name_the_rank(suspected: hta_sql.TraceStore) -> None:
    """Neither the costs nor the advice say that no rank is a straggler."""
    (cost,) = (r for r in suspected.run("top_costs").records() if r["cost"] == "exposed_wait")
    assert cost["message"].endswith("rank 1 is a possible straggler.")
    waits = [r for r in suspected.run("advice").records() if r["rule"] == "collective_waits"]
    assert waits
    assert all(r["message"].endswith("; rank 1 is a suspected straggler.") for r in waits)


def test_unmatched_collectives_of_a_capture_without_steps_are_not_a_time_per_step(
    answered: Callable[..., FirstScreen],
) -> None:
    """A capture without steps has one unmatched time, not one a step."""
    accounted = answered("alone").step_accounting
    table = accounted.arrow()
    place = table.column_names.index("exposed_unmatched_ns")
    unmatched = pa.array([5_000_000] * table.num_rows, pa.int64())
    table = table.set_column(place, "exposed_unmatched_ns", unmatched)
    answers = replace(answered("alone"), step_accounting=Result.of_rows(table, accounted.analysis))
    page = unescape(overview_markup(answers, set()))
    assert "5.00 ms is in collectives that are not matched across ranks: transfer or wait" in page
