"""The job to which this process belongs: its rank, the number of ranks, and the name of the run."""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

from hta_sql.store.disk.run_names import as_run_name

log = logging.getLogger(__name__)

_LONGEST = 150
"""Number of characters of a job's id in a run name, which leaves room for restarts and captures."""

_RANDOM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|\d{30,}$")
"""A UUID, which torchrun draws as the id of a job if the user gives none."""


@dataclass(frozen=True)
class Job:
    """A process of a job.

    Attributes:
        rank: Rank of the process.
        world_size: Number of processes.
        run: Name of the run, the same in all processes.
    """

    rank: int
    world_size: int
    run: str


def current_job(run: str | None = None) -> Job:
    """Return the job of this process, from torch.distributed or the environment of torchrun.

    Args:
        run: Name of the run; None: one that all processes of the job agree on without waiting for
            each other.
    """
    distributed = _distributed()
    if distributed:
        rank, world_size = int(distributed.get_rank()), int(distributed.get_world_size())
    else:
        rank, world_size = _number("RANK", 0), _number("WORLD_SIZE", 1)
    if not 0 <= rank < world_size:
        rank, world_size = 0, 1
    return Job(rank, world_size, run or _run_name(distributed, world_size))


def _distributed() -> Any:
    """Return ``torch.distributed`` if a process group exists; None otherwise.

    The module is not imported: a process that has a process group has imported it.
    """
    module = sys.modules.get("torch.distributed")
    return module if module and module.is_available() and module.is_initialized() else None


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else default


def _run_name(distributed: Any, world_size: int) -> str:
    """Return the id that the user gave to the job, or the time of the first recording.

    Ranks agree on the time through their process group. Without one, the name is the random id that
    torchrun draws, the Slurm step, or ``job``.
    """
    launched = os.environ.get("TORCHELASTIC_RUN_ID", "")
    name = "" if launched == "none" else as_run_name(launched, _LONGEST)
    if name and (restarts := _number("TORCHELASTIC_RESTART_COUNT", 0)):
        name += f"-restart{restarts}"
    if name and not _RANDOM.match(launched):
        return name
    if world_size == 1:
        return _started()
    step = f"{os.environ.get('SLURM_JOB_ID', '')}.{os.environ.get('SLURM_STEP_ID', '')}"
    agreed = _agreed(distributed) if distributed else ""
    return agreed or name or (f"slurm-{step}" if step != "." else "job")


@cache
def _started() -> str:
    """Return the time of the first call, and this process, as a run name that sorts by time."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


@cache
def _agreed(distributed: Any) -> str:
    """Return the name that the first rank to record has stored in the job's key-value store.

    This is one request to the store and no collective, so it does not wait for ranks that do not
    record. An empty string means that there is no such store.
    """
    # torchrun keeps the store when it restarts a job.
    key = f"hta_sql/run/{_number('TORCHELASTIC_RESTART_COUNT', 0)}"
    try:
        store = distributed.distributed_c10d._get_default_store()  # noqa: SLF001 - has no public name
        return str(store.compare_set(key, "", _started()).decode())
    except Exception as error:  # noqa: BLE001 - depends on the version of torch
        log.info("The process group has no key-value store: %s", error)
        return ""
