"""Every figure shows what its result holds: marks are counted, drawn numbers are compared."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql import charts
from hta_sql.synthetic import JobSpec, write_job
from tests.conftest import TRACES
from tests.drawn_marks import drawn_rows, visible_marks
from tests.marks import of_ranks, of_time
from tests.marks.rows import Expected, Rows, by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hta_sql.store.trace_store import TraceStore


def two_ranks(folder: Path, name: str) -> TraceStore:
    """Ingest a pair of traces."""
    traces = {rank: str(TRACES / f"{name}_{rank}.json") for rank in (0, 1)}
    return hta_sql.ingest(traces, folder / f"{name}.store", run="run")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, TraceStore]]:
    """A simulated job of two ranks, and traces for what it does not have."""
    folder = tmp_path_factory.mktemp("marks")
    job = write_job(folder / "traces", JobSpec(ranks=2, steps=3, layers=2))
    sequences = str(TRACES / "annotated_operators.json")
    pair = folder / "pair.store"
    hta_sql.ingest({0: sequences}, pair, run="base").close()
    event = {"ph": "X", "cat": "cuda_profiler_range", "name": "k", "pid": 0, "tid": 0}
    event |= {"ts": 0, "dur": 5, "args": {"l2__hit_rate.pct": 98.5}}
    (folder / "hits.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    with (
        hta_sql.ingest(job.files[0].parent, folder / "job.store", run="job") as of_job,
        hta_sql.ingest({0: str(TRACES / "comm_hidden_and_exposed.json")}, pair, run="test") as two,
        hta_sql.ingest({0: sequences}, folder / "sequences.store", run="run") as few,
        hta_sql.ingest(
            {0: str(TRACES / "cupti_more_ranges.json")}, folder / "cupti.store", run="run"
        ) as counters,
        hta_sql.ingest({0: str(folder / "hits.json")}, folder / "hits.store", run="run") as hits,
        two_ranks(folder, "experts") as experts,
        two_ranks(folder, "sends") as sends,
        hta_sql.ingest({0: str(TRACES / "experts_cut.json")}, folder / "cut.store", run="r") as cut,
        hta_sql.ingest(ranks_of("pipeline", 2), folder / "pipe.store", run="run") as pipeline,
        hta_sql.ingest(ranks_of("overview", 4), folder / "over.store", run="run") as overview,
        hta_sql.ingest(
            {0: str(TRACES / "three_passes.json")}, folder / "passes.store", run="run"
        ) as passes,
        hta_sql.ingest({0: str(TRACES / "blocking.json")}, folder / "b.store", run="r") as blocks,
        hta_sql.ingest({0: str(TRACES / "gpu_views.json")}, folder / "v.store", run="r") as views,
        hta_sql.ingest({0: str(TRACES / "memory_ends.json")}, folder / "e.store", run="r") as ends,
        hta_sql.ingest(
            {0: str(TRACES / "memory_of_training.json")}, folder / "m.store", run="r"
        ) as memory,
        hta_sql.ingest(
            {0: str(TRACES / "operator_kinds.json")}, folder / "kinds.store", run="r"
        ) as kinds,
        hta_sql.ingest(
            {0: str(TRACES / "graph_launch.json")}, folder / "g.store", run="r"
        ) as graphs,
        hta_sql.ingest(
            {0: str(TRACES / "python_frames.json")}, folder / "f.store", run="r"
        ) as frames,
        three_runs(folder / "runs.store") as runs,
    ):
        of_traces = {"pair": two, "sequences": few, "cupti": counters, "hits": hits}
        of_traces |= {"experts": experts, "sends": sends, "cut": cut}
        of_traces |= {
            "pipeline": pipeline,
            "overview": overview,
            "passes": passes,
            "blocking": blocks,
            "views": views,
            "ends": ends,
            "memory": memory,
            "kinds": kinds,
            "frames": frames,
            "graphs": graphs,
            "runs": runs,
        }
        yield {"job": of_job, **of_traces}


def three_runs(path: Path) -> TraceStore:
    """The same trace, three times."""
    for run in ("a", "b"):
        hta_sql.ingest({0: str(TRACES / "gpu_views.json")}, path, run=run).close()
    return hta_sql.ingest({0: str(TRACES / "gpu_views.json")}, path, run="c")


def ranks_of(name: str, count: int) -> dict[int, str]:
    """The traces of a job, one a rank."""
    return {rank: str(TRACES / f"{name}_{rank}.json") for rank in range(count)}


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
    "gpu_summary": ("views", {}),
    "cluster_overview": ("overview", {}),
    "utilisation_over_time": ("overview", {}),
    "operator_across_ranks": ("overview", {}),
    "special_operators": ("overview", {}),
    "pipeline_stages": ("pipeline", {}),
    "cluster_step_trace": ("passes", {}),
    "p2p_pairs": ("pipeline", {}),
    "trace_diff": ("pair", {}),
    "comparison": ("pair", {}),
    "kpi_trends": ("runs", {"least_runs": 1}),
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
"""Store and parameters of those that the simulated job does not have."""


def test_every_figure_is_looked_at() -> None:
    """A new figure says here what it shows."""
    assert set(FIGURES) == set(charts.FIGURES)


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_shows_what_its_result_holds(figure: str, stores: dict[str, TraceStore]) -> None:
    """Drawn numbers are those of the rows, to six digits; each has its mark; a title above."""
    store, options = ASKED.get(figure, ("job", {}))
    result = stores[store].run(figure, **options)
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


@pytest.mark.parametrize(
    ("name", "store", "options", "sentence"),
    [
        ("queue_full_time", "job", {}, "No queue was full; the longest held 22 operations."),
        (
            "trace_diff",
            "pair",
            {"runs": ["base", "base"]},
            "Nothing lasts longer or shorter: base against base.",
        ),
        ("memory_bandwidth_summary", "pair", {}, "The traces record no bandwidth of these copies."),
        (
            "cupti_counters_by_operator",
            "hits",
            {},
            "None of these counters counts floating-point operations.",
        ),
        ("potential_stragglers", "pair", {}, "No rank is late: there is one rank only."),
        ("links", "cut", {}, "Nothing can be said: sizes are not known."),
        (
            "roofline",
            "sequences",
            {},
            "No roofline of an operator with arithmetic is known: inputs do not tell.",
        ),
        (
            "all_to_all_traffic",
            "cut",
            {},
            "Nothing can be said: split sizes are cut short by the profiler.",
        ),
        (
            "expert_load",
            "cut",
            {},
            "Nothing can be said: no all-to-all was found on all ranks of the group.",
        ),
    ],
)
def test_rows_without_a_mark_are_a_sentence(
    name: str, store: str, options: dict[str, Any], sentence: str, stores: dict[str, TraceStore]
) -> None:
    """Axes around nothing say nothing."""
    result = stores[store].run(name, **options)
    assert len(result)
    (row,) = drawn_rows(result.chart())
    assert row == {"text": sentence}
    assert visible_marks(result.chart())["text"] == 1
