"""Tests of ``hta-sql doctor``, including its check of argument types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from hta_sql.authoring.golden_messages import render
from tests.hang_jobs import training, write_pickles
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def traces_in(folder: Path) -> Path:
    """Write two ranks, one of which has a stream that is not a number."""
    for rank, stream in enumerate((7, "default")):
        kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 1}
        events = [{**kernel, "args": {"stream": stream}}]
        trace = {"distributedInfo": {"rank": rank}, "traceEvents": events}
        (folder / f"{rank}.json").write_text(json.dumps(trace))
    return folder


def test_a_remedy_of_a_dump_can_be_pasted(cli: Cli, tmp_path: Path) -> None:
    """Commands in remedies name the store, and the run if there are several."""
    dumps, store = write_pickles(training(2, 2, 1), tmp_path / "two dumps"), tmp_path / "job.store"
    assert f"remedy: hta-sql hang '{dumps}'\n" in cli("doctor", dumps).out
    for run in ("day", "night"):
        assert cli("ingest", dumps, "--run", run, "-o", store).code == 0
    assert f"remedy: hta-sql hang {store}:night\n" in cli("doctor", store).out


def test_argument_types_of_traces(cli: Cli, tmp_path: Path) -> None:
    """The first value of a wrong type causes a warning for its rank."""
    traces = traces_in(tmp_path)
    done = cli("doctor", traces, "--format", "json", "--fail-on", "never")
    (found,) = [row for row in json.loads(done.out) if row["finding"] == "argument_types"]
    assert (found["rank"], found["severity"], found["value"]) == (1, "warning", 1.0)
    assert "key=stream: value='default' type=str; expect_type=integer (event 0)" in found["message"]
    told = cli("doctor", traces, "--fail-on", "warning")
    assert "argument_types (rank 1)" in told.out
    assert told.code == 1
    assert "warning  argument_types" not in cli("doctor", traces, "--argument-types", "off").out


def test_a_store_has_no_traces_to_check(cli: Cli, tmp_path: Path) -> None:
    """``doctor STORE`` does not check argument types, because this requires the traces."""
    traces = traces_in(tmp_path)
    ingest_only(traces, tmp_path / "job.store")
    assert "warning  argument_types" not in cli("doctor", tmp_path / "job.store").out


def test_a_repair_is_called_one_once(cli: Cli, tmp_path: Path) -> None:
    """An event name with an invalid UTF-8 byte is reported as one repair."""
    event = b'{"ph": "X", "cat": "cpu_op", "name": "a\xff", "pid": 1, "tid": 1, "ts": 1, "dur": 1}'
    (tmp_path / "rank0.json").write_bytes(b'{"traceEvents": [' + event + b"]}")
    done = cli("doctor", tmp_path, "--format", "json", "--fail-on", "never")
    (found,) = [row for row in json.loads(done.out) if row["finding"] == "repaired_events"]
    values = {"event_count": 1, "repair": "bytes that are not UTF-8"}
    assert found["message"] == render("findings.repaired_events", values)


def test_how_much_is_matched_across_ranks(cli: Cli, tmp_path: Path) -> None:
    """``doctor`` prints how many collectives are matched across ranks, if there are any."""
    traces = Path(__file__).parents[1] / "traces"
    paths = {rank: str(traces / f"waits_{rank}.json") for rank in (0, 1)}
    ingest_only(paths, tmp_path / "job.store")
    said = (
        "  collectives: 6 of 6 kernels matched across ranks by seq; the end times of 100 % agree\n"
    )
    assert said in cli("doctor", tmp_path / "job.store").out
    assert "matched" not in cli("doctor", paths[0]).out
