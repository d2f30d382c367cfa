"""With role options, every process gets a distinct rank in the run.

This holds even if every role numbers its ranks from 0.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import duckdb
import pytest

import hta_sql
from hta_sql.cli import main
from hta_sql.errors import ParameterError, RankError, TraceNotFoundError
from hta_sql.store.disk.manifest import read_manifest

EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
RANKS = "SELECT rank, role, role_rank, source FROM ranks ORDER BY rank"


def write(path: Path, rank: int, size: int, **info: Any) -> None:
    """Write a trace with an operator, a collective of all ranks in its world and a send."""
    group = {
        "Collective name": "allreduce",
        "Process Group Name": "0",
        "Group size": size,
        "Process Group Ranks": f"[{', '.join(map(str, range(size)))}]",
    }
    kernel = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7}
    sent = {**kernel, "ts": 9, "dur": 1, "args": {"Dst Rank": 1 - rank, "stream": 7}}
    path.parent.mkdir(parents=True, exist_ok=True)
    pg_config = [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": size, "ranks": "[0, 1]"}]
    content = {
        "distributedInfo": {"rank": rank, "world_size": size, "pg_config": pg_config, **info},
        "traceEvents": [EVENT, {**kernel, "ts": 5, "dur": 3, "args": group}, sent],
    }
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def worlds(tmp_path: Path) -> Path:
    """Write two roles with two ranks each, both numbered from 0."""
    for role in ("prefill", "decode"):
        for rank in range(2):
            write(tmp_path / "job" / f"engine_{role}" / f"rank{rank}.json", rank, 2)
    return tmp_path


def ranks_of(store: hta_sql.TraceStore) -> list[tuple[Any, ...]]:
    """Return the rank, role, rank within the role and folder name of each trace."""
    rows = store.sql(RANKS).rows()
    return [(*row[:3], Path(row[3]).parent.name) for row in rows]


PLACED = [
    (0, "prefill", 0, "engine_prefill"),
    (1, "prefill", 1, "engine_prefill"),
    (2, "decode", 0, "engine_decode"),
    (3, "decode", 1, "engine_decode"),
]


def roles(folder: Path) -> dict[str, str]:
    """Return a folder for each role, with the roles not in alphabetical order."""
    return {role: str(folder / "job" / f"engine_{role}") for role in ("prefill", "decode")}


@pytest.mark.parametrize("listed", [False, True])
def test_roles_that_count_from_0_have_ranks_of_their_own(
    worlds: Path, caplog: pytest.LogCaptureFixture, *, listed: bool
) -> None:
    """Ranks are numbered in the order of the role options, which a warning states."""
    job = worlds / "job"
    traces = sorted(map(str, job.rglob("*.json"))) if listed else str(job)
    with (
        caplog.at_level(logging.WARNING),
        hta_sql.ingest(traces, worlds / "s", role=roles(worlds)) as store,
    ):
        assert ranks_of(store) == PLACED
        assert store.sql("SELECT DISTINCT world_size FROM ranks").rows() == [(4,)]
        assert store.sql("SELECT rank_count, world_size FROM runs").rows() == [(4, 4)]
        found = {row["finding"] for row in store.run("findings").records()}
    assert not found & {"world_sizes_differ", "rank_beyond_world_size", "ranks_missing"}
    (said,) = [record.message for record in caplog.records]
    assert "prefill 0-1; decode 2-3" in said


def test_recorded_groups_and_partners_are_ranks_of_the_run(worlds: Path) -> None:
    """Ranks recorded in process groups and sends are translated to ranks of the run.

    Collectives of different roles are therefore never matched.
    """
    with hta_sql.ingest(worlds / "job", worlds / "s", role=roles(worlds)) as store:
        groups = store.sql(
            "SELECT rank, pg_ranks FROM gpu_ops WHERE pg_ranks IS NOT NULL ORDER BY ALL"
        ).rows()
        partners = store.sql(
            "SELECT rank, dst_rank FROM gpu_ops WHERE dst_rank IS NOT NULL ORDER BY ALL"
        ).rows()
        stated = store.sql("SELECT DISTINCT rank, pg_ranks FROM process_groups ORDER BY ALL").rows()
        channels = store.sql(
            "SELECT list(DISTINCT rank ORDER BY rank) AS r FROM matched_collectives "
            "WHERE pg_ranks IS NOT NULL GROUP BY channel_id ORDER BY r"
        ).rows()
    own = {0: "[0, 1]", 1: "[0, 1]", 2: "[2, 3]", 3: "[2, 3]"}
    assert dict(groups) == dict(stated) == own
    assert partners == [(0, 1), (1, 0), (2, 3), (3, 2)]
    assert channels == [([0, 1],), ([2, 3],)]


def test_ranks_of_roles_stay_if_a_role_is_added_or_read_again(worlds: Path) -> None:
    """Ranks do not change if a role is ingested again or a new role is added."""
    given = roles(worlds)
    with hta_sql.ingest(given["prefill"], worlds / "s", run="job", role="prefill"):
        pass
    with hta_sql.ingest(given["decode"], worlds / "s", run="job", role="decode") as store:
        assert ranks_of(store) == PLACED
    before = read_manifest(worlds / "s").entries
    backwards = dict(reversed(given.items()))
    for role in (backwards, None):
        with hta_sql.ingest(worlds / "job", worlds / "s", run="job", role=role) as store:
            assert ranks_of(store) == PLACED
        assert read_manifest(worlds / "s").entries == before, "nothing is read again"
    with hta_sql.ingest(worlds / "job", worlds / "s", run="job", force=True) as store:
        assert ranks_of(store) == PLACED
    write(worlds / "reward" / "rank0.json", 0, 1)
    with hta_sql.ingest(worlds / "reward", worlds / "s", run="job", role="reward") as store:
        assert ranks_of(store) == [*PLACED, (4, "reward", 0, "reward")]


def test_a_missing_rank_of_a_role_keeps_its_place(worlds: Path) -> None:
    """If a rank of a role is missing, its number is reserved for a later ingest."""
    lost = worlds / "job" / "engine_prefill" / "rank1.json"
    text = lost.read_text(encoding="utf-8")
    lost.unlink()
    with hta_sql.ingest(worlds / "job", worlds / "s", role=roles(worlds)) as store:
        assert ranks_of(store) == [row for row in PLACED if row[0] != 1]
    lost.write_text(text, encoding="utf-8")
    with hta_sql.ingest(worlds / "job", worlds / "s", role=roles(worlds)) as store:
        assert ranks_of(store) == PLACED


def test_ranks_that_do_not_collide_stay(tmp_path: Path) -> None:
    """If all ranks are distinct, roles do not renumber them."""
    for rank in range(4):
        write(tmp_path / "job" / f"rank{rank}.json", rank, 4)
    given = {
        "trainer": [str(tmp_path / "job" / f"rank{n}.json") for n in (0, 1)],
        "rollout": str(tmp_path / "job"),
    }
    with hta_sql.ingest(tmp_path / "job", tmp_path / "s", role=given) as store:
        rows = [row[:3] for row in store.sql(RANKS).rows()]
    assert rows == [(0, "trainer", 0), (1, "trainer", 1), (2, "rollout", 0), (3, "rollout", 1)]


def test_a_role_of_a_store_that_takes_ranks_of_another_is_refused(tmp_path: Path) -> None:
    """A new trace is refused if its rank belongs to a different role in the store."""
    write(tmp_path / "a" / "x.json", 0, 2)
    write(tmp_path / "b" / "x.json", 1, 2)
    for role, folder in (("trainer", "a"), ("rollout", "b")):
        hta_sql.ingest(tmp_path / folder, tmp_path / "s", run="job", role=role).close()
    write(tmp_path / "b" / "y.json", 0, 2)
    with pytest.raises(RankError, match=r"Ranks 0 of role rollout belong to role trainer"):
        hta_sql.ingest(tmp_path / "b", tmp_path / "s", run="job", role="rollout")


def test_the_option_wins_over_the_trace_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The role option overrides the role in a trace and logs a warning."""
    write(tmp_path / "a.json", 0, 1, role="actor")
    with caplog.at_level(logging.WARNING):
        store = hta_sql.ingest(tmp_path / "a.json", tmp_path / "s", role="trainer")
    with store:
        assert [row[:3] for row in store.sql(RANKS).rows()] == [(0, "trainer", 0)]
    assert "a.json specifies the role actor; using the requested role trainer" in caplog.text


def test_traces_without_a_rank_are_counted_within_their_role(tmp_path: Path) -> None:
    """Traces without a rank are numbered by role, even if roles are ingested separately."""
    for role in ("a", "b"):
        for name in ("x", "y"):
            path = tmp_path / "job" / role / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"traceEvents": [EVENT]}), encoding="utf-8")
    given = {role: str(tmp_path / "job" / role) for role in ("b", "a")}
    with hta_sql.ingest(tmp_path / "job", tmp_path / "one", role=given) as store:
        together = ranks_of(store)
    for role, folder in given.items():
        hta_sql.ingest(folder, tmp_path / "two", run="job", role=role).close()
    with hta_sql.ingest(tmp_path / "job", tmp_path / "two", run="job") as store:
        assert ranks_of(store) == together
    assert together == [(0, "b", 0, "b"), (1, "b", 1, "b"), (2, "a", 0, "a"), (3, "a", 1, "a")]


def test_dumps_have_the_ranks_of_their_role(worlds: Path) -> None:
    """Flight Recorder dumps and their process groups get the ranks of their role."""
    for role, folder in roles(worlds).items():
        for rank in range(2):
            dump = {
                "version": "2.10",
                "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
                "entries": [
                    {
                        "record_id": 0,
                        "pg_id": 0,
                        "process_group": ["0", "default_pg"],
                        "op_id": 1,
                        "state": "completed",
                        "collective_seq_id": 1,
                        "profiling_name": f"nccl:{role}",
                        "is_p2p": False,
                        "retired": True,
                    }
                ],
            }
            Path(folder, f"nccl_trace_rank_{rank}.json").write_text(
                json.dumps(dump), encoding="utf-8"
            )
    with hta_sql.ingest(worlds / "job", worlds / "s", role=roles(worlds)) as store:
        ops = store.sql("SELECT rank, op FROM fr_entries ORDER BY ALL").rows()
        groups = store.sql("SELECT rank, member_ranks FROM fr_groups ORDER BY ALL").rows()
    assert ops == [(0, "prefill"), (1, "prefill"), (2, "decode"), (3, "decode")]
    assert groups == [(0, "[0,1]"), (1, "[0,1]"), (2, "[2,3]"), (3, "[2,3]")]


def test_the_command_takes_roles(worlds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--role ROLE=PATH`` can be repeated, and ``--role ROLE`` applies to all traces."""
    given = [f"--role={role}={path}" for role, path in roles(worlds).items()]
    assert main(["ingest", str(worlds / "job"), "-o", str(worlds / "s"), *given]) == 0
    with hta_sql.TraceStore(worlds / "s") as store:
        assert ranks_of(store) == PLACED
    one = ["ingest", roles(worlds)["decode"], "-o", str(worlds / "t"), "--role", "decode"]
    assert main(one) == 0
    with hta_sql.TraceStore(worlds / "t") as store:
        assert [row[:3] for row in ranks_of(store)] == [(0, "decode", 0), (1, "decode", 1)]
    capsys.readouterr()
    assert main([*one, "--role", "prefill=x"]) != 0
    assert "must be the only --role" in capsys.readouterr().err


def test_a_role_of_no_trace_and_a_wrong_name_are_refused(worlds: Path) -> None:
    """A role that matches no trace and an invalid role name are refused."""
    with pytest.raises(TraceNotFoundError, match="Role trainer: none of the traces is at or below"):
        hta_sql.ingest(worlds / "job", worlds / "s", role={"trainer": str(worlds / "other")})
    with pytest.raises(ParameterError, match="Role 'a,b'"):
        hta_sql.ingest(worlds / "job", worlds / "s", role="a,b")


def test_roles_of_a_safe_store_and_of_one_at_a_url(worlds: Path) -> None:
    """Roles can be selected in a safe store and in a store at a URL."""
    with hta_sql.ingest(worlds / "job", worlds / "s", run="job", role=roles(worlds)) as store:
        rows = store.run("gpu_kernel_types", roles=["decode"]).records()
    assert {row["rank"] for row in rows} <= {2, 3}
    with hta_sql.TraceStore(worlds / "s", safe=True) as store:
        assert store.run("gpu_kernel_types", roles=["decode"]).records() == rows
        part = store.of_roles(["decode"])
        assert part.sql("SELECT DISTINCT rank FROM gpu_ops ORDER BY rank").rows() == [(2,), (3,)]
    url = f"memory://{worlds.name}/s"
    with hta_sql.ingest(worlds / "job", url, run="job", role=roles(worlds)) as store:
        assert store.run("gpu_kernel_types", roles=["decode"]).records() == rows
        assert store.of_roles(["decode"]).ranks() == [2, 3]


def test_a_redacted_copy_keeps_the_ranks_of_roles(worlds: Path) -> None:
    """A redacted copy has the same ranks, but not the user's role names."""
    hta_sql.ingest(worlds / "job", worlds / "s", role=roles(worlds)).close()
    copy = str(worlds / "copy.duckdb")
    assert main(["export", str(worlds / "s"), "-o", copy, "--redact"]) == 0
    with duckdb.connect(copy, read_only=True) as con:
        query = "SELECT rank, role_rank, first_rank, role FROM ranks ORDER BY ALL"
        rows = con.execute(query).fetchall()
    assert [row[:3] for row in rows] == [(0, 0, 0), (1, 1, 0), (2, 0, 2), (3, 1, 2)]
    assert not {row[3] for row in rows} & {"prefill", "decode"}
