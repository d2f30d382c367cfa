"""Shared fixtures: tiny traces, and stores built from them that are closed after use."""

from __future__ import annotations

import gc
import json
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


REASONS = {
    "faults": "a reader or writer fails, or is killed, at each of its operations",
    "soak": "readers and writers share a store for minutes",
    "fuzz": "inputs at random, or every combination of inputs",
    "large": "jobs, traces or catalogs that take more than 5 s to write or to query",
    "processes": "clusters, servers, or many processes",
    "documents": "notebooks, the site, or every command of a page",
    "check": "make check does the same",
}
"""Reasons for the mark ``slow``, with the meaning of each; CONTRIBUTING.md lists them."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark browser tests.

    Raises:
        UsageError: A slow test states no reason. ``make test`` omits it, so it needs one.
    """
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
        for mark in item.iter_markers("slow"):
            if mark.args or {*mark.kwargs} != {"reason"} or mark.kwargs["reason"] not in REASONS:
                message = f"{item.nodeid}: slow needs a reason, one of: {', '.join(REASONS)}"
                raise pytest.UsageError(message)
