"""Simulated NCCL jobs with a known hang, for any number of ranks, and their Flight Recorder dumps.

A rank runs its program in order and waits for each operation. A collective ends when all ranks of
its group have entered it with the same operation. Operations that never end constitute the hang.
"""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

START_NS = 1_700_000_000_000_000_000
STEP_NS = 1_000_000


@dataclass(frozen=True)
class Group:
    """A process group of the job."""

    name: str
    desc: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Op:
    """An operation of a rank's program."""

    group: Group
    name: str = "all_reduce"
    count: int = 1024
    kind: str = "Float"
    peer: int | None = None
    """Rank that a send goes to or a receive comes from."""
    line: int = 10
    """Line of train.py that calls the operation."""

    @property
    def is_p2p(self) -> bool:
        """Return whether the operation is a send or a receive."""
        return self.peer is not None


Programs = dict[int, list[Op]]


@dataclass
class Job:
    """A job: its process groups and the program of each rank."""

    groups: list[Group]
    programs: Programs
    slow_ns: dict[int, int] = field(default_factory=dict)
    """Delay with which a rank enters each of its operations [ns]."""
    depth: int = 2
    """Number of frames in each stack."""

    def done(self) -> dict[int, int]:
        """Run the programs; return how many operations each rank completed."""
        done = dict.fromkeys(self.programs, 0)
        moved = True
        while moved:
            moved = False
            for rank, program in self.programs.items():
                if done[rank] < len(program) and self._ends(rank, done):
                    for member in self._taking_part(rank, done):
                        done[member] += 1
                    moved = True
        return done

    def _head(self, rank: int, done: dict[int, int]) -> Op | None:
        program = self.programs[rank]
        return program[done[rank]] if done[rank] < len(program) else None

    def _taking_part(self, rank: int, done: dict[int, int]) -> list[int]:
        op = self._head(rank, done)
        assert op is not None
        return [rank, op.peer] if op.peer is not None else list(op.group.ranks)

    def _ends(self, rank: int, done: dict[int, int]) -> bool:
        op = self._head(rank, done)
        assert op is not None
        if op.peer is not None:
            other = self._head(op.peer, done)
            return (
                other is not None
                and other.peer == rank
                and {op.name, other.name} == {"send", "recv"}
                and op.group == other.group
            )
        wanted = (op.group.name, op.name, op.count, op.kind)
        return all(
            (other := self._head(member, done)) is not None
            and (other.group.name, other.name, other.count, other.kind) == wanted
            for member in reversed(op.group.ranks)
        )

    def dumps(self, buffer: int = 2000, version: str = "2.10") -> dict[int, dict[str, Any]]:
        """Return each rank's dump in the format of NCCL's flight recorder."""
        done = self.done()
        return {
            rank: {
                "version": version,
                "pg_config": {
                    group.name: {
                        "name": group.name,
                        "desc": group.desc,
                        "ranks": str(list(group.ranks)),
                    }
                    for group in self.groups
                    if rank in group.ranks
                },
                "comm_lib_version": "2.27.5",
                "pg_status": {},
                "entries": self._entries(rank, done[rank])[-buffer:],
            }
            for rank in self.programs
        }

    def _entries(self, rank: int, done: int) -> list[dict[str, Any]]:
        numbers: dict[tuple[str, bool], int] = defaultdict(int)
        ids = {group.name: number for number, group in enumerate(self.groups)}
        entries = []
        for at, op in enumerate(self.programs[rank][: done + 1]):
            numbers[op.group.name, op.is_p2p] += 1
            created = START_NS + at * STEP_NS + self.slow_ns.get(rank, 0) + rank
            is_done = at < done
            sizes, kinds = ([[op.count]], [op.kind]) if op.name != "barrier" else ([], [])
            parts = len(op.group.ranks) if op.name == "reduce_scatter" else 1
            entries.append(
                {
                    "frames": _frames(op, self.depth),
                    "record_id": at,
                    "pg_id": ids[op.group.name],
                    "process_group": (op.group.name, op.group.desc),
                    "collective_seq_id": numbers[op.group.name, False],
                    "p2p_seq_id": numbers[op.group.name, True],
                    "op_id": at + 1,
                    "profiling_name": f"nccl:{self._name(rank, op)}",
                    "time_created_ns": created,
                    "input_sizes": []
                    if op.name == "recv"
                    else [[n * parts for n in size] for size in sizes],
                    "input_dtypes": [] if op.name == "recv" else kinds,
                    "output_sizes": [] if op.name == "send" else sizes,
                    "output_dtypes": [] if op.name == "send" else kinds,
                    "state": "completed" if is_done else "started",
                    "time_discovered_started_ns": created + STEP_NS // 10,
                    "time_discovered_completed_ns": created + STEP_NS // 2 if is_done else None,
                    "retired": is_done,
                    "timeout_ms": 600_000,
                    "is_p2p": op.is_p2p,
                }
            )
        return entries

    @staticmethod
    def _name(rank: int, op: Op) -> str:
        if op.peer is None:
            return op.name
        mine, other = op.group.ranks.index(rank), op.group.ranks.index(op.peer)
        return f"send {mine}->{other}" if op.name == "send" else f"recv {mine}<-{other}"


def _frames(op: Op, depth: int) -> list[dict[str, Any]]:
    torch_frame = {
        "name": op.name,
        "filename": "/opt/venv/torch/distributed/distributed_c10d.py",
        "line": 3906,
    }
    callers = [
        {"name": f"caller_{at}", "filename": "/home/jo/lib.py", "line": 100 + at}
        for at in range(depth - 2)
    ]
    step = {"name": "train_step", "filename": "/home/jo/train.py", "line": op.line}
    return [torch_frame, step, *callers]


def write_pickles(job: Job, folder: Path, **options: Any) -> Path:
    """Write the dumps as pickles named nccl_trace_rank_N, as NCCL's watchdog does."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank, dump in job.dumps(**options).items():
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump, protocol=2))
    return folder


def write_json(job: Job, folder: Path, name: str) -> None:
    """Write the dumps as JSON, without stacks."""
    for rank, dump in job.dumps().items():
        for entry in dump["entries"]:
            del entry["frames"]
        path = folder / f"{name}_{rank}.json"
        path.write_text(json.dumps(dump, sort_keys=True) + "\n", encoding="utf-8")


def pipeline(steps: int = 5) -> Job:
    """Return a healthy job of three pipeline stages with four ranks each.

    The ranks of a stage also exchange experts in an all-to-all.
    """
    world = Group("0", "default_pg", tuple(range(12)))
    experts = [Group(f"{10 + at}", "ep", tuple(range(4 * at, 4 * at + 4))) for at in range(3)]
    stages = [Group(f"{20 + at}", "pp", (at, 4 + at, 8 + at)) for at in range(4)]
    programs: Programs = {rank: [] for rank in range(12)}
    for _ in range(steps):
        for rank, program in programs.items():
            if rank >= 4:
                program.append(Op(stages[rank % 4], "recv", 2048, peer=rank - 4, line=80))
            program.append(Op(experts[rank // 4], "all_to_all", 4096, line=55))
            if rank < 8:
                program.append(Op(stages[rank % 4], "send", 2048, peer=rank + 4, line=85))
            program.append(Op(world, "all_gather", 64, line=99))
    return Job([world, *experts, *stages], programs)


def training(ranks: int = 8, width: int = 4, steps: int = 3) -> Job:
    """Return a healthy job with tensor-parallel and data-parallel groups.

    Neighboring ranks form a tensor-parallel group, and data-parallel groups run across them. A step
    is an all-reduce and a reduce-scatter in the tensor-parallel group, an all-reduce in the
    data-parallel group, and a barrier of all ranks.
    """
    world = Group("0", "default_pg", tuple(range(ranks)))
    tensor = [
        Group(f"tp{first}", "tp", tuple(range(first, first + width)))
        for first in range(0, ranks, width)
    ]
    data = [Group(f"dp{place}", "dp", tuple(range(place, ranks, width))) for place in range(width)]
    programs = {
        rank: [
            op
            for _ in range(steps)
            for op in (
                Op(tensor[rank // width], count=256, line=21),
                Op(tensor[rank // width], "reduce_scatter", 512, line=22),
                Op(data[rank % width], count=4096, line=31),
                Op(world, "barrier", line=40),
            )
        ]
        for rank in range(ranks)
    }
    return Job([world, *tensor, *data], programs)
