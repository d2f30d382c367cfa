"""Joining recordings into one run, and its effect on everything that reads a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import hta_sql
from hta_sql.cli import main
from hta_sql.errors import ParameterError, StoreNotFoundError, TraceError
from hta_sql.exports.exports import export
from hta_sql.exports.redaction.exporting import export_redacted
from hta_sql.exports.redaction.names import Redactor
from hta_sql.overlay.counters import write_counters
from tests.spans.two_spans import write_spans

US = 1000


def shown(store: hta_sql.TraceStore) -> list[tuple[str, int, int]]:
    """Return run, rank and span of each recording."""
    return list(store.sql("SELECT run, rank, span FROM rank_spans ORDER BY ALL").rows())


def test_one_run_or_two_as_one_likes(tmp_path: Path) -> None:
    """Recordings can be joined and separated again, and only those that move are read again."""
    traces, target = write_spans(tmp_path / "job"), tmp_path / "job.store"
    one_run = [("job", rank, span) for rank in (0, 1) for span in (0, 1)]
    two_runs = [(run, rank, 0) for run in ("job", "job-capture2") for rank in (0, 1)]
    for join, expected in ((True, one_run), (False, two_runs), (True, one_run)):
        with hta_sql.ingest(traces, target, jobs=1, join_spans=join) as store:
            assert shown(store) == expected
            assert store.ingested
            read = len(store.ingested.results)
        with hta_sql.ingest(traces, target, jobs=1, join_spans=join) as store:
            assert store.ingested
            assert (read, len(store.ingested.results)) in {(4, 0), (2, 0)}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"first_steps": (1, 2)}, r"several of them contain ProfilerStep#2"),
        ({"gap_us": 150}, r"recording 2 starts before recording 1 ends"),
        ({"step": "## epoch ##"}, r"one of them has no profiler step"),
    ],
)
def test_what_is_no_span_is_refused(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    """Recordings with equal step numbers, overlapping times or no steps are not joined."""
    traces = write_spans(tmp_path / "job", **options)
    with pytest.raises(TraceError, match=reason + r"\. Without --join-spans"):
        hta_sql.ingest(traces, tmp_path / "job.store", jobs=1, join_spans=True)
    with pytest.raises(StoreNotFoundError):
        hta_sql.open(tmp_path / "job.store")


def test_what_cannot_be_joined_is_two_runs(tmp_path: Path) -> None:
    """Recordings that cannot be joined can be ingested into one store as two runs."""
    traces = write_spans(tmp_path / "job", gap_us=150)
    with pytest.raises(TraceError):
        hta_sql.ingest(traces, tmp_path / "job.store", jobs=1, join_spans=True)
    with hta_sql.ingest(traces, tmp_path / "job.store", jobs=1) as store:
        assert store.runs() == ["job", "job-capture2"]


def test_shards_join_them_as_well(tmp_path: Path) -> None:
    """Shards may contain recordings of the same rank, which are joined."""
    traces, target = write_spans(tmp_path / "job"), tmp_path / "job.store"
    for number in (1, 2):
        hta_sql.ingest_shard(traces, target, jobs=1, join_spans=True, shard=(number, 2))
    hta_sql.publish(target, expect=2).close()
    with hta_sql.open(target) as store:
        assert shown(store) == [("job", rank, span) for rank in (0, 1) for span in (0, 1)]


def test_a_rank_without_the_first_span(tmp_path: Path) -> None:
    """A rank with a single file belongs to the recording during which it was captured."""
    traces = write_spans(tmp_path / "job")
    (traces / "rank1-0.json").unlink()
    with hta_sql.ingest(traces, tmp_path / "job.store", jobs=1, join_spans=True) as store:
        assert shown(store) == [("job", 0, 0), ("job", 0, 1), ("job", 1, 1)]
        met = "SELECT span, count(*), max(found_count) FROM matched_collectives GROUP BY span ORDER BY span"
        assert store.sql(met).rows() == [(0, 2, 1), (1, 4, 2)]
        assert store.sql("SELECT rank, dur FROM ranks ORDER BY rank").rows() == [
            (0, 400 * US),
            (1, 200 * US),
        ]


def test_three_spans_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command joins any number of spans, here three."""
    traces = write_spans(tmp_path / "job", first_steps=(1, 3, 5))
    target = str(tmp_path / "job.store")
    assert main(["ingest", str(traces), "-o", target, "--jobs", "1", "--join-spans"]) == 0
    assert "Read 6 traces" in capsys.readouterr().err
    with hta_sql.open(target) as store:
        assert store.sql("SELECT dur, step_count FROM runs").rows() == [(600 * US, 6)]


def test_copies_and_kept_answers_have_the_same_rows(tmp_path: Path) -> None:
    """A DuckDB file, a redacted copy and materialized answers have the same rows."""
    traces, target = write_spans(tmp_path / "job"), tmp_path / "job.store"
    query = "SELECT rank, span_ns, idle_ns FROM temporal_breakdown ORDER BY rank"
    spans = "SELECT rank, span, offset_ns, event_count FROM rank_spans ORDER BY ALL"
    with hta_sql.ingest(traces, target, jobs=1, join_spans=True, materialize=True) as store:
        expected = [store.sql(query).rows(), store.sql(spans).rows()]
        export(store, tmp_path / "job.duckdb", "duckdb")
    assert expected[0] == [(0, 100 * US, 20 * US), (1, 100 * US, 40 * US)]
    export_redacted(target, tmp_path / "redacted.duckdb", "duckdb", Redactor("key"))
    for name in ("job.duckdb", "redacted.duckdb"):
        with duckdb.connect(str(tmp_path / name), read_only=True) as con:
            assert [con.execute(query).fetchall(), con.execute(spans).fetchall()] == expected


def test_a_trace_is_written_anew_from_one_file(joined: hta_sql.TraceStore, tmp_path: Path) -> None:
    """Counters cannot be written into a rank with two files."""
    with pytest.raises(ParameterError, match="was recorded 2 times"):
        write_counters(joined, "job", 0)
    exported = export_redacted(joined.path, tmp_path / "given", "trace", Redactor("key"))
    names = sorted(done.name.rpartition("/")[2] for done in exported)
    assert names == [
        *("rank0-capture2.json.gz", "rank0.json.gz"),
        *("rank1-capture2.json.gz", "rank1.json.gz"),
    ]


def test_each_capture_of_a_folder_is_given_away(tmp_path: Path) -> None:
    """A redacted copy of a folder keeps both files of each rank."""
    traces = write_spans(tmp_path / "job")
    export_redacted(traces, tmp_path / "given", "trace", Redactor("key"))
    names = sorted(path.name for path in (tmp_path / "given").iterdir())
    assert names == [
        *("rank0-capture2.json.gz", "rank0.json.gz"),
        *("rank1-capture2.json.gz", "rank1.json.gz"),
    ]
