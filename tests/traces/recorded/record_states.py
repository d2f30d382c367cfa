"""Record Flight Recorder dumps of small gloo jobs with the CPU build of torch 2.13: ``record_states.py FOLDER``.

Each job is one of SCENARIOS with four ranks, dumped while it runs or after its operations timed out.
``--random SEED COUNT`` records jobs with a random fault, or none, whose dumps are written at random
moments instead; ``truth.json`` in the folder of each states what happens to it. The ranks are forked
from one process, which imports torch once.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

RANKS = 4
TIMEOUT_S = 2.0
DURING_S = 1.0
"""Time after the start at which the dumps of a running job are written [s]."""

AFTER_S = TIMEOUT_S + 1.5


class Rank:
    """One rank of a job: its groups and operations."""

    def __init__(self, rank: int, folder: Path) -> None:
        import torch  # noqa: PLC0415 - imported before the ranks are forked
        import torch.distributed as dist  # noqa: PLC0415

        self.rank, self.folder, self.torch, self.dist = rank, folder, torch, dist
        torch.set_num_threads(1)
        dist.init_process_group(
            "gloo",
            store=dist.FileStore(str(folder / "rendezvous"), RANKS),
            rank=rank,
            world_size=RANKS,
            timeout=timedelta(seconds=TIMEOUT_S),
        )
        pairs = ([0, 1], [2, 3], [1, 2], [0, 3])
        self.groups = {tuple(pair): dist.new_group(pair) for pair in pairs}

    def reduce(self, *pair: int, count: int = 8) -> None:
        """Reduce a tensor over all ranks, or over a pair."""
        group = self.groups[pair] if pair else None
        if not pair or self.rank in pair:
            self.dist.all_reduce(self.torch.ones(count), group=group)

    def broadcast(self, source: int) -> None:
        """Send a tensor from one rank to all."""
        self.dist.broadcast(self.torch.ones(8), src=source)

    def dump(self) -> None:
        """Write the dump, at once."""
        from torch._C import _distributed_c10d as recorder  # noqa: PLC0415

        path = self.folder / f"rank_{self.rank}.json"
        partial = path.with_suffix(".partial")
        partial.write_bytes(recorder._dump_fr_trace_json())
        partial.rename(path)


def healthy(job: Rank) -> None:
    """Finish all operations."""
    job.reduce()


def missing(job: Rank) -> None:
    """Rank 2 does something else."""
    if job.rank != 2:
        job.reduce()


def handled(job: Rank) -> None:
    """Rank 2 does something else, and the others go on after the time-out."""
    if job.rank == 2:
        return
    for _ in range(2):
        with suppress(RuntimeError):
            job.reduce()


def went_on(job: Rank) -> None:
    """Rank 2 does something else, and later enters other groups."""
    if job.rank == 2:
        time.sleep(TIMEOUT_S + 0.5)
    else:
        with suppress(RuntimeError):
            job.reduce()
    with suppress(RuntimeError):
        job.reduce(0, 1)
        job.reduce(2, 3)


def subgroup(job: Rank) -> None:
    """Rank 3 does something else, while rank 2 waits in their group."""
    if job.rank == 2:
        job.reduce(2, 3)
    elif job.rank < 2:
        job.reduce(0, 1)


def other_order(job: Rank) -> None:
    """Rank 1 enters the group of all ranks first, the others a pair."""
    if job.rank == 1:
        job.reduce()
        job.reduce(0, 1)
    else:
        job.reduce(0, 1)
        job.reduce()


def other_operation(job: Rank) -> None:
    """Rank 3 broadcasts, and the others reduce."""
    if job.rank == 3:
        job.broadcast(3)
    else:
        job.reduce()


def other_size(job: Rank) -> None:
    """Rank 1 reduces a tensor of another size."""
    job.reduce(count=16 if job.rank == 1 else 8)


def broadcast_ahead(job: Rank) -> None:
    """The root of a broadcast is ahead: the others have not entered its last one."""
    job.broadcast(0)
    if job.rank == 0:
        job.broadcast(0)


def late(job: Rank) -> None:
    """Rank 2 is late, and all operations finish."""
    if job.rank == 2:
        time.sleep(0.7)
    job.reduce()


def destroyed(job: Rank) -> None:
    """A pair is used and destroyed; nothing hangs."""
    job.reduce(0, 1)
    job.reduce()
    if job.rank < 2:
        job.dist.destroy_process_group(job.groups[0, 1])


def barrier(job: Rank) -> None:
    """All ranks meet in a barrier, and finish."""
    job.dist.barrier()


def monitored_barrier(job: Rank) -> None:
    """Rank 2 does not enter a monitored barrier."""
    if job.rank != 2:
        job.dist.monitored_barrier(timeout=timedelta(seconds=TIMEOUT_S))


def killed(job: Rank) -> None:
    """Rank 2 dies without a dump."""
    if job.rank == 2:
        os._exit(1)
    job.reduce()


def uneven(job: Rank) -> None:
    """Rank 1 exchanges larger parts in an all-to-all than the others, and all finish."""
    sizes = [[2 if 1 in (src, dst) else 1 for dst in range(RANKS)] for src in range(RANKS)]
    sent, received = sizes[job.rank], [row[job.rank] for row in sizes]
    job.dist.all_to_all_single(
        job.torch.empty(sum(received)), job.torch.ones(sum(sent)), received, sent
    )


def lone_receiver(job: Rank) -> None:
    """Rank 2 receives from rank 3, which does not send."""
    if job.rank == 2:
        job.dist.recv(job.torch.ones(8), src=3)
    job.reduce()


SCENARIOS: dict[str, Callable[[Rank], None]] = {
    one.__name__: one
    for one in (
        *(healthy, missing, handled, went_on, subgroup, other_order, other_operation, other_size),
        *(broadcast_ahead, late, destroyed, barrier, monitored_barrier, killed, uneven),
        lone_receiver,
    )
}


def run_rank(rank: int, folder: Path, act: Callable[[Rank], None], dump_at_s: float) -> None:
    """Run two healthy steps and a scenario, and exit some time after the dump was written."""
    job = Rank(rank, folder)
    job.dist.barrier()
    started = time.monotonic()
    dumped = threading.Event()

    def dump_later() -> None:
        time.sleep(max(started + dump_at_s - time.monotonic(), 0))
        job.dump()
        dumped.set()

    threading.Thread(target=dump_later, daemon=True).start()
    with suppress(RuntimeError):
        for _ in range(2):
            job.reduce()
            job.reduce(0, 1)
            job.reduce(2, 3)
        act(job)
    dumped.wait()
    time.sleep(max(started + dump_at_s + 0.5 - time.monotonic(), 0))
    os._exit(0)


def record(folder: Path, act: Callable[[Rank], None], dump_at_s: Callable[[int], float]) -> None:
    """Record the dumps of one job."""
    folder.mkdir(parents=True, exist_ok=True)
    ranks = []
    for rank in range(RANKS):
        if not (child := os.fork()):
            run_rank(rank, folder, act, dump_at_s(rank))
        ranks.append(child)
    for child in ranks:
        os.waitpid(child, 0)
    (folder / "rendezvous").unlink(missing_ok=True)


def random_job(rng: random.Random) -> tuple[dict[str, Any], Callable[[Rank], None]]:
    """Choose the program of a job, and where a rank leaves it, if at all."""
    program = [
        rng.choice(["all", "pairs", "broadcast", "barrier"]) for _ in range(rng.randint(4, 9))
    ]
    pauses = [[rng.choice([0, 0, 0.02, 0.1]) for _ in program] for _ in range(RANKS)]
    fault = rng.choice(["none", "none", "stops", "other operation", "other size", "other order"])
    rank, at = rng.randrange(RANKS), rng.randrange(1, len(program))
    if fault in ("other operation", "other size"):
        program[at] = "all"
    if fault == "other order":
        program[at : at + 1] = ["pairs", "all"]
        pauses = [[*pause, 0.0] for pause in pauses]
    if fault == "stops" and program[at] == "broadcast":
        program[at] = "all"

    def act(job: Rank) -> None:
        order = list(enumerate(program))
        if fault == "other order" and job.rank == rank:
            order[at], order[at + 1] = order[at + 1], order[at]
        for number, name in order:
            time.sleep(pauses[job.rank][number])
            if job.rank == rank and number == at and fault == "stops":
                return
            if job.rank == rank and number == at and fault == "other operation":
                job.broadcast(rank)
            elif job.rank == rank and number == at and fault == "other size":
                job.reduce(count=16)
            else:
                _enter(job, name)

    return {"fault": fault, "rank": rank, "at": at, "program": program}, act


def _enter(job: Rank, name: str) -> None:
    if name == "all":
        job.reduce()
    elif name == "broadcast":
        job.broadcast(0)
    elif name == "barrier":
        job.dist.barrier()
    else:
        job.reduce(0, 1)
        job.reduce(2, 3)


def record_random(folder: Path, seed: int, count: int) -> None:
    """Record random jobs; the dumps of a job are written at one moment, or each at its own."""
    rng = random.Random(seed)
    for number in range(count):
        truth, act = random_job(rng)
        moment, spread = rng.uniform(0.1, AFTER_S), rng.choice([0, 0, 0, 0.05, 0.5])
        moments = [moment + rng.uniform(0, spread) for _ in range(RANKS)]
        target = folder / f"job_{number:03}"
        record(target, act, moments.__getitem__)
        truth |= {"moments": moments}
        (target / "truth.json").write_text(json.dumps(truth), encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Record the scenarios, or random jobs."""
    import torch.distributed as dist  # noqa: F401, PLC0415 - once, before the ranks are forked

    folder = Path(arguments[0])
    if arguments[1:2] == ["--random"]:
        record_random(folder, int(arguments[2]), int(arguments[3]))
        return
    for name, act in SCENARIOS.items():
        record(folder / f"{name}_during", act, lambda _: DURING_S)
        record(folder / f"{name}_after", act, lambda _: 2 * AFTER_S)
    record(folder / "healthy_apart", healthy, lambda rank: 0.0 if rank == 2 else DURING_S)


if __name__ == "__main__":
    main(sys.argv[1:])
