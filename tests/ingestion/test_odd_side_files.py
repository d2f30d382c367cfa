"""Odd values of dumps, snapshots and execution traces cost themselves, never their file or process."""

from __future__ import annotations

import json
import pickle
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.ingestion.artifacts.limited import LARGE_BYTES
from hta_sql.traces.pickles import read_pickle
from tests.fuzz.artifacts import ENTRY

GROUPS = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}


def dump(**changed: Any) -> dict[str, Any]:
    """Return a dump of three operations, of which the second has other values."""
    entries = [{**ENTRY, "record_id": at, "collective_seq_id": at + 1} for at in range(3)]
    entries[1] |= changed
    return {"version": "2.10", "entries": entries, "pg_config": GROUPS, "pg_status": {}}


def nested(depth: int) -> Any:
    """Return a tuple that contains itself twice at each level: 2 to the depth if written out."""
    value: Any = ()
    for _ in range(depth):
        value = (value, value)
    return value


def ingested(tmp_path: Path, content: Any, name: str = "nccl_trace_rank_0") -> hta_sql.TraceStore:
    """Ingest a pickle."""
    (tmp_path / name).write_bytes(pickle.dumps(content, 2))
    return hta_sql.ingest(tmp_path / name, tmp_path / "store")


def reasons(store: hta_sql.TraceStore) -> list[str]:
    """Return the reasons in the quarantine."""
    return [reason for (reason,) in store.sql("SELECT reason FROM quarantine").rows()]


ODD = {
    "pg_id": (10**400, "pg_id", "a number of 1,329 bits"),
    "time_created_ns": (1 << 64, "created_ns", "18446744073709551616"),
    "thread_name": ("x" * 100_000, "thread_name", "at most"),
    "duration_ms": (10**400, "dur", "instead of a number"),
    "input_sizes": ([[10**5000]], "input_sizes", "a list of numbers"),
    "output_sizes": (nested(40), "output_sizes", "instead of a list"),
    "process_group": (nested(40), "pg_name", "a tuple instead of a string"),
    "state": ({"a": 1}, "state", "a dict instead of a string"),
}


@pytest.mark.parametrize("key", ODD)
def test_an_odd_value_of_a_dump_is_null_and_quarantined(tmp_path: Path, key: str) -> None:
    """The other values of the operation, and the other operations, are read."""
    value, column, said = ODD[key]
    store = ingested(tmp_path, dump(**{key: value}))
    rows = store.sql("FROM fr_entries ORDER BY collective_seq_id").records()
    assert [row["collective_seq_id"] for row in rows] == [1, 2, 3]
    if column:
        assert rows[1][column] is None
        assert rows[0][column] is not None or key == "thread_name"
    (reason,) = reasons(store)
    assert reason.startswith("Flight Recorder dump")
    assert said in reason


def test_ranks_that_are_no_list_cost_the_ranks(tmp_path: Path) -> None:
    """Brackets without end do not exhaust the stack."""
    content = dump() | {"pg_config": {"0": {**GROUPS["0"], "ranks": "[" * 100_000}}}
    store = ingested(tmp_path, content)
    assert store.sql("SELECT count(*) FROM fr_entries").rows() == [(3,)]
    assert store.sql("SELECT member_ranks FROM fr_groups").rows() == [(None,)]


def test_a_number_of_thousands_of_digits_in_json(tmp_path: Path) -> None:
    """Python refuses to parse such a number; it costs the value."""
    text = json.dumps(dump(timeout_ms="NUMBER")).replace('"NUMBER"', "9" * 10_000)
    (tmp_path / "dump_0.json").write_text(text, encoding="utf-8")
    store = hta_sql.ingest(tmp_path / "dump_0.json", tmp_path / "store")
    rows = store.sql("SELECT timeout_ns FROM fr_entries ORDER BY collective_seq_id").rows()
    assert rows == [(600_000_000_000,), (None,), (600_000_000_000,)]


def test_a_nested_key_is_left_out() -> None:
    """Hashing it would recurse in C, or never end."""
    content = dump()
    content["entries"][1] |= {"other": {nested(3): 1, ("flat", 2): 3}}
    data = pickle.dumps(content, 2)
    assert read_pickle(data, "dump").odd_keys == 1
    assert read_pickle(data, "dump").value["entries"][1]["other"] == {("flat", 2): 3}
    for key in (b")" + b"\x85" * 100_000, b")" + _doubled(40)):
        assert read_pickle(b"\x80\x02}(" + key + b"K\x01u.", "dump").odd_keys == 1


def _doubled(depth: int) -> bytes:
    """Return opcodes that make a tuple of twice the tuple on the stack, again and again."""
    return b"".join(b"q%ch%c\x86" % (level + 2, level + 2) for level in range(depth))


def test_shared_values_do_not_multiply(tmp_path: Path) -> None:
    """A file of a megabyte that writes one entry with a long name fills no gigabytes."""
    entry = {**ENTRY, "thread_name": "x" * 60_000}
    store = ingested(tmp_path, {"version": "2", "entries": [entry] * 300_000})
    (reason,) = reasons(store)
    assert "shared" in reason
    ((count,),) = store.sql("SELECT count(*) FROM fr_entries").rows()
    assert 0 < count <= 300_000


def test_a_dump_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused with the limit."""
    monkeypatch.setattr("hta_sql.traces.flight_recorder.MAX_BYTES", 1 << 10)
    with pytest.raises(hta_sql.TraceError, match="the maximum size"):
        ingested(tmp_path, dump(thread_name="x" * 2000))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_a_large_file_takes_the_memory_of_another_process(tmp_path: Path) -> None:
    """Beyond the memory limit it is refused with the reason, and this process did not grow."""
    # Each empty list takes 4 bytes of text and 64 of memory: 450 MB in all.
    lists: list[list[int]] = [[]] * 175
    entries = [{**ENTRY, "record_id": at, "more": lists} for at in range(40_000)]
    path = tmp_path / "nccl_trace_rank_0"
    path.write_text(json.dumps({"version": "2.10", "entries": entries}), encoding="utf-8")
    assert path.stat().st_size > LARGE_BYTES
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(
        hta_sql.TraceError, match=r"needs more memory than the limit.*--memory-limit"
    ):
        hta_sql.ingest(path, tmp_path / "small", memory_limit="128MiB")
    store = hta_sql.ingest(path, tmp_path / "store")
    assert store.sql("SELECT count(*) FROM fr_entries").rows() == [(40_000,)]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


TIMED = """
import sys
from hta_sql.ingestion.artifacts import limited
limited.CPU_S, limited.CPU_S_PER_MB = 1, 0
limited.limit_time("dump", 1000)
while True:
    pass
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX")
def test_a_large_file_has_a_limit_of_time() -> None:
    """A process that reads for ever is ended by the system."""
    done = subprocess.run([sys.executable, "-c", TIMED], timeout=30, check=False)  # noqa: S603
    assert done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)


SEGMENT = {"device": 0, "address": 4096, "total_size": 512, "stream": 0, "blocks": [], "frames": []}
EVENT = {"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "frames": []}


@pytest.mark.parametrize(
    ("field", "value"),
    [("addr", 1 << 64), ("size", "big"), ("stream", nested(40))],
)
def test_an_odd_value_of_a_snapshot(tmp_path: Path, field: str, value: Any) -> None:
    """It is NULL and quarantined; the other events are read."""
    events = [EVENT, {**EVENT, field: value}, EVENT]
    store = ingested(
        tmp_path, {"segments": [SEGMENT], "device_traces": [events]}, "snapshot_rank0.pickle"
    )
    assert store.sql("SELECT count(*) FROM snapshot_events").rows() == [(3,)]
    (reason,) = reasons(store)
    assert reason.startswith("Memory snapshot values: 1 value left out")


NODE = {"id": 5, "name": "aten::mm", "ctrl_deps": 2, "attrs": [{"name": "rf_id", "value": 7}]}


def test_an_odd_value_of_an_execution_trace(tmp_path: Path) -> None:
    """It is NULL and quarantined; the other nodes are read."""
    nodes = [NODE, {**NODE, "id": 6, "ctrl_deps": 1 << 70}, {**NODE, "id": 7, "name": "\ud800"}]
    text = json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": nodes})
    (tmp_path / "et_0.json").write_text(text, encoding="utf-8")
    store = hta_sql.ingest(tmp_path / "et_0.json", tmp_path / "store")
    assert store.sql("SELECT count(*) FROM et_nodes").rows() == [(3,)]
    (reason,) = reasons(store)
    assert reason.startswith("Execution trace values: 2 values left out")


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
from hta_sql.errors import TraceFormatError
from hta_sql.ingestion.artifacts.dumps import DumpValues, dump_tables
from hta_sql.ingestion.artifacts.values import Values
from hta_sql.traces.flight_recorder import parse_dump
data = open(sys.argv[1], "rb").read()
try:
    dump_tables(parse_dump(data, "dump"), DumpValues(Values(len(data)), Values(len(data))))
    print("read")
except TraceFormatError as error:
    print("refused")
"""


@pytest.mark.parametrize("seed", range(6))
def test_random_opcodes_neither_end_the_process_nor_take_its_memory(
    tmp_path: Path, seed: int
) -> None:
    """A process with 3 GB of addresses reads or refuses 200 kB of opcodes within seconds."""
    chance = random.Random(f"opcodes {seed}")
    base = pickle.dumps(dump(), 2)[:-1]
    pieces = [b"h\x01", b"\x85", b"\x86", b"]", b"}", b"(", b"l", b"t", b"q\x01", b"K\x01", b"0"]
    noise = b"".join(chance.choice(pieces) for _ in range(100_000))
    path = tmp_path / "dump"
    path.write_bytes(base + noise + b".")
    started = time.monotonic()
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", LIMITED, str(path), str(3 << 30)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() in ("read", "refused"), done.stderr[-500:]
    assert time.monotonic() - started < 20
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 3 << 20
