"""Fixture with two recordings of each rank, joined into one run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hta_sql
from tests.spans.two_spans import write_spans


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """Ingest two recordings of each rank as one run."""
    folder = tmp_path_factory.mktemp("joined")
    traces = write_spans(folder / "job")
    with hta_sql.ingest(traces, folder / "job.store", jobs=1, join_spans=True) as store:
        yield store
