"""Roles are inferred from file and folder names if there are at least two roles."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from hta_sql.ingestion.discover import discover
from hta_sql.ingestion.role_names import role_in_name
from hta_sql.ingestion.roles import DiscoveredRoles, requested_roles

ROLES = {
    "decode/rank0.json": "decode",
    "my-decode_1/rank0.json": "decode",
    "Prefill0/1711-TP-0-DP-0-EP-0.trace.json.gz": "prefill",
    "prefiller/host_1.1711111111111111.pt.trace.json": "prefill",
    "engine-decode-1711-TP-0.trace.json.gz": "decode",
    "actor/prof_rank-0.json.gz": "actor",
    "reward_model/prof_rank-0.json.gz": "reward",
    "ref_policy/rank0.json": "reference",
    "rollout/decode/rank0.json": "rollout",
    "trainer_rank_0.pt.trace.json": "trainer",
    "encode/0.json": "encode",
}
NONE = [
    "rank0.json",
    "decoder_layers/rank0.json",
    "refactor/rank0.json",
    "pretrainer/rank0.json",
    "actor_rollout_ref/rank0.json",
    "prefill_decode/rank0.json",
    "actor_update/prof_rank-0.json.gz",
    "rollout_generate/prof_rank-0.json.gz",
    "ref_compute_log_prob/prof_rank-0.json.gz",
    "train_actor_rank_0.1711111111111.pt.trace.json.gz",
    "1711-TP-0-DECODE.trace.json.gz",
    "1711-TP-0-DP-1-EXTEND.trace.json.gz",
    "run_batch1_input256_output8_prefill.trace.json.gz",
    "run_bs1_il256_batch_size_1_decode.trace.json.gz",
]


@pytest.mark.parametrize(("name", "role"), ROLES.items())
def test_a_name_states_a_role_as_a_part_of_its_own(name: str, role: str) -> None:
    """A role is recognized between separators, with or without a number."""
    assert role_in_name(name) == role


@pytest.mark.parametrize("name", NONE)
def test_other_words_several_roles_and_phases_are_no_role(name: str) -> None:
    """A name with a similar word, several roles or a serving phase has no role."""
    assert role_in_name(name) is None


def write(folder: Path, name: str, pid: int | None, **info: Any) -> None:
    """Write a trace of a process that recorded one operator as rank 0 of 1."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    event = {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::mm",
        "pid": pid,
        "tid": 1,
        "ts": 1,
        "dur": 2,
    }
    if pid is None:
        event |= {"cat": "kernel", "pid": 0}
    content = {"distributedInfo": {"rank": 0, "world_size": 1, **info}, "traceEvents": [event]}
    path.write_text(json.dumps(content), encoding="utf-8")


def found(folder: Path, roles: DiscoveredRoles | None = None) -> list[tuple[int, str | None]]:
    """Return the rank and role of each trace in the first capture."""
    return [(f.rank, f.role) for f in discover(str(folder), roles=roles) if f.capture == 0]


@pytest.mark.parametrize("pids", [(1, 2), (None, None)])
def test_two_roles_in_names_are_roles(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, pids: tuple[int | None, ...]
) -> None:
    """If names contain two roles, ranks are numbered by role, and a message says so."""
    for role, pid in zip(("prefill", "decode"), pids, strict=True):
        write(tmp_path, f"{role}/0.json", pid)
    with caplog.at_level(logging.WARNING):
        assert found(tmp_path) == [(0, "decode"), (1, "prefill")]
    assert (
        "Roles inferred from folder and file names: decode (1 file), prefill (1 file)"
        in caplog.text
    )


def test_one_role_in_names_is_none(tmp_path: Path) -> None:
    """A single role in names is ignored: ``ref`` may also be the name of a reference run."""
    write(tmp_path, "ref/0.json", 1)
    write(tmp_path, "new/0.json", 2)
    assert found(tmp_path) == [(0, None)]


def test_a_folder_above_all_traces_does_not_count(tmp_path: Path) -> None:
    """A folder that contains all traces is ignored, because it does not distinguish them."""
    write(tmp_path, "rollout/trainer/0.json", 1)
    write(tmp_path, "rollout/reward/0.json", 2)
    assert found(tmp_path) == [(0, "reward"), (1, "trainer")]


def test_phases_of_one_process_are_no_roles(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Names do not define roles if one process recorded all of the traces."""
    for number, name in enumerate(("prefill", "decode")):
        write(tmp_path, f"{name}/0.json", 7, note=number)
    with caplog.at_level(logging.WARNING):
        assert found(tmp_path) == [(0, None)]
    assert "process 7 recorded both" in caplog.text
    assert "--role ROLE=PATH" in caplog.text


def test_what_a_trace_states_and_the_option_win_over_names(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A role in the trace or on the command line overrides a role in the name."""
    write(tmp_path, "actor/0.json", 1, role="trainer")
    write(tmp_path, "rollout/0.json", 2)
    write(tmp_path, "reward/0.json", 3)
    given = DiscoveredRoles(requested_roles({"judge": str(tmp_path / "reward")}))
    with caplog.at_level(logging.WARNING):
        assert found(tmp_path, given) == [(0, "judge"), (1, "rollout"), (2, "trainer")]
    assert (
        "specifies the role trainer, but its name contains actor; using the specified role"
        in caplog.text
    )
    assert "folder and file names: rollout (1 file)." in caplog.text
