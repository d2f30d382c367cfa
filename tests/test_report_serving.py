"""Tests of the first screen for serving engines: time per token, token rates, and bounds."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

import hta_sql
from hta_sql.report.answers import first_screen
from hta_sql.report.overview import overview_markup
from hta_sql.report.tables import table_markup
from tests.serving_jobs import ALL_REDUCE, Iteration, Kernel, decode, layers, trace

TRACES = Path(__file__).parent / "traces"

DECODE = decode(requests=8, is_graph=True, schedule_ns=100_000)
MIXED = decode(requests=8, contexts=((512, 512),), kernels=layers(4, 30_000), schedule_ns=100_000)
BEHIND = replace(DECODE, kernels=(*DECODE.kernels, Kernel(ALL_REDUCE, 500_000)))
"""An engine whose all-reduce takes longer than everything else."""


@pytest.fixture
def screen(tmp_path: Path) -> Callable[..., str]:
    """Return a function that renders the first screen for some engines, each ingested as a run."""

    def rendered(*jobs: list[Iteration]) -> str:
        for number, job in enumerate(jobs):
            path = tmp_path / f"{number}.json"
            path.write_text(json.dumps(trace(job)), encoding="utf-8")
            hta_sql.ingest(path, tmp_path / "s", run=f"engine{number}").close()
        with hta_sql.open(tmp_path / "s") as store:
            markup = overview_markup(first_screen(store, {}), {"serving"})
            return unescape(markup).replace("\N{NO-BREAK SPACE}", " ")

    return rendered


def test_decodes_come_first(screen: Callable[..., str]) -> None:
    """Decode iterations are described first, and iterations with prompts in a separate sentence."""
    page = screen([*[DECODE] * 20, *[MIXED] * 4])
    assert "A decode takes 500.000 µs, the time per output token; GPU busy 80" in page
    assert "<b>16,162</b>" in page  # 160 tokens in 20 times 0.4 ms and 19 gaps
    assert "tokens/s out" in page
    assert "Bound by gemm kernels, 48 % of the time; then attention 24 %" in page
    assert "idle between iterations 19 %" in page
    assert "A mixed iteration takes 1.300 ms; GPU busy 92.3 %; 9.0 requests" in page
    assert "The capture takes" in page


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (
            [replace(DECODE, schedule_ns=2_000_000)] * 5,
            "Host-bound: the GPU idles between iterations, 8",
        ),
        (
            [decode(kernels=layers(4, 1_000, idle_ns=9_000), schedule_ns=5_000)] * 5,
            "Launch-bound: the GPU idles inside of iterations, 6",
        ),
        ([BEHIND] * 5, "Bound by communication, 5"),
    ],
)
def test_what_bounds_a_decode_is_named(
    screen: Callable[..., str], job: list[Iteration], words: str
) -> None:
    """The sentence about decodes names what bounds them: the host, launches or communication."""
    assert words in screen(job)


def test_several_engines_have_a_sentence_each(screen: Callable[..., str]) -> None:
    """Each engine has its own sentence on the first screen."""
    page = screen([DECODE] * 5, [BEHIND] * 5)
    assert "A decode takes 500.000 µs, the time per output token; GPU busy 8" in page
    assert "A decode takes 1.000 ms, the time per output token; GPU busy 9" in page


def test_a_training_job_that_replays_graphs_is_about_its_steps(tmp_path: Path) -> None:
    """A job with graph replays and profiler steps is described by steps, not by iterations."""
    document = json.loads((TRACES / "graph_replays.json").read_text(encoding="utf-8"))
    step = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "ts": 0, "dur": 1_000}
    events = document["traceEvents"] if isinstance(document, dict) else document
    events.append(step | {"name": "ProfilerStep#1"})
    (tmp_path / "rank0.json").write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    with hta_sql.ingest(tmp_path / "rank0.json", tmp_path / "s") as store:
        page = overview_markup(first_screen(store, {}), set())
    assert "A step takes" in page
    assert "iteration takes" not in page


def test_tables_leave_out_what_no_engine_states(tmp_path: Path) -> None:
    """Columns without values are listed below the table, and reason codes are hidden."""
    document = trace([DECODE])
    events = document["traceEvents"]
    document["traceEvents"] = [event for event in events if event["cat"] != "user_annotation"]
    (tmp_path / "rank0.json").write_text(json.dumps(document), encoding="utf-8")
    with hta_sql.ingest(tmp_path / "rank0.json", tmp_path / "s") as store:
        one = str(table_markup(store.run("serving"), 10))
        roofline = str(table_markup(store.run("serving_roofline"), 10))
    table, _, note = one.partition("</table>")
    assert 'data-name="iteration_p50_ns"' in table
    assert 'data-name="phase"' not in table
    assert "No values (not recorded or not requested): Phase, " in note
    assert "KV heads" in roofline
    assert "reason_code" not in roofline
    places = [roofline.index(f"<td>{kind}</td>") for kind in ("all", "gemm", "attention")]
    assert places == sorted(places)
