"""Tests that promises in SECURITY.md and docs/limits.md name existing tests and match the code."""

from __future__ import annotations

import ast
import gzip
import re
from functools import cache
from pathlib import Path

import pytest

import hta_sql
from hta_sql.cli import query_watch
from hta_sql.cli.sql import sql
from hta_sql.ingestion import rank, staging
from hta_sql.ingestion.artifacts import limited, values
from hta_sql.machine import MEMORY_SHARE
from hta_sql.serve.mcp import bounded_json
from hta_sql.serve.mcp.limits import Limits as LimitsOfAnswers
from hta_sql.store.catalog import compute
from hta_sql.store.disk import spans
from hta_sql.store.disk.locks import LOCK_TIMEOUT_S
from hta_sql.store.disk.manifest import Fingerprint, RankEntry
from hta_sql.store.query import limits, worker_process, workers
from hta_sql.traces import chunks, flight_recorder, grammar, pickles, source

ROOT = Path(__file__).parent.parent
PAGES = ("SECURITY.md", "docs/limits.md")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")

NUMBERS = {
    "one event": f"{chunks.MAX_EVENT_BYTES >> 20} MB",
    "brackets": f"{grammar.MAX_DEPTH:,}",
    "broken events": f"{staging.MAX_BROKEN:,}",
    "what a packed file": f"{source.MAX_RATIO} times its size, {source.ALWAYS_ALLOWED_BYTES >> 20} MB",
    "members of a packed tar": f"{source.ALWAYS_ALLOWED_BYTES // source.MEMBER_COUNTS_BYTES:,} always; "
    f"each counts {source.MEMBER_COUNTS_BYTES >> 10} kB",
    "packing inside": f"{source.MAX_LAYERS} layers",
    "memory for a large file": f"{(limited.IDLE_BYTES + limited.BESIDE_BYTES) >> 20} MiB",
    "CPU time for a large file": f"{limited.CPU_S} s, and {limited.CPU_S_PER_MB} s",
    "size of a dump": f"{flight_recorder.MAX_BYTES >> 20} MiB",
    "lists and dicts of a dump": f"{pickles.MAX_CONTAINERS:,}",
    "content that": f"{values.TEXT_BYTES >> 20} MB and {values.TEXT_PER_BYTE} times",
    "a name": f"{values.MAX_TEXT:,}",
    "a file that changes": f"{rank.MAX_READS} readings",
    "spans of a run": str(spans.MOST_SPANS),
    "writers": f"{LOCK_TIMEOUT_S:g} s",
    "a result materialized": f"{compute.SMALL_BYTES // 1000} kB",
    "time": f"{limits.Limits().seconds:g} s (`mcp`: {LimitsOfAnswers().seconds:g} s) | interrupted; killed "
    f"{worker_process.GRACE_S:g} s later (`sql`: {query_watch.GRACE_S:g} s)",
    "rows": f"{limits.Limits().rows:,} (`mcp`: {LimitsOfAnswers().rows}",
    "memory of the engine": f"{MEMORY_SHARE:.0%}".replace("%", " %"),
    "memory beside it": f"{limits.LEAST_BESIDE >> 30} GiB",
    "memory of all workers": f"{workers.TICK_S * 1000:g} ms",
    "queries of a store": str(workers.MOST_WORKERS),
    "levels of a nested value": f"`mcp`: {bounded_json.MOST_DEPTH}",
    "bytes of an answer": f"{bounded_json.MOST_BYTES:,}",
    "texts of": f"{bounded_json.LONGEST_TEXT:,} characters, names of columns {bounded_json.LONGEST_NAME}",
    "nested values": f"{bounded_json.MOST_ITEMS:,} items",
    "spill": str(limits.Limits().spill).replace("GiB", " GiB"),
}
"""Beginning of a table row in docs/limits.md ─▶ the value in the code."""


@cache
def names_in(path: Path) -> frozenset[str]:
    """Return the names of all functions in a test file."""
    tree = ast.parse(path.read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("page", PAGES)
def test_each_test_that_is_named_is_there(page: str) -> None:
    """Each test that a page names exists in the named file."""
    named = NAMED.findall((ROOT / page).read_text("utf-8"))
    assert len(named) > 15
    assert [(file, name) for file, name in named if name not in names_in(ROOT / file)] == []


def test_each_promise_names_a_test() -> None:
    """Each promise names a test, except for items that state what is not promised."""
    promises = re.split(r"\n- ", (ROOT / "SECURITY.md").read_text("utf-8"))[1:]
    without = [text for text in promises if not NAMED.search(text.split("\n\n")[0])]
    assert [text.split(" (")[0] for text in without] == ["Analyses of your own"]


def test_each_limit_is_that_of_the_code() -> None:
    """Each documented limit equals the limit in the code, and each table row names a test."""
    lines = (ROOT / "docs" / "limits.md").read_text("utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| what |")]
    assert all(NAMED.search(row) for row in rows)
    for start, says in NUMBERS.items():
        (row,) = (row for row in rows if re.match(rf"\| {re.escape(start)}[ ,]", row))
        assert says in row, start


def test_the_command_has_the_limits_of_a_store() -> None:
    """Option defaults equal the store's limits.

    The options repeat these limits, because parsing options must not load the engine.
    """
    defaults = {option.name: option.default for option in sql.params}
    stated = [defaults[name] for name in ("timeout", "max_rows", "spill_limit")]
    of_a_store = limits.Limits()
    assert stated == [of_a_store.seconds, of_a_store.rows, of_a_store.spill]


def test_what_is_packed_too_often_is_refused(tmp_path: Path) -> None:
    """A file that is compressed more than three times is refused."""
    content = b'{"traceEvents": []}'
    for _ in range(source.MAX_LAYERS + 1):
        content = gzip.compress(content)
    (tmp_path / "rank0.json.gz").write_bytes(content)
    with pytest.raises(hta_sql.TraceError, match=r"rank0\.json\.gz"):
        hta_sql.ingest(tmp_path / "rank0.json.gz", tmp_path / "job.store")


def test_a_run_of_too_many_spans_is_refused() -> None:
    """A run may have 256 spans, numbered 0 to 255; one more is an error."""

    def entry(span: int) -> RankEntry:
        return RankEntry(
            run="job",
            rank=0,
            source=f"{span}.json",
            fingerprint=Fingerprint(0, 0, ""),
            rank_source="given",
            event_count=1,
            quarantined=0,
            start_ns=span * 1000,
            step_names=[f"ProfilerStep#{span}"],
            options={},
            files={},
            schema="",
            facts={"dur": 10},
            span=span,
        )

    spans.check_spans([entry(span) for span in range(spans.MOST_SPANS)])
    with pytest.raises(hta_sql.TraceError, match="more than 256"):
        spans.check_spans([entry(span) for span in range(spans.MOST_SPANS + 1)])


def test_files_that_pages_name_are_there() -> None:
    """Every path that a page mentions exists."""
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "SECURITY.md"]
    named = re.compile(r"`((?:benchmarks|docs|hta_sql|sql|tests)/[\w./-]+?)(?:::\w+)?`")
    gone = {
        (page.name, path)
        for page in pages
        for path in named.findall(page.read_text(encoding="utf-8"))
        if not (ROOT / path).exists()
    }
    assert not gone
