"""Record tests/traces/recorded/hangs with the CPU build of torch 2.14: ``record_hangs.py FOLDER``.

Each job has four ranks on gloo and one fault that makes it hang, or none. The recordings are the
Flight Recorder dumps of all ranks. A second thread writes the dump while the main thread hangs, as
the watchdog of NCCL does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

RANKS = 4
HANGS_FOR_S = 4.0
"""Time that a rank runs before it writes its dump [s]."""

AS_JSON = ("healthy", "other_operation", "other_size")
"""Jobs dumped as JSON, which has no stacks; the others are pickles."""

SCENARIOS = (
    *AS_JSON,
    *("rank_missing", "other_type", "other_order", "subgroup_behind"),
    *("never_entered_group", "lone_receiver"),
)


def train(scenario: str, rank: int) -> None:  # noqa: C901 - one case a scenario
    """Run two healthy steps, and the fault of the scenario in the third."""
    import torch  # noqa: PLC0415 - the parent process needs none
    import torch.distributed as dist  # noqa: PLC0415

    first_half = dist.new_group([0, 1], group_desc="tp")
    second_half = dist.new_group([2, 3], group_desc="tp")
    mine = first_half if rank < 2 else second_half

    def reduce_gradients(count: int = 1024, kind: torch.dtype = torch.float32) -> None:
        dist.all_reduce(torch.ones(count, dtype=kind))

    def sum_activations() -> None:
        dist.all_reduce(torch.ones(256), group=mine)

    for _ in range(2):
        if scenario != "never_entered_group":
            sum_activations()
        reduce_gradients()
    match scenario:
        case "healthy":
            dist.barrier()
        case "rank_missing" if rank == 2:
            evaluate()
        case "other_operation" if rank == 3:
            dist.broadcast(torch.ones(1024), src=3)
        case "other_size":
            reduce_gradients(512 if rank == 1 else 1024)
        case "other_type":
            reduce_gradients(kind=torch.float64 if rank == 0 else torch.float32)
        case "other_order" if rank == 1:
            reduce_gradients()
            sum_activations()
        case "subgroup_behind" | "never_entered_group" if rank == 3:
            evaluate()
        case "lone_receiver" if rank == 2:
            dist.recv(torch.ones(16), src=3)
        case "rank_missing" | "other_operation" | "lone_receiver":
            reduce_gradients()
        case _:
            sum_activations()
            reduce_gradients()


def evaluate() -> None:
    """Sleep while the other ranks wait in a collective."""
    time.sleep(10 * HANGS_FOR_S)


def dump_later(folder: Path, rank: int, *, as_json: bool) -> None:
    """Write the dump of a rank once the job hangs, and exit."""
    time.sleep(HANGS_FOR_S)
    from torch._C import _distributed_c10d as recorder  # noqa: PLC0415

    if as_json:
        (folder / f"rank_{rank}.json").write_bytes(recorder._dump_fr_trace_json())
    else:
        (folder / f"nccl_trace_rank_{rank}").write_bytes(recorder._dump_fr_trace())
    time.sleep(2)  # an early exit would wake the other ranks
    os._exit(0)


def main(scenario: str, folder: Path) -> None:
    """Run one rank of a scenario."""
    import torch.distributed as dist  # noqa: PLC0415

    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    threading.Thread(
        target=dump_later,
        args=(folder, rank),
        kwargs={"as_json": scenario in AS_JSON},
        daemon=True,
    ).start()
    # Gloo refuses a different size or type. A rank that failed and does not exit hangs as well.
    with suppress(RuntimeError):
        train(scenario, rank)
    time.sleep(10 * HANGS_FOR_S)


if __name__ == "__main__":
    if "RANK" in os.environ:
        main(sys.argv[1], Path(sys.argv[2]))
    else:
        for port, name in enumerate(SCENARIOS, 29700):
            target = Path(sys.argv[1], name)
            target.mkdir(parents=True, exist_ok=True)
            shared = {
                **os.environ,
                "TORCH_FR_BUFFER_SIZE": "2000",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "WORLD_SIZE": str(RANKS),
            }
            command = [sys.executable, __file__, name, str(target)]
            ranks = [
                subprocess.Popen(command, env={**shared, "RANK": str(rank)})  # noqa: S603
                for rank in range(RANKS)
            ]
            for process in ranks:
                process.wait()
