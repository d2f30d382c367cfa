"""An argument value of the wrong type is quarantined, and the rest of its event is stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import hta_sql
from hta_sql.exports.exports import Selection, export
from hta_sql.library.answers import answers
from hta_sql.library.arguments import argument_forms, known_arguments
from hta_sql.library.objects import load_library
from hta_sql.store.catalog.materialize import materialize_answers
from hta_sql.synthetic import write_job
from tests.arguments.odd_values import (
    ODD,
    all_calls,
    failures,
    odd_arguments,
    read_trace,
    spoil,
    spoiled_jobs,
)
from tests.ingestion.readers import check_readers_agree, needs_native
from tests.pinned.jobs import CATALOG, EVERYTHING, make_catalog, write_jobs
from tests.shared_stores import ingest_only

TOO_LARGE = 1180591620717411303424


def kernel(**args: Any) -> dict[str, Any]:
    """Return an NCCL kernel event with the given arguments added."""
    known = {"stream": 7, "device": 0, "correlation": 5, "Collective name": "allreduce"}
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    event = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 10, "dur": 5}
    return {**event, "args": {**known, **args}}


def operator(**args: Any) -> dict[str, Any]:
    """Return a host operator event with the given arguments added."""
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5}
    return {**event, "args": {"External id": 3, **args}}


CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "ranks beyond 64 bits": (
        kernel(**{"Process Group Ranks": [TOO_LARGE]}),
        "Process Group Ranks",
        "a list of ranks",
    ),
    "a word as shapes": (
        operator(**{"Input Dims": "word"}),
        "Input Dims",
        "a list with the list of sizes of each input",
    ),
    "a word as types": (operator(**{"Input type": "word"}), "Input type", "a list of texts"),
    "an occupancy of 1e308": (
        kernel(**{"est. achieved occupancy %": 1e308}),
        "est. achieved occupancy %",
        "a finite number",
    ),
    "a word as stream": (kernel(stream="seven"), "stream", "a whole number of at most 62 bits"),
    "more ranks than a list may have": (
        kernel(**{"Process Group Ranks": [1] * (1 << 14)}),
        "Process Group Ranks",
        "a list of ranks",
    ),
    "split sizes of texts": (
        kernel(**{"In split size": ["a"]}),
        "In split size",
        "a list of whole numbers",
    ),
}


@pytest.fixture(scope="module", params=["0", "1"])
def odd_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[hta_sql.TraceStore]:
    """Ingest one rank for each case, in turn with and without the compiled reader."""
    folder = tmp_path_factory.mktemp("odd")
    traces = {}
    for rank, (event, _, _) in enumerate(CASES.values()):
        trace = folder / f"rank{rank}.json"
        trace.write_text(json.dumps({"traceEvents": [operator(), kernel(), event]}))
        traces[rank] = str(trace)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HTA_SQL_NATIVE", request.param)
        with hta_sql.ingest(traces, folder / "job.store") as store:
            yield store


@pytest.mark.parametrize("case", CASES)
def test_an_odd_value_is_quarantined_and_its_event_stays(
    case: str, odd_store: hta_sql.TraceStore
) -> None:
    """An odd value is quarantined and reported; its event is stored without the value."""
    event, argument, form = CASES[case]
    rank = {"rank": [*CASES].index(case)}
    count = "SELECT count(*) FROM events WHERE rank = $rank"
    assert odd_store.sql(count, rank).rows() == [(3,)]
    (found,) = odd_store.sql("FROM quarantine WHERE rank = $rank", rank).records()
    assert (found["event_id"], found["argument"], found["is_lost"]) == (2, argument, False)
    assert found["reason"] == f"the argument {argument} is not {form}"
    args = "SELECT args FROM event_args WHERE event_id = 2 AND rank = $rank"
    ((kept,),) = odd_store.sql(args, rank).rows()
    assert json.loads(kept) == event["args"]
    odd = "FROM findings WHERE finding = 'odd_arguments' AND rank = $rank"
    (warning,) = odd_store.sql(odd, rank).records()
    assert warning["severity"] == "warning"
    assert argument in warning["message"]


def test_values_of_the_expected_form_are_not_quarantined(tmp_path: Path) -> None:
    """Empty lists, lists truncated by the profiler and null are valid values."""
    good = [
        kernel(**{"Process Group Ranks": "[0, 1, 2, ...]", "In split size": "[]"}),
        kernel(**{"Process Group Ranks": [0, 1], "est. achieved occupancy %": 100}),
        operator(**{"Input Dims": [[2, 3], [], [[4], [5]]], "Input type": ["float", ""]}),
        operator(**{"Concrete Inputs": ["", "[1, 2]"], "Input Strides": [[3, 1]]}),
        operator(**{"Sequence number": None}),
    ]
    trace = tmp_path / "rank0.json"
    trace.write_text(json.dumps({"traceEvents": good}))
    with hta_sql.ingest(trace, tmp_path / "job.store") as store:
        assert store.sql("FROM quarantine").rows() == []
        kept = store.sql("SELECT pg_ranks FROM gpu_ops ORDER BY event_id").rows()
        assert kept == [("[0, 1, 2, ...]",), ("[0,1]",)]


def test_every_argument_with_a_column_has_a_form() -> None:
    """Exactly the arguments with a column have a form, and odd values cover all known arguments."""
    forms = argument_forms()
    for argument in known_arguments():
        assert bool(argument.column) == (argument.form is not None), argument.name
        assert argument.form is None or forms[argument.form.name].type
    pairs = odd_arguments(Random(1))
    drawn = {next(pairs)[0] for _ in range(len(ODD) * len(known_arguments()))}
    assert drawn == {argument.name for argument in known_arguments()}


@needs_native
@pytest.mark.parametrize("seed", range(3))
def test_both_readers_read_odd_values_alike(seed: int, tmp_path: Path) -> None:
    """Both readers agree on events with odd values, even if the compiled reader refuses them."""
    random = Random(seed)
    pairs = odd_arguments(random)
    trace = read_trace(write_job(tmp_path, EVERYTHING).files[0])
    spoil(trace, random, pairs)
    texts = [json.dumps(event).encode(errors="surrogatepass") for event in trace["traceEvents"]]
    check_readers_agree(random.sample(texts, 300))


def test_every_analysis_answers_on_odd_values(tmp_path: Path) -> None:
    """Every analysis succeeds on corrupted copies of all pinned jobs."""
    runs = write_jobs(tmp_path / "whole")
    make_catalog(tmp_path, spoiled_jobs(tmp_path / "spoiled", runs, Random(7)))
    assert failures(tmp_path / CATALOG, all_calls()) == {}


@pytest.fixture(scope="module")
def spoiled_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """Ingest a corrupted job, and materialize all answers, which each export reads."""
    top = tmp_path_factory.mktemp("spoiled")
    runs = {"job": {0: str(write_job(top / "whole", EVERYTHING).files[0])}}
    spoiled = spoiled_jobs(top / "spoiled", runs, Random(11))
    ingest_only(spoiled["job"], top / "job.store", run="job")
    materialize_answers(top / "job.store", sorted(answers(load_library())), ["job"])
    with hta_sql.open(top / "job.store") as store:
        yield store


@pytest.mark.parametrize("format_name", ["parquet", "csv", "xlsx", "duckdb", "speedscope"])
def test_odd_values_are_exported(
    format_name: str, spoiled_store: hta_sql.TraceStore, tmp_path: Path
) -> None:
    """Every analysis and table can be exported in every format despite odd values."""
    tables = [table.name for table in spoiled_store.library.tables]
    names = [analysis.base_name for analysis in spoiled_store.library.newest()]
    wanted = () if format_name in ("duckdb", "speedscope") else (*names, *tables)
    suffix = "" if format_name in ("parquet", "csv") else f".{format_name}"
    target = tmp_path / f"out{suffix}"
    written = export(spoiled_store, target, format_name, Selection(wanted, (), ()))
    assert len(written) >= len(wanted)


@pytest.mark.parametrize("size", [-(1 << 63), -1, 0, (1 << 24) + 1])
def test_a_size_that_no_group_has_is_null(size: int, tmp_path: Path) -> None:
    """An impossible group size is stored as NULL, while other properties are kept."""
    group = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": size, "ranks": [0, 1]}
    trace = {"distributedInfo": {"rank": 0, "pg_config": [group]}, "traceEvents": [kernel()]}
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps(trace), encoding="utf-8")
    with hta_sql.ingest(path, tmp_path / "job.store") as store:
        query = "SELECT pg_name, pg_size, pg_ranks FROM process_groups"
        assert store.sql(query).rows() == [("0", None, "[0,1]")]
        assert len(store.run("process_group_costs").rows()) == 1
