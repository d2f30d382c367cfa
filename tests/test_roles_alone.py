"""Tests of roles that each number their ranks from 0.

The results for a role equal those of its traces ingested alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.cli import main
from hta_sql.synthetic import JobSpec, write_job
from tests.serving_jobs import Kernel, decode, layers, trace

NAMES = ("step_accounting", "kpis", "stragglers", "idle_causes", "advice", "serving")
TRAINING = {
    "trainer": JobSpec(ranks=4, steps=5, layers=2, slow_kernels={1: 1.6}, gzip=False),
    "rollout": JobSpec(ranks=4, steps=7, layers=1, seed=4, stragglers={2: 900_000}, gzip=False),
    "reward": JobSpec(ranks=1, steps=3, layers=1, seed=9, gzip=False),
}


def write_serving(folder: Path, role: str) -> None:
    """Write the traces of two servers with a role; iteration times differ between the roles."""
    for rank in range(2):
        kernels = layers(2, 90_000 if role == "prefill" else 7_000 + 500 * rank)
        reduced = (*kernels, Kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 20_000))
        made = [decode(4, 300 + n, kernels=reduced, schedule_ns=30_000) for n in range(12)]
        content = trace(made, rank, 2)
        (folder / f"rank{rank}.json").write_text(json.dumps(content), encoding="utf-8")


class Job:
    """A job whose roles have one folder each, and its store."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        self.roles = list(TRAINING) if kind == "training" else ["prefill", "decode"]
        for role in self.roles:
            (folder / "job" / role).mkdir(parents=True)
            if kind == "training":
                write_job(folder / "job" / role, TRAINING[role])
            else:
                write_serving(folder / "job" / role, role)
        given = {role: str(folder / "job" / role) for role in self.roles}
        self.store = hta_sql.ingest(folder / "job", folder / "s", run="job", role=given, jobs=1)
        rows = self.store.sql("SELECT role, min(rank) FROM ranks GROUP BY ALL").rows()
        self.first: dict[str, int] = dict(rows)

    def alone(self, role: str) -> hta_sql.TraceStore:
        """Ingest only the traces of one role."""
        traces = self.folder / "job" / role
        return hta_sql.ingest(traces, self.folder / f"{role}.store", run="job", jobs=1)


@pytest.fixture(scope="module", params=["training", "serving"])
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """Ingest a job with trainers, rollout servers and a reward model, or a serving job."""
    made = Job(tmp_path_factory.mktemp("worlds"), request.param)
    with made.store:
        yield made


def in_role(row: dict[str, Any], first: int) -> dict[str, Any]:
    """Return a row with ranks numbered within the role.

    Numbers in strings are masked, because they may be ranks.
    """
    cells: dict[str, Any] = {}
    for name, value in row.items():
        if name == "finding_id":  # its value is a digest that includes the rank
            continue
        cells[name] = value
        if isinstance(value, str):
            cells[name] = re.sub(r"\d+", "#", value)
        elif re.search(r"(^|_)rank$", name) and value is not None:
            cells[name] = value - first
    return cells


def test_figures_of_a_role_are_those_of_its_traces_alone(job: Job) -> None:
    """Apart from rank numbers, all rows equal those from ingesting only the role's traces."""
    counts = dict.fromkeys(NAMES, 0)
    for role in job.roles:
        with job.alone(role) as alone:
            for name in NAMES:
                rows = job.store.run(name, roles=[role]).records()
                own = [in_role(row, job.first[role]) for row in rows]
                assert own == [in_role(row, 0) for row in alone.run(name).records()], (role, name)
                counts[name] += len(rows)
    assert counts["kpis"] == len(job.roles)
    # The serving analysis has no rows for training, which is why it may be empty there.
    assert counts["serving"] or "trainer" in job.roles


@pytest.mark.parametrize("job", ["training"], indirect=True)
def test_verdicts_are_of_the_steps_of_the_role(job: Job) -> None:
    """The late rank of each role is found, from the steps of that role only."""
    for role, late in (("trainer", 1), ("rollout", 2)):
        rows = job.store.run("stragglers", roles=[role]).records()
        named = [row["rank"] - job.first[role] for row in rows if row["is_straggler"]]
        assert named == [late]
        assert {row["step_count"] for row in rows} <= {
            TRAINING[role].steps,
            TRAINING[role].steps - 1,
        }


def test_a_store_of_a_role_has_its_ranks_only(job: Job) -> None:
    """The store of a role has only that role's ranks, and is created once."""
    role = job.roles[-1]
    part = job.store.of_roles([role])
    assert part is job.store.of_roles(role)
    assert set(part.ranks()) == {rank for rank in job.store.ranks() if rank >= job.first[role]} - {
        first for other, first in job.first.items() if other != role
    }


@pytest.mark.parametrize("command", ["advice", "serving", "run"])
def test_commands_take_roles(job: Job, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With --roles, a command prints the same as for a store of that role's traces."""
    role = job.roles[0]
    job.alone(role).close()
    extra = ["kpis"] if command == "run" else []
    said = []
    for store, roles in ((job.folder / "s", ["--roles", role]), (job.folder / f"{role}.store", [])):
        assert main([command, str(store), *extra, *roles]) == 0
        said.append(capsys.readouterr().out.replace(str(store), "STORE"))
    assert said[0] == said[1]


def test_a_hang_of_a_role_has_its_dumps_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hang is found only in the dumps of its role, although each role has a group 0."""
    for role, states in (("prefill", ("completed", "completed")), ("decode", ("started", None))):
        for rank, state in enumerate(states):
            entry = {
                "record_id": 0,
                "pg_id": 0,
                "process_group": ["0", "default_pg"],
                "op_id": 1,
                "collective_seq_id": 1,
                "profiling_name": "nccl:all_reduce",
                "state": state,
                "retired": state == "completed",
                "is_p2p": False,
                "time_created_ns": 1,
            }
            dump = {
                "version": "2.10",
                "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
                "entries": [entry] if state else [],
            }
            path = tmp_path / "dumps" / role / f"nccl_trace_rank_{rank}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(dump), encoding="utf-8")
    store = str(tmp_path / "s")
    given = [f"--role={role}={tmp_path / 'dumps' / role}" for role in ("prefill", "decode")]
    assert main(["ingest", str(tmp_path / "dumps"), "-o", store, *given]) == 0
    capsys.readouterr()
    assert main(["hang", store, "--roles", "prefill"]) == 0
    assert "nothing hangs" in capsys.readouterr().out
    assert main(["hang", store, "--roles", "decode"]) == 4
    assert "ank 3" in capsys.readouterr().out
