"""Tests of jobs with multiple roles: filtering by role equals ingesting only that role's traces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.cli import main
from hta_sql.errors import RankError
from hta_sql.report import write_report
from hta_sql.synthetic import JobSpec, write_job

RL = {"trainer": 4, "rollout": 4, "reward": 1}
SERVING = {"prefill server": 2, "decode server": 2}
PER_RANK = ("step_accounting", "temporal_breakdown", "kernel_table", "gpu_kernel_types")


def write_role(folder: Path, role: str, count: int, first: int, world: int) -> dict[int, str]:
    """Write the traces of a role, with ranks numbered within the whole job."""
    job = write_job(folder / role, JobSpec(ranks=count, steps=3, layers=2, seed=first, gzip=False))
    found = {}
    for path in job.files:
        trace: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        stated = trace["distributedInfo"]
        rank = first + stated["rank"]
        trace["distributedInfo"] = stated | {"rank": rank, "world_size": world, "role": role}
        for event in trace["traceEvents"]:
            args = event.get("args", {})
            if "Process Group Name" in args:
                args["Process Group Name"] += f"_{role}"
                own = json.loads(args["Process Group Ranks"])
                args["Process Group Ranks"] = json.dumps([first + one for one in own])
        path.write_text(json.dumps(trace), encoding="utf-8")
        found[rank] = str(path)
    return found


class Roles:
    """A job with multiple roles: its traces by role, and its store."""

    def __init__(self, folder: Path, roles: dict[str, int]) -> None:
        self.traces: dict[str, dict[int, str]] = {}
        for role, count in roles.items():
            first = sum(map(len, self.traces.values()))
            self.traces[role] = write_role(folder, role, count, first, sum(roles.values()))
        every = {rank: path for traces in self.traces.values() for rank, path in traces.items()}
        self.store = hta_sql.ingest(every, folder / "job.store", run="job", jobs=1)
        self.folder = folder

    def alone(self, role: str) -> hta_sql.TraceStore:
        """Ingest only the traces of one role."""
        return hta_sql.ingest(self.traces[role], self.folder / f"{role}.store", run="job", jobs=1)


@pytest.fixture(scope="module", params=[RL, SERVING], ids=["training", "serving"])
def job(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Roles]:
    """Ingest a reinforcement learning job, or a serving job with prefill and decode servers."""
    made = Roles(tmp_path_factory.mktemp("roles"), request.param)
    with made.store:
        yield made


def test_each_rank_has_its_role_and_rank_in_it(job: Roles) -> None:
    """Traces that do not state a rank within their role are numbered in rank order."""
    rows = job.store.sql("SELECT rank, role, role_rank FROM ranks ORDER BY rank").rows()
    assert rows == [
        (rank, role, place)
        for role, traces in job.traces.items()
        for place, rank in enumerate(traces)
    ]


@pytest.mark.slow(reason="large")
def test_analyses_by_role_are_those_of_its_traces_alone(job: Roles) -> None:
    """All rows and columns equal those from ingesting only the role's traces."""
    for role, traces in job.traces.items():
        with job.alone(role) as alone:
            for name in PER_RANK:
                rows = job.store.run(name, roles=[role]).arrow().to_pylist()
                assert rows == alone.run(name).arrow().to_pylist(), (role, name)
                assert {row["rank"] for row in rows} <= set(traces)


def test_stragglers_compare_ranks_of_one_role_only(job: Roles) -> None:
    """Stragglers are only compared with ranks of the same role, so a single rank has no peers."""
    rows = job.store.run("stragglers").arrow().to_pylist()
    assert {row["rank"] for row in rows} == {rank for one in job.traces.values() for rank in one}
    assert not any(row["is_straggler"] for row in rows)
    sets = job.store.sql(
        "WITH pipeline AS (FROM lib.pipeline_ranks(NULL)) "
        "SELECT b.set_id, count(DISTINCT r.role) AS n FROM lib.rank_blocks(NULL, 'pipeline') AS b "
        "JOIN ranks AS r ON r.run = b.run AND r.rank = b.item_id GROUP BY ALL"
    ).rows()
    assert all(count == 1 for _, count in sets)


def test_roles_narrow_the_requested_ranks(job: Roles) -> None:
    """Roles and ranks together select their intersection, and an empty intersection is an error."""
    role = next(iter(job.traces))
    rows = job.store.run("temporal_breakdown", roles=[role], ranks=[1, 99]).arrow().to_pylist()
    assert [row["rank"] for row in rows] == [1]
    last = max(rank for one in job.traces.values() for rank in one)
    with pytest.raises(RankError, match="None of the requested ranks has the role"):
        job.store.run("temporal_breakdown", roles=[role], ranks=[last])


def test_an_unknown_role_is_refused_with_those_there_are(job: Roles) -> None:
    """The error for an unknown role lists the existing roles."""
    with pytest.raises(RankError, match=f"No role 'critic'; available roles: .*{min(job.traces)}"):
        job.store.run("temporal_breakdown", roles=["critic"])


def test_a_role_may_have_other_ranks_in_another_run(job: Roles, tmp_path: Path) -> None:
    """A role selects the ranks that have it in each run, even if they differ between runs."""
    first = next(iter(job.traces))
    with hta_sql.ingest(job.traces[first], tmp_path / "s", run="base", jobs=1):
        pass
    other = write_role(tmp_path, first, 2, 2, 4)
    with hta_sql.ingest(other, tmp_path / "s", run="test", jobs=1) as store:
        rows = store.run("temporal_breakdown", roles=[first]).records()
        of_runs = {run: [row["rank"] for row in rows if row["run"] == run] for run in store.runs()}
        assert of_runs == {"base": list(job.traces[first]), "test": [2, 3]}
        rows = store.run("temporal_breakdown", roles=[first], runs=["test"]).records()
        assert [row["rank"] for row in rows] == [2, 3]


def test_the_command_line_takes_roles(job: Roles, capsys: pytest.CaptureFixture[str]) -> None:
    """The option --roles selects the ranks of a role."""
    role, traces = next(iter(job.traces.items()))
    asked = ["run", str(job.store.path), "temporal_breakdown", "--roles", role, "--format", "json"]
    assert main(asked) == 0
    assert [row["rank"] for row in json.loads(capsys.readouterr().out)] == list(traces)


@pytest.mark.slow(reason="large")
def test_a_report_of_a_role_is_that_of_its_traces_alone(job: Roles, tmp_path: Path) -> None:
    """Reports differ only in the SQL to copy, which names the role's ranks, and in a note on it."""
    role, traces = next(iter(job.traces.items()))
    page = write_report(job.store, tmp_path / "role.html", roles=[role]).read_text("utf-8")
    with job.alone(role) as alone:
        expected = write_report(alone, tmp_path / "alone.html").read_text("utf-8")
    named = f"ranks := {list(traces)}"
    assert named in page
    for text in (f"{named}, ", f", {named}", named):
        page = page.replace(text, "")
    note = re.search(rf" This page compares only .* --roles {role} returns [^.]*\.", page)
    assert note is not None
    assert page.replace(note[0], "") == expected
