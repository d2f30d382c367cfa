"""Tests that commands state how much of a damaged trace is missing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

OPERATOR = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "dur": 5}


def test_ingest_advice_doctor_and_report_state_the_loss(tmp_path: Path, cli: Cli) -> None:
    """The first command that reads the trace says how much is missing, and so do the next ones."""
    events = [{**OPERATOR, "ts": 10 * at} for at in range(20_000)]
    text = json.dumps({"traceEvents": events}).encode()
    parts = [gzip.compress(text[at : at + 20_000]) for at in range(0, len(text), 20_000)]
    path = tmp_path / "trace.json.gz"
    path.write_bytes(b"".join([*parts[:10], b"??", *parts[10:]]))
    store = tmp_path / "store"
    for command in (["ingest", path, "-o", store], ["advice", store], ["doctor", store]):
        outcome = cli(*command)
        words = " ".join((outcome.out + outcome.err).split())
        assert "The end of the trace is lost" in words
        assert "% of the file" in words
    page = tmp_path / "report.html"
    assert cli("report", store, "-o", page).code == 0
    assert "% of a trace)" in page.read_text(encoding="utf-8")
