"""The rank, the world size and the name of the run, from torch.distributed or the environment."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from hta_sql.store.disk.run_names import check_run_name
from hta_sql.torch import job
from hta_sql.torch.job import Job, current_job

VARIABLES = (
    *("RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"),
    *("SLURM_JOB_ID", "SLURM_STEP_ID"),
)


RANDOM_ID = "f8534009-6dbe-4d0d-90fc-83fa93968690"
"""An id that torchrun draws if none is given."""


class KeyValueStore:
    """The key-value store of a process group."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        """Set a key if it has the expected value; a missing key has the value ``""``."""
        if self.values.get(key, "") == expected:
            self.values[key] = desired
        return self.values[key].encode()


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the environment of a job, and names of earlier jobs."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)
    job._started.cache_clear()
    job._agreed.cache_clear()


def in_group(monkeypatch: pytest.MonkeyPatch, rank: int, size: int, store: object) -> None:
    """Let this process be a rank of a process group, as after ``init_process_group``."""
    group = ModuleType("torch.distributed")
    vars(group).update(
        is_available=lambda: True,
        is_initialized=lambda: True,
        get_rank=lambda: rank,
        get_world_size=lambda: size,
        distributed_c10d=SimpleNamespace(_get_default_store=lambda: store),
    )
    monkeypatch.setitem(sys.modules, "torch.distributed", group)


def test_a_process_alone_is_a_job_named_by_time() -> None:
    """Without torchrun, each process is a job whose name is unique and valid."""
    found = current_job()
    assert (found.rank, found.world_size) == (0, 1)
    assert check_run_name(found.run) == found.run
    assert current_job() == found


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"RANK": "3", "WORLD_SIZE": "8"}, Job(3, 8, "exp7")),
        ({"RANK": "3", "WORLD_SIZE": "8", "TORCHELASTIC_RESTART_COUNT": "0"}, Job(3, 8, "exp7")),
        (
            {"RANK": "3", "WORLD_SIZE": "8", "TORCHELASTIC_RESTART_COUNT": "2"},
            Job(3, 8, "exp7-restart2"),
        ),
        ({"RANK": "8", "WORLD_SIZE": "8"}, Job(0, 1, "exp7")),
        ({"RANK": "x", "WORLD_SIZE": ""}, Job(0, 1, "exp7")),
        ({"TORCHELASTIC_RUN_ID": "a/b c"}, Job(0, 1, "a_b_c")),
    ],
)
def test_torchrun_states_rank_and_run(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str], expected: Job
) -> None:
    """The id of the job is the name; an attempt after a restart has a name of its own."""
    for name, value in {"TORCHELASTIC_RUN_ID": "exp7", **env}.items():
        monkeypatch.setenv(name, value)
    assert current_job() == expected


@pytest.mark.parametrize("launched", ["", "none", RANDOM_ID])
def test_ranks_without_a_chosen_id_agree_through_the_store_of_the_group(
    monkeypatch: pytest.MonkeyPatch, launched: str
) -> None:
    """The rank that records first names the run, if torchrun has no id or a random one."""
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", launched)
    store, found = KeyValueStore(), []
    for rank in (1, 0):
        job._started.cache_clear()
        job._agreed.cache_clear()
        monkeypatch.setattr("os.getpid", lambda rank=rank: 1000 + rank)
        in_group(monkeypatch, rank, 2, store)
        found.append(current_job())
    assert [one.rank for one in found] == [1, 0]
    assert found[0].run == found[1].run
    assert found[0].run.endswith("-1001")


def test_an_attempt_after_a_restart_agrees_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torchrun keeps the store of the group, in which the name of the earlier attempt remains."""
    store, found = KeyValueStore(), []
    for attempt in ("0", "1"):
        job._started.cache_clear()
        job._agreed.cache_clear()
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", attempt)
        monkeypatch.setattr("os.getpid", lambda attempt=attempt: 1000 + int(attempt))
        in_group(monkeypatch, 0, 2, store)
        found.append(current_job().run)
    assert [name.rpartition("-")[2] for name in found] == ["1000", "1001"]


def test_the_process_group_takes_precedence_over_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A group that does not span all processes of torchrun states the ranks that record."""
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("WORLD_SIZE", "8")
    in_group(monkeypatch, 1, 4, KeyValueStore())
    assert current_job("job") == Job(1, 4, "job")


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ({}, "job"),
        ({"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0"}, "slurm-77.0"),
        ({"TORCHELASTIC_RUN_ID": RANDOM_ID}, RANDOM_ID),
    ],
)
def test_ranks_that_cannot_agree_have_a_fixed_name(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str], name: str
) -> None:
    """Without a process group, the name is the random id, the Slurm step, or ``job``."""
    for variable, value in {"RANK": "0", "WORLD_SIZE": "2", **env}.items():
        monkeypatch.setenv(variable, value)
    assert current_job().run == name
    in_group(monkeypatch, 0, 2, None)  # a group without a key-value store
    assert current_job().run == name
