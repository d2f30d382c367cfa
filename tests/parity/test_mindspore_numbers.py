"""A recorded MindSpore cluster matches its own files, read with csv, json and exact fractions."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import hta_sql
from hta_sql import TraceStore
from tests.parity.jobs import TRACES

JOB = TRACES / "mindspore_cluster_4rank"
RANKS = range(4)
pytestmark = pytest.mark.skipif(not JOB.is_dir(), reason="the public traces are not here")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest the job."""
    with hta_sql.ingest(JOB, tmp_path_factory.mktemp("mindspore") / "job.store") as opened:
        yield opened


def rows_of(pattern: str) -> list[dict[str, str]]:
    """Read the CSV file that matches a pattern."""
    (path,) = JOB.glob(pattern)
    csv.field_size_limit(sys.maxsize)
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def ns(milliseconds: float | str) -> int:
    """Convert milliseconds to nanoseconds, rounding half up."""
    return int(Fraction(str(milliseconds)) * 10**6 + Fraction(1, 2))


def test_steps(store: TraceStore) -> None:
    """Every cell of the step traces matches the recorded files."""
    expected = {}
    for rank in RANKS:
        analysis = rows_of(f"ascend_cluster_analyse_*_{rank}.csv")
        for row in rows_of(f"step_trace_raw_{rank}_detail_time.csv"):
            if row["step_num"] == "-":
                continue
            step = int(row["step_num"])
            names = ("total", "iteration_interval", "fp_and_bp", "tail")
            more = ("computation_time", "communication_alone_time", "receive_alone_time")
            stage = ("collective_communication_alone_time", "stage_time")
            expected[rank, step] = [
                *(int(row[name]) * 10 for name in names),
                *(ns(analysis[step - 1][name]) for name in (*more, *stage)),
            ]
    ours = {(row[1], row[2]): list(row[3:]) for row in store.run("cluster_step_trace").rows()}
    assert ours == expected
    assert len(ours) == 20
    for total, interval, passes, tail, *_ in ours.values():
        assert total == interval + passes + tail


def test_communication(store: TraceStore) -> None:
    """The cost of every operator in every step matches, and so do the sums by kind."""
    costs: dict[tuple[int, str], list[int]] = {}
    single = {}
    for rank in RANKS:
        for row in rows_of(f"hccl_raw_{rank}.csv"):
            step = None if row["step_num"] == "-" else int(row["step_num"])
            for name, values in json.loads(row["communication_operator_cost"]).items():
                cost = (ns(values[1]), ns(values[2]))
                single[rank, step, name] = cost
                if step is not None:
                    total = costs.setdefault((rank, name.split("_")[3].split("-")[0]), [0, 0, 0])
                    costs[rank, name.split("_")[3].split("-")[0]] = [
                        total[0] + 1,
                        total[1] + cost[0],
                        total[2] + cost[1],
                    ]
    query = (
        "SELECT rank, step, name, communication_ns, wait_ns FROM cluster_communication"
        " WHERE communication_ns IS NOT NULL"
    )
    assert {row[:3]: row[3:] for row in store.sql(query).rows()} == single
    ours = store.run("cluster_communication_cost").rows()
    assert {(row[1], row[2]): list(row[3:6]) for row in ours} == costs
    assert {kind for _, kind in costs} >= {"AllReduce", "Receive", "Send"}


def test_links(store: TraceStore) -> None:
    """The time and the traffic of every link match."""
    expected = {}
    for rank in RANKS:
        for row in rows_of(f"hccl_raw_{rank}.csv"):
            step = None if row["step_num"] == "-" else int(row["step_num"])
            operators = json.loads(row["communication_operator_cost"])
            links = {None: json.loads(row["link_info"])} | {
                name: values[3] for name, values in operators.items()
            }
            for operator, pairs in links.items():
                for pair, kinds in pairs.items():
                    for kind, (time, kilobytes, _) in kinds.items():
                        source, target = map(int, pair.split("-"))
                        volume = int(Fraction(str(kilobytes)) * 1000 + Fraction(1, 2))
                        key = (rank, step, operator, source, target, kind)
                        expected[key] = (ns(time), volume)
    rows = store.sql("SELECT * EXCLUDE run FROM cluster_links").rows()
    assert {row[:6]: row[6:] for row in rows} == expected
    assert len(rows) == len(expected) > 1000
