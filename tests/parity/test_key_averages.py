"""The operator table equals PyTorch's key_averages, row by row."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hta_sql import TraceStore
from tests.parity.jobs import TRACES, files_of
from tests.shared_stores import ingest_only, made_once

CASES = TRACES / "torch_cpu"
EXPECTED = TRACES.parent / "expected" / "torch_key_averages"

Keys = tuple[Any, ...]
Rows = list[tuple[Keys, dict[str, int]]]

GROUPINGS: dict[str, dict[str, Any]] = {
    "key_averages": {},
    "key_averages_shapes": {"by_shapes": True},
    "key_averages_stack5": {"stack_frames": 5},
    "key_averages_shapes_stack5": {"by_shapes": True, "stack_frames": 5},
    "key_averages_overload": {"by_overload": True},
}


DEVICE_JOB = "hta_nccl_parser_config"
"""A job with a device, whose operators TraceLens and the TensorBoard plugin have summed."""


def captures() -> list[tuple[str, Path, int, Path, dict[str, Any]]]:
    """Return (run, trace, rank, file with PyTorch's rows, grouping options) of each test case."""
    found: list[tuple[str, Path, int, Path, dict[str, Any]]] = []
    for trace in sorted(CASES.glob("*/*.json.gz")):
        case, name = trace.parent.name, trace.name.removesuffix(".json.gz")
        if name.startswith("rank"):
            theirs = EXPECTED / case / f"oracle_{name}_key_averages.json.gz"
            found.append((case, trace, int(name[4:]), theirs, {}))
            continue
        part = name.removeprefix("trace")
        for grouping, options in GROUPINGS.items():
            theirs = EXPECTED / case / f"{grouping}{part}.json.gz"
            found.append((f"{case}{part}", trace, 0, theirs, options))
    return found


CAPTURES = captures()


def ingest_cases(folder: Path) -> None:
    """Ingest one run for each case and capture."""
    runs: dict[str, dict[int, str]] = {}
    for run, trace, rank, _, _ in CAPTURES:
        runs.setdefault(run, {})[rank] = str(trace)
    runs[DEVICE_JOB] = {0: str(files_of(DEVICE_JOB)[0])}
    for run, traces in runs.items():
        ingest_only(traces, folder, run=run)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest all cases into one store."""
    with TraceStore(made_once(tmp_path_factory, "key_averages", ingest_cases)) as opened:
        yield opened


def test_stacks_are_those_that_torch_recorded(store: TraceStore) -> None:
    """The stack of every operator, derived from event times, equals the recorded stack."""
    query = "SELECT run, rank, stack_id, parent_stack_id, kind, name FROM stacks"
    above = {row[:3]: row[3:] for row in store.sql(query).rows()}
    query = "SELECT run, rank, stack_id, call_stack FROM cpu_ops WHERE call_stack <> ''"
    ops = store.sql(query).rows()
    for run, rank, stack_id, recorded in ops:
        frames, at = [], stack_id
        while at is not None:
            at, kind, name = above[run, rank, at]
            frames += [name] if kind in {"frame", "module"} else []
        assert frames == recorded.rstrip(";").split(";")
    assert len(ops) > 11_000


def nanoseconds(microseconds: float) -> int:
    """Round PyTorch's sums of floats to nanoseconds, in which they are exact."""
    return int((Decimal(microseconds) * 1000).to_integral_value())


def torch_rows(path: Path, options: dict[str, Any]) -> Rows:
    """Return PyTorch's rows in the order of the file."""
    rows = json.loads(gzip.decompress(path.read_bytes()))
    return [
        (
            (
                row["key"],
                row["is_user_annotation"],
                row["overload_name"] if options.get("by_overload") else None,
                row["input_shapes"] if options.get("by_shapes") else None,
                row["stack"] if options.get("stack_frames") else None,
            ),
            {
                "call_count": row["count"],
                "host_total_ns": nanoseconds(row["cpu_time_total"]),
                "host_self_ns": nanoseconds(row["self_cpu_time_total"]),
                "host_total_bytes": row["cpu_memory_usage"],
                "host_self_bytes": row["self_cpu_memory_usage"],
                "device_total_bytes": row["device_memory_usage"],
                "device_self_bytes": row["self_device_memory_usage"],
                "flops": row["flops"],
            },
        )
        for row in rows
    ]


def our_rows(
    store: TraceStore, run: str, rank: int, options: dict[str, Any], columns: dict[str, int]
) -> Rows:
    """Return our rows in PyTorch's order; unknown values are 0, as in PyTorch."""
    result = store.run(
        "operator_table",
        runs=[run],
        ranks=[rank],
        include_last_profiler_step=True,
        like_torch=True,
        **options,
    )
    rows: Rows = []
    for row in result.arrow().to_pylist():
        keys = (
            row["name"],
            row["is_user_annotation"],
            row["overload_name"],
            *(row[name] and json.loads(row[name]) for name in ("input_shapes", "stack")),
        )
        values = {name: row[name] or 0 for name in columns}
        rows.append((keys, values))
    return rows


@pytest.mark.skipif(not CAPTURES, reason="torch's traces are not beside the repository")
@pytest.mark.parametrize(
    ("run", "rank", "theirs", "options"),
    [(run, rank, theirs, options) for run, _, rank, theirs, options in CAPTURES],
    ids=[f"{run}-{rank}-{'-'.join(options) or 'name'}" for run, _, rank, _, options in CAPTURES],
)
def test_rows_are_those_of_torch(
    run: str, rank: int, theirs: Path, options: dict[str, Any], store: TraceStore
) -> None:
    """The rows have PyTorch's keys, order and numbers."""
    wanted = torch_rows(theirs, options)
    found = our_rows(store, run, rank, options, wanted[0][1])
    assert [keys for keys, _ in found] == [keys for keys, _ in wanted]
    assert found == wanted


@pytest.mark.skipif(not CAPTURES, reason="torch's traces are not beside the repository")
def test_operations_of_matrices_are_those_of_torch(store: TraceStore) -> None:
    """The FLOPs of each call equal PyTorch's, for all operators that PyTorch covers."""
    ((compared, different),) = (
        store.sql(
            """
            WITH calls AS (
                SELECT row_number() OVER () AS call_id, lib.op_base_name(c.name) AS name,
                    c.input_dims AS input_shapes, c.input_types, c.concrete_inputs
                FROM cpu_ops AS c
                WHERE regexp_matches(c.name, '^aten::(mm|bmm|addmm|baddbmm|conv2d)$')
            ), counted AS (
                SELECT w.flops, lib._operator_flops(c.name, c.input_shapes, c.concrete_inputs) AS torch_flops
                FROM calls AS c
                LEFT JOIN lib._operator_work('calls') AS w ON w.call_id = c.call_id
            )
            SELECT count(torch_flops), count_if(flops IS DISTINCT FROM torch_flops) FROM counted
            """
        )
        .arrow()
        .to_pandas()
        .itertuples(index=False)
    )
    assert (compared, different) == (402, 0)


@pytest.mark.skipif(not CAPTURES, reason="public traces are not beside the repository")
def test_device_time_is_that_of_tracelens(store: TraceStore) -> None:
    """The self device time of each operator equals TraceLens's, which excludes collectives."""
    ours = by_name(store)
    file = EXPECTED.parent / "tracelens" / f"{DEVICE_JOB}_ops_summary.csv"
    theirs = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    assert len(theirs) == 23
    for row in theirs:
        found = ours[row["name"]]["device_self_ns"] / 1000
        assert abs(found - float(row["total_direct_kernel_time_sum"])) <= 0.5, row["name"]


@pytest.mark.skipif(not CAPTURES, reason="public traces are not beside the repository")
def test_operators_are_those_of_the_tensorboard_plugin(store: TraceStore) -> None:
    """Calls, device time and host time of all 89 operators match in whole microseconds."""
    ours = by_name(store)
    file = EXPECTED.parent / "tb_plugin" / f"{DEVICE_JOB}.json"
    theirs = json.loads(file.read_text(encoding="utf-8"))["op_table"]["data"]
    assert len(theirs) == 89
    for row in theirs:
        found = ours[row["name"]]
        assert found["call_count"] == row["calls"]
        for mine, other in (
            ("device_self_ns", "device_self_duration"),
            ("device_total_ns", "device_total_duration"),
            ("host_total_ns", "host_total_duration"),
        ):
            assert abs(found[mine] / 1000 - row[other]) <= 1, (row["name"], mine)


def by_name(store: TraceStore) -> dict[str, dict[str, Any]]:
    """Return operator name ─▶ row for the job that has a device."""
    result = store.run("operator_table", runs=[DEVICE_JOB], include_last_profiler_step=True)
    return {row["name"]: row for row in result.arrow().to_pylist()}
