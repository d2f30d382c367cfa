"""Tests that every figure shows its result: marks are counted, and drawn numbers are compared."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql import charts
from hta_sql.authoring.golden_messages import render
from hta_sql.charts.drawing.palette import OUTLIER_COLOR
from hta_sql.synthetic import JobSpec, write_job
from tests.conftest import TRACES
from tests.drawn_marks import drawn_rows, visible_marks
from tests.golden_cases import all_cases, stated_marks
from tests.marks import of_ranks, of_time
from tests.marks.rows import Expected, Rows, by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hta_sql.store.query.trace_store import TraceStore


def one_rank(trace: str) -> Callable[[Path], TraceStore]:
    """Return a function that ingests a trace in tests/traces as a single rank."""
    return lambda store: hta_sql.ingest({0: str(TRACES / f"{trace}.json")}, store, run="run")


def ranks(name: str, count: int) -> Callable[[Path], TraceStore]:
    """Return a function that ingests the traces of a job, one per rank."""
    traces = {rank: str(TRACES / f"{name}_{rank}.json") for rank in range(count)}
    return lambda store: hta_sql.ingest(traces, store, run="run")


def runs(**traces: str) -> Callable[[Path], TraceStore]:
    """Return a function that ingests one trace per run."""

    def ingest(store: Path) -> TraceStore:
        for run, name in traces.items():
            hta_sql.ingest_shard(
                {0: str(TRACES / f"{name}.json")}, store, run=run, jobs=1, shard=(1, 1)
            )
        return hta_sql.publish(store)

    return ingest


def simulated(store: Path) -> TraceStore:
    """Ingest a simulated job of two ranks."""
    job = write_job(store.parent / "traces", JobSpec(ranks=2, steps=3, layers=2))
    return hta_sql.ingest(job.files[0].parent, store, run="job")


def hits(store: Path) -> TraceStore:
    """Ingest a trace with one profiler range and one hardware counter."""
    event = {"ph": "X", "cat": "cuda_profiler_range", "name": "k", "pid": 0, "tid": 0}
    event |= {"ts": 0, "dur": 5, "args": {"l2__hit_rate.pct": 98.5}}
    path = store.parent / "hits.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    return hta_sql.ingest({0: str(path)}, store, run="run")


STORES: dict[str, Callable[[Path], TraceStore]] = {
    "job": simulated,
    "hits": hits,
    "pair": runs(base="annotated_operators", test="comm_hidden_and_exposed"),
    "runs": runs(a="gpu_views", b="gpu_views", c="gpu_views"),
    "sequences": one_rank("annotated_operators"),
    "cupti": one_rank("cupti_more_ranges"),
    "cut": one_rank("experts_cut"),
    "passes": one_rank("three_passes"),
    "blocking": one_rank("blocking"),
    "views": one_rank("gpu_views"),
    "ends": one_rank("memory_ends"),
    "memory": one_rank("memory_of_training"),
    "kinds": one_rank("operator_kinds"),
    "graphs": one_rank("graph_launch"),
    "frames": one_rank("python_frames"),
    "experts": ranks("experts", 2),
    "exchanges": ranks("expert_parallel", 2),
    "serving": one_rank("serving_steps"),
    "sends": ranks("sends", 2),
    "pipeline": ranks("pipeline", 2),
    "overview": ranks("overview", 4),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], TraceStore]]:
    """Return a function that ingests a store of ``STORES`` by name, on first use."""
    folder = tmp_path_factory.mktemp("marks")
    with ExitStack() as opened:
        yield cache(lambda name: opened.enter_context(STORES[name](folder / f"{name}.store")))


FIGURES: dict[str, Callable[[Rows], Expected]] = {
    name: expected
    for part in (of_ranks, of_time)
    for name, expected in vars(part).items()
    if getattr(expected, "__module__", "") == part.__name__
}

ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "all_to_all_traffic": ("experts", {}),
    "links": ("sends", {}),
    "expert_load": ("experts", {}),
    "communication_by_rank": ("sends", {}),
    "blocking_communication": ("blocking", {}),
    "expert_parallel": ("exchanges", {}),
    "iterations": ("serving", {}),
    "serving_kinds": ("serving", {}),
    "gpu_summary": ("views", {}),
    "cluster_overview": ("overview", {}),
    "utilization_over_time": ("overview", {}),
    "operator_across_ranks": ("overview", {}),
    "special_operators": ("overview", {}),
    "pipeline_stages": ("pipeline", {}),
    "cluster_step_trace": ("passes", {}),
    "p2p_pairs": ("pipeline", {}),
    "trace_diff": ("pair", {}),
    "comparison": ("pair", {}),
    "kpi_trends": ("runs", {"min_runs": 1}),
    "memory_curve": ("ends", {}),
    "live_at_peak": ("memory", {}),
    "memory_by_operator": ("memory", {}),
    "queue_full_time": ("job", {"max_queue_length": 8}),
    "frequent_kernel_sequences": ("sequences", {"operator_name": "cuda", "min_pattern_len": 1}),
    "graph_kernels": ("graphs", {}),
    "roofline": ("kinds", {}),
    "source_lines": ("frames", {}),
    "modules": ("frames", {}),
    "folded_stacks": ("frames", {}),
    "cupti_counters_by_operator": ("cupti", {}),
    "potential_stragglers": ("job", {"num_candidates": 1}),
}
"""Store and parameters for analyses that have no rows for the simulated job."""


def test_every_figure_is_looked_at() -> None:
    """Every figure has expected marks in tests/marks or in a golden case (``Drawn: 3 rect``)."""
    in_golden = {case.path.stem.rpartition("_v")[0] for case in all_cases() if stated_marks(case)}
    assert set(charts.FIGURES) - set(FIGURES) <= in_golden, (
        "add 'Drawn: COUNT MARK' to a golden case"
    )
    assert set(FIGURES) <= set(charts.FIGURES)


@pytest.mark.parametrize(
    "figure",
    FIGURES,
)
def test_a_figure_shows_what_its_result_holds(
    figure: str, stores: Callable[[str], TraceStore]
) -> None:
    """Each number is drawn by a mark with that value to within 1e-5, and the chart has a title."""
    store, options = ASKED.get(figure, ("job", {}))
    result = stores(store).run(figure, **options)
    chart = result.chart()
    values, marks = FIGURES[figure](result.arrow().to_pylist())
    assert min(marks.values()) > 0
    drawn = drawn_rows(chart)
    for name, wanted in values.items():
        assert wanted
        field = name.removeprefix("peak of ")
        found = [row[field] for row in drawn if row.get(field) is not None]
        if field != name:
            found = [max(r[field] for r in own) for own in by(drawn, "lane").values()]
        assert sorted(found) == pytest.approx(wanted, rel=1e-5), name
    title = chart.to_dict()["title"]
    assert (title if isinstance(title, str) else title["text"]).strip()
    assert len(chart.to_json()) < 200_000
    counted = Counter(dict.fromkeys(marks, 0)) + visible_marks(chart)
    assert {kind: counted[kind] for kind in marks} == marks
    assert not set(counted) - set(marks) - {"text"}


@pytest.mark.parametrize("figure", ["potential_stragglers", "straggler_metric"])
def test_what_is_no_verdict_is_not_drawn_as_one(
    figure: str, stores: Callable[[str], TraceStore]
) -> None:
    """The chart marks no rank as slow: some rank is always last, which is not a verdict."""
    drawn = json.dumps(stores("job").run(figure).chart().to_dict())
    assert "no verdict" in drawn
    assert OUTLIER_COLOR not in drawn
    assert '"yes"' not in drawn


@pytest.mark.parametrize(
    ("name", "store", "options", "sentence"),
    [
        ("queue_full_time", "job", {}, "No queue was full."),
        (
            "trace_diff",
            "pair",
            {"runs": ["base", "base"]},
            "No duration changed: base against base.",
        ),
        ("memory_bandwidth_summary", "pair", {}, "The traces record no bandwidth of these copies."),
        (
            "cupti_counters_by_operator",
            "hits",
            {},
            "No recorded counter counts floating-point operations.",
        ),
        (
            "potential_stragglers",
            "pair",
            {},
            f"No rank is late: {render('potential_stragglers.single_rank')}.",
        ),
        ("links", "cut", {}, f"Nothing to show: {render('links.unknown_sizes')}."),
        (
            "roofline",
            "sequences",
            {},
            f"No operator with arithmetic has a known roofline: {render('operator_work.inputs_insufficient')}.",
        ),
        (
            "all_to_all_traffic",
            "cut",
            {},
            f"Nothing to show: {render('all_to_all_traffic.split_sizes_cut')}.",
        ),
        (
            "expert_load",
            "cut",
            {},
            f"Nothing to show: {render('expert_load.not_matched')}.",
        ),
    ],
)
def test_rows_without_a_mark_are_a_sentence(
    name: str,
    store: str,
    options: dict[str, Any],
    sentence: str,
    stores: Callable[[str], TraceStore],
) -> None:
    """A result without marks is shown as a sentence, because empty axes explain nothing."""
    result = stores(store).run(name, **options)
    assert len(result)
    (row,) = drawn_rows(result.chart())
    assert row == {"text": sentence}
    assert visible_marks(result.chart())["text"] == 1
