"""Properties that must hold for any input bytes."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from unittest.mock import patch

import hta_sql
from hta_sql.library.objects import load_library
from hta_sql.traces.compiled import SWITCH
from hta_sql.traces.salvage import Span, walk
from tests.ingestion.ways import Way, check_nothing_vanished, staged

ANALYSES = 3
"""Number of analyses that :func:`check_ingests_agree` runs on both stores.

One analysis takes a tenth of the time of an ingest.
"""

INGEST_TIMED = {"kpi_trends"}
"""Analyses whose result has the ingest time if the trace has no base time."""


def check_ways_agree(random: Random, path: Path, *, is_deep: bool = False) -> None:
    """Check that no event vanishes and that the settings of the reader do not change the result.

    Any exception that the library does not define counts as a crash.
    """
    length = path.stat().st_size
    size = random.choice((1, 3, 16, 50, 100, 200, 333, 700, 1500, length // 2 + 1))
    batch = random.choice((256, max(1, length // size // 4), 1 if size > length // 5 else 64))
    plain = Way(is_deep=is_deep)
    first = staged(path, plain)
    if "error" not in first:
        check_nothing_vanished(first)
    small = Way(size, batch, careful=random.random() < 0.5, is_deep=is_deep)
    shown = replace(plain, most_held=random.choice((1 << 10, 1 << 30)))
    for way in (replace(plain, careful=True), small, *([shown] if is_deep else [])):
        assert staged(path, way) == first, way


def check_walk(random: Random, text: bytes) -> None:
    """Check that the spans of a truncated text equal the first spans of the whole text."""
    whole = list(walk(text))
    assert all(a.end <= b.start for a, b in pairwise(whole))
    for _ in range(4):
        cut = random.randrange(len(text) + 1)
        part = _closed(list(walk(text[:cut], is_partial=True)))
        assert part == [replace(span, is_open=False) for span in whole[: len(part)]], cut


def _closed(spans: list[Span]) -> list[Span]:
    return [span for span in spans if not span.is_open]


def check_ingests_agree(random: Random, path: Path) -> None:
    """Check that both readers produce the same rows and the same analysis results.

    Unlike a comparison of staged tables, this also covers the statements that compute the call
    tree, steps, launches and stacks.
    """
    known = {analysis.base_name for analysis in load_library().newest()} - INGEST_TIMED
    names = random.sample(sorted(known), ANALYSES)
    compiled, by_statements = (_ingested(path, reader, names) for reader in ("1", "0"))
    assert compiled.keys() == by_statements.keys()
    for part, expected in by_statements.items():
        assert compiled[part] == expected, part


def _ingested(path: Path, reader: str, analyses: list[str]) -> dict[str, list[str]]:
    """Ingest a trace with one reader; return the rows of all tables and of some analyses."""
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, {SWITCH: reader}):
        try:
            store = hta_sql.ingest(path, Path(folder) / "fuzz.store", run="fuzz", jobs=1)
        except hta_sql.TraceError as error:
            return {"error": [str(error)]}
        with store:
            tables = {table.name: store.table(table.name) for table in store.library.tables}
            # Files with equal values may differ in size by a few bytes.
            tables["runs"] = store.sql("SELECT * EXCLUDE (ingested_at, size_bytes) FROM runs")
            results = tables | {name: store.run(name) for name in analyses}
            return {name: sorted(map(repr, result.rows())) for name, result in results.items()}
