"""Shared fixtures: tiny traces, and stores built from them that are closed after use."""

from __future__ import annotations

import gc
import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hta_sql.store.query.trace_store import TraceStore
    from tests.report_pages import Browser

TRACES = Path(__file__).parent / "traces"


def pytest_configure() -> None:
    """Run the garbage collector rarely: it takes a third of the time to collect all tests."""
    gc.set_threshold(100_000, 50, 100)


@pytest.fixture(scope="session")
def trace_path() -> Callable[[str], Path]:
    """Return a function that resolves the name of a file in tests/traces to its path."""

    def path(name: str) -> Path:
        found = TRACES / name
        assert found.exists(), f"no trace {name!r}; there are: {sorted(map(str, _names()))}"
        return found

    return path


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Start an offline browser."""
    from tests.report_pages import browser  # noqa: PLC0415 - imports the charts, 1 s for each run of one test

    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def _names() -> list[str]:
    return [path.name for path in TRACES.glob("*.json")]


@pytest.fixture
def ingest_trace(tmp_path: Path) -> Iterator[Callable[..., TraceStore]]:
    """Return a function that ingests events, a file in tests/traces, or one of these per rank.

    Example: ``ingest_trace([{"ph": "X", ...}])``. Calls with the same ``store`` add to that store;
    options are passed to :func:`hta_sql.ingest`.
    """
    with ExitStack() as opened:

        def ingest(
            trace: str | Path | Sequence[Mapping[str, Any]] | Mapping[int, Any],
            store: str = "tiny.store",
            **options: Any,
        ) -> TraceStore:
            ranks = trace if isinstance(trace, dict) else {0: trace}
            paths = {rank: str(_file(tmp_path, rank, part)) for rank, part in ranks.items()}
            options.setdefault("run", "run")
            ingested: TraceStore = hta_sql.ingest(paths, tmp_path / store, **options)
            return opened.enter_context(ingested)

        yield ingest


def _file(folder: Path, rank: int, trace: Any) -> Path:
    if isinstance(trace, Path):
        return trace
    if isinstance(trace, str):
        return TRACES / trace
    number = len(list(folder.glob("events-*.json")))
    path = folder / f"events-{number}-rank{rank}.json"
    path.write_text(json.dumps({"traceEvents": list(trace)}), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tiny_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest two runs of two ranks each: ``base`` and ``test`` (see traces/two_ranks_*.json)."""
    store = tmp_path_factory.mktemp("tiny") / "tiny.store"
    paths = {rank: str(TRACES / f"two_ranks_{rank}.json") for rank in (0, 1)}
    ingest_only(paths, store, run="base")
    with hta_sql.ingest({0: paths[1], 1: paths[0]}, store, run="test") as opened:
        yield opened


DEEP = (
    *(
        "properties/",
        "parity/",
        "hta_values/",
        "overlay/",
        "spans/",
        "mutants/",
        "fuzz/",
        "unrecorded/",
    ),
    *("safety/test_damage.py", "safety/test_remote_faults.py", "safety/test_file_faults.py"),
    *("safety/test_dask.py", "safety/test_interrupted.py", "safety/test_lost_workers.py"),
    *("safety/test_threads.py", "safety/test_bad_runs.py", "ingestion/test_whole_files.py"),
    *("ingestion/test_too_long.py", "ingestion/test_corpus.py", "ingestion/test_event_order.py"),
    *("safety/test_workers.py", "safety/test_crashes.py", "safety/test_two_at_once.py"),
    *(
        "safety/test_broken_materialized.py",
        "safety/test_object_storage.py",
        "safety/test_disk_full.py",
    ),
    *("test_extreme_values.py", "test_derived_tables.py", "test_intervals.py", "jobs/", "runs/"),
    *("judgement/", "test_report_serving.py", "test_graph_captures.py", "test_serving_jobs.py"),
    *("test_distributed_execution.py", "test_chart_marks.py", "test_device_clock_skew.py"),
)
"""Suites that repeat other tests in more depth; ``make test`` runs one case in ten of each."""

WIDE = (
    *("arguments/", "discovery/", "questions/", "user_analyses/", "ingestion/test_native.py"),
    *("test_hangs.py", "test_message_rules.py", "test_validation.py", "test_trace_frames.py"),
    *("test_hta_operators.py", "test_hta_counters.py", "test_trace_diff.py"),
    *("test_report_conditions.py", "ingestion/test_role_options.py"),
)
"""Suites of many similar cases; ``make test`` runs one case in five of each."""

MANY = (
    *("safety/", "cli/", "ingestion/", "test_report", "test_serving_advice.py", "test_charts.py"),
    *("pinned/test_answers.py", "trace_analysis/", "explorer/", "cookbook/", "agents/"),
    *("test_chart_topics.py", "test_materialized_answers.py", "test_filters.py"),
)
"""Suites of many tests that take a second or more; ``make test`` runs one in three of each file."""

ONE_OF = {DEEP: 10, WIDE: 5, MANY: 3}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark browser tests, and mark most cases of large suites as slow."""
    counts: Counter[str] = Counter()
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
        path = item.nodeid.removeprefix("tests/").partition("::")[0]
        if item.get_closest_marker("slow") or item.get_closest_marker("always"):
            continue
        for suites, ratio in ONE_OF.items():
            if path.startswith(suites):
                if counts[path] % ratio:
                    item.add_marker(pytest.mark.slow)
                counts[path] += 1
                break
