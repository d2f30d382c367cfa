"""Writes odd dumps, memory snapshots and execution traces at random, and reads them under limits.

Run as ``python -m tests.fuzz.artifacts SECONDS [SEED]``. A second process reads the files; the first
one ends with an error if that process dies, takes more memory or time than it may, or loses a file
for a single odd value.
"""

from __future__ import annotations

import json
import pickle
import random
import resource
import subprocess
import sys
import tempfile
import time
from copy import deepcopy
from pathlib import Path
from typing import Any

from hta_sql.errors import TraceFormatError
from hta_sql.ingestion.artifacts.reading import stage_artifact
from hta_sql.store.catalog.shared_engine import scratch

MEMORY_BYTES = 4 << 30
"""Addresses of the process that reads."""

GROWTH_KB = 700 << 10
"""How much the memory of the process may grow: tables of 64 MB, several times."""

GROWTH_PER_BYTE = 12
"""How much it may grow for each byte of the largest file: parsed JSON, and tables."""

SECONDS, SECONDS_PER_MB = 1, 5
"""Time that a file may take, on a quiet machine; a busy one gets SLACK times as much."""

SLACK = 4

KINDS = ("dump", "dump_json", "snapshot", "snapshot_json", "execution_trace")

FRAME = {"name": "step", "filename": "train.py", "line": 3}
ENTRY: dict[str, Any] = {
    "record_id": 0,
    "pg_id": 0,
    "collective_seq_id": 1,
    "p2p_seq_id": 0,
    "op_id": 1,
    "profiling_name": "nccl:all_reduce",
    "process_group": ("0", "default_pg"),
    "state": "completed",
    "time_created_ns": 1,
    "timeout_ms": 600_000,
    "is_p2p": False,
    "input_sizes": [[2, 3]],
    "input_dtypes": ["Float"],
    "output_sizes": [[2, 3]],
    "output_dtypes": ["Float"],
    "retired": True,
    "duration_ms": 1.5,
    "frames": [FRAME] * 3,
}
SEGMENT = {"device": 0, "address": 4096, "total_size": 512, "stream": 0, "frames": [FRAME]}
BLOCK = {"address": 4096, "size": 512, "state": "active_allocated", "frames": [FRAME]}
EVENT = {"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "frames": [FRAME] * 2}
NODE = {"id": 5, "name": "aten::mm", "ctrl_deps": 2, "attrs": [{"name": "rf_id", "value": 7}]}


def content(kind: str, count: int) -> dict[str, Any]:
    """Return an ordinary file of a kind with so many records."""
    if kind.startswith("dump"):
        group = {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}
        entries = [{**ENTRY, "record_id": at} for at in range(count)]
        return {"version": "2.10", "entries": entries, "pg_config": {"0": group}, "pg_status": {}}
    if kind.startswith("snapshot"):
        segments = [{**SEGMENT, "blocks": [dict(BLOCK)]} for _ in range(count // 4 + 1)]
        return {"segments": segments, "device_traces": [[dict(EVENT) for _ in range(count)]]}
    nodes = [{**NODE, "id": at, "inputs": [[1, 2, 0, 4, 4, "cuda:0"]]} for at in range(count)]
    return {"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": nodes}


def odd(chance: random.Random, *, is_json: bool) -> Any:
    """Return a value that no program writes."""
    deep: Any = []
    for _ in range(chance.choice((5, 50, 150))):
        deep = [deep] if is_json or chance.random() < 0.5 else (deep, deep)
    plain = [
        *(None, True, -1, 1 << 63, 1 << 64, -(1 << 70), 10 ** chance.choice((30, 400, 4000))),
        *(0.5, 1e308, float("inf"), "", "x" * 10 ** chance.randrange(6), "half \ud800", "\0"),
        *(
            [],
            {},
            [[]],
            {"a": [1]},
            [1, "a", None],
            [[1 << 70]],
            ["y" * 1000] * 50,
            deep,
            "[" * 5000,
        ),
    ]
    return chance.choice([*plain, b"bytes", (1, (2, 3)), {1: 2}] if not is_json else plain)


def changed(value: Any, chance: random.Random, count: int, *, is_json: bool) -> Any:
    """Put odd values at random places of a file."""
    for _ in range(count):
        at = value
        for _ in range(chance.randrange(1, 6)):
            if isinstance(at, dict) and at:
                key = chance.choice(list(at))
            elif isinstance(at, list) and at:
                key = chance.randrange(len(at))
            else:
                break
            inner = at[key]
            if not isinstance(inner, (dict, list)) or not inner or chance.random() < 0.2:
                at[key] = odd(chance, is_json=is_json)
                break
            at = inner
    return value


def spliced(data: bytes, chance: random.Random) -> bytes:
    """Put opcodes that build, share and nest values at random places of a pickle."""
    pieces = (
        b"h\x01",
        b"h\x05",
        b"\x85",
        b"\x86",
        b")",
        b"]",
        b"}",
        b"(",
        b"l",
        b"t",
        b"q\x01",
        b"2",
    )
    built = bytearray(data)
    for _ in range(chance.choice((1, 3, 10))):
        at = chance.randrange(2, len(built))
        built[at:at] = b"".join(chance.choice(pieces) for _ in range(10 ** chance.randrange(1, 6)))
    return bytes(built)


def written(kind: str, chance: random.Random) -> tuple[bytes, int]:
    """Return a file of a kind, and the number of its records if it must be read; else 0."""
    count = chance.choice((1, 5, 50, 2000))
    is_json = kind.endswith("json") or kind == "execution_trace"
    odd_count = chance.choice((1, 1, 3, 30))
    value = changed(deepcopy(content(kind, count)), chance, odd_count, is_json=is_json)
    if is_json:
        return json.dumps(value).encode(), 0
    if chance.random() < 0.3:
        shared = chance.choice(list(content(kind, 1).values())[1:2] or [[]])
        value[chance.choice(list(value))] = shared * 10 ** chance.randrange(6)
    data = pickle.dumps(value, chance.choice((2, 3, 4, 5)))
    return (spliced(data, chance), 0) if chance.random() < 0.5 else (data, 0)


def read_all(seed: str) -> None:
    """Read files of a seed for ever, and say before and after each what is read."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        while True:
            kind = chance.choice(KINDS)
            name = kind.removesuffix("_json")
            path = Path(folder, f"{name}_0{'.json' if kind != name or 'exec' in kind else ''}")
            data, _ = written(kind, chance)
            path.write_bytes(data)
            sys.stdout.write(f"start {kind} {len(data)} {path}\n")
            sys.stdout.flush()
            outcome = "read"
            with scratch() as con:
                try:
                    stage_artifact(con, name, str(path))
                except TraceFormatError:
                    outcome = "refused"
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            sys.stdout.write(f"{outcome} {most}\n")
            sys.stdout.flush()


def main(seconds: float, seed: str) -> int:
    """Watch a process that reads; return 1 at the first violation."""
    end, counts, first_kb = time.monotonic() + seconds, {"read": 0, "refused": 0}, 0
    largest = 0
    command = [sys.executable, "-m", "tests.fuzz.artifacts", "child", seed]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603 - ours
        assert child.stdout  # a pipe
        while time.monotonic() < end:
            start = child.stdout.readline().split()
            began = time.monotonic()
            answer = child.stdout.readline().split()
            took = time.monotonic() - began
            if len(start) < 4 or len(answer) < 2:
                sys.stderr.write(f"the process died: {start} {answer} {child.wait()}\n")
                return 1
            counts[answer[0]] += 1
            largest = max(largest, int(start[2]))
            first_kb = first_kb or int(answer[1])
            most_s = SLACK * (SECONDS + SECONDS_PER_MB * int(start[2]) / 1e6)
            most_kb = first_kb + GROWTH_KB + GROWTH_PER_BYTE * largest // 1024
            if took > most_s or int(answer[1]) > most_kb:
                sys.stderr.write(f"too much: {start} {took:.1f} s, {answer[1]} kB\n")
                child.kill()
                return 1
        child.kill()
    sys.stdout.write(f"{counts}, at most {answer[1]} kB, at first {first_kb}\n")
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "child":
        read_all(sys.argv[2])
    sys.exit(main(float(sys.argv[1]), (sys.argv[2:] or ["0"])[0]))
