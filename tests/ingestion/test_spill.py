"""Data that exceeds the memory limit is spilled to a temporary folder, which is then deleted."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from hta_sql.errors import TraceFormatError
from hta_sql.ingestion.rank import ingest_rank
from hta_sql.ingestion.rank_job import RankJob
from hta_sql.ingestion.tables import write_tables
from hta_sql.synthetic import JobSpec, write_job
from tests.synthetic.sizing import spec_for_events


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RankJob:
    """Write a trace that exceeds its job's memory limit, and change to an empty folder."""
    spec = replace(spec_for_events(60_000, JobSpec(ranks=1)), gzip=False)
    (trace,) = write_job(tmp_path / "traces", spec).files
    for name in ("temporary", "current"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path / "current")
    return RankJob(str(trace), "run", 0, "given", str(tmp_path / "tables"), memory_limit="40MiB")


def test_the_spill_is_gone(job: RankJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """While tables are written, data is spilled to the temporary folder, which is then deleted."""
    spilled: list[Path] = []

    def looking(*given: object) -> object:
        spilled.extend(Path(tempfile.gettempdir()).rglob("*.tmp"))
        return write_tables(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("hta_sql.ingestion.rank.write_tables", looking)
    ingest_rank(job)
    assert spilled
    assert not list(Path(tempfile.gettempdir()).glob("hta_sql-*-*"))
    assert not list(Path.cwd().iterdir())


def test_the_spill_of_a_refused_trace_is_gone(job: RankJob) -> None:
    """Spilled data is also deleted if a strict ingest refuses the trace."""
    path = Path(job.path)
    path.write_bytes(path.read_bytes().replace(b'"Record Window End"', b'"Record Window End'))
    with pytest.raises(TraceFormatError):
        ingest_rank(replace(job, strict=True))
    assert not list(Path(tempfile.gettempdir()).glob("hta_sql-*-*"))
    assert not list(Path.cwd().iterdir())
