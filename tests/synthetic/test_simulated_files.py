"""Files of simulated jobs look like those that torch writes."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from hta_sql.synthetic import Job, write_job
from tests.synthetic.counting import truth_of
from tests.synthetic.simulated import BUSY, EVERYTHING, SMALL, Event, events_of, load


def test_equal_specs_give_equal_bytes(tmp_path: Path) -> None:
    """Equal specs give equal files anywhere, and a different seed gives different files."""
    once, again, other = (
        write_job(tmp_path / name, replace(EVERYTHING, seed=seed))
        for name, seed in (("once", 0), ("again", 0), ("other", 1))
    )
    assert [f.name for f in once.files] == [f.name for f in again.files]
    assert [f.read_bytes() for f in once.files] == [f.read_bytes() for f in again.files]
    assert truth_of(once) == truth_of(again)
    assert once.files[0].read_bytes() != other.files[0].read_bytes()


def test_files_are_named_as_torch_names_them(tmp_path: Path) -> None:
    """File names have rank, host, process and time; `gzip=False` writes plain JSON."""
    packed = write_job(tmp_path, SMALL).files
    plain = write_job(tmp_path, replace(SMALL, gzip=False)).files
    pattern = r"rank\d\.node-0_\d+\.\d+\.pt\.trace\.json"
    assert all(re.fullmatch(pattern + r"\.gz", file.name) for file in packed)
    assert all(re.fullmatch(pattern, file.name) for file in plain)
    assert gzip.decompress(packed[1].read_bytes()).replace(b".json.gz", b".json") == (
        plain[1].read_bytes()
    )


def test_header_describes_the_job(job: Job) -> None:
    """The header has rank, world size, process groups and base time, as torch writes them."""
    trace = load(job.files[1])
    info = trace["distributedInfo"]
    assert (info["backend"], info["rank"], info["world_size"]) == ("nccl", 1, 2)
    assert [group["ranks"] for group in info["pg_config"]] == [[0, 1], [0, 1]]
    assert trace["baseTimeNanoseconds"] == EVERYTHING.base_time_ns + 1_000_000_007
    assert trace["traceName"] == job.files[1].name
    assert [gpu["id"] for gpu in trace["deviceProperties"]] == [0, 1]
    assert trace["traceEvents"][-1]["name"] == "Record Window End"


def test_fields_have_the_types_of_real_traces(job: Job) -> None:
    """Times are decimals with three digits, ids are integers, and sizes are numbers."""
    text = gzip.decompress(job.files[0].read_bytes()).decode()
    assert re.fullmatch(r"\d+\.\d{3}", text.split('"ts": ')[1].split(",")[0])
    for event in load(job.files[0])["traceEvents"]:
        args = event.get("args", {})
        assert event["ph"] in {"X", "i", "s", "f", "M"}
        assert event["ph"] != "X" or event["dur"] >= 0
        if event.get("cat") in BUSY:
            assert isinstance(args["correlation"], int)
            assert isinstance(args["stream"], int)
            assert event["tid"] == args["stream"]
        if event.get("cat") in BUSY[1:]:
            assert float(args["memory bandwidth (GB/s)"]) == pytest.approx(
                args["bytes"] / event["dur"]
            )


def test_operators_of_a_thread_are_nested(job: Job) -> None:
    """Any two operators or calls of a thread are nested or disjoint."""
    threads: dict[int, list[Event]] = {}
    for event in events_of(
        job.files[0], "cpu_op", "user_annotation", "cuda_runtime", "cuda_driver"
    ):
        threads.setdefault(event["tid"], []).append(event)
    assert len(threads) == 2
    for events in threads.values():
        open_until: list[int] = []
        for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
            while open_until and open_until[-1] <= event["ts"]:
                open_until.pop()
            assert not open_until or event["ts"] + event["dur"] <= open_until[-1]
            open_until.append(event["ts"] + event["dur"])


def test_work_on_a_stream_never_overlaps(job: Job) -> None:
    """A stream runs one operation at a time, and none before its launch call begins."""
    for file in job.files:
        calls = {
            e["args"]["correlation"]: e["ts"]
            for e in events_of(file, "cuda_runtime", "cuda_driver")
        }
        free: dict[int, int] = {}
        for op in sorted(events_of(file, *BUSY), key=lambda e: e["ts"]):
            assert op["ts"] >= free.get(op["tid"], 0)
            assert op["ts"] > calls.get(op["args"]["correlation"], 0)
            free[op["tid"]] = op["ts"] + op["dur"]


def test_forward_and_backward_are_joined(job: Job) -> None:
    """Each forward flow ends in a backward operator with the same sequence number."""
    events = load(job.files[0])["traceEvents"]
    ends: dict[str, dict[int, Event]] = {"s": {}, "f": {}}
    for event in events:
        if event.get("cat") == "fwdbwd":
            ends[event["ph"]][event["id"]] = event
    sequences: dict[str, dict[int, int]] = {"s": {}, "f": {}}
    for phase, flows in ends.items():
        for flow, point in flows.items():
            enclosing = [
                e
                for e in events
                if e.get("cat") == "cpu_op"
                and e["tid"] == point["tid"]
                and e["ts"] <= point["ts"] <= e["ts"] + e["dur"]
                and "Sequence number" in e["args"]
            ]
            innermost = min(enclosing, key=lambda e: e["dur"])
            sequences[phase][flow] = innermost["args"]["Sequence number"]
    assert sequences["s"] == sequences["f"]
    assert len(sequences["s"]) == EVERYTHING.steps * EVERYTHING.layers * EVERYTHING.ops_per_layer


def test_memory_is_released_as_allocated(job: Job) -> None:
    """The allocated total is the running sum of the events, and all memory is freed in the end."""
    instants = [e for e in load(job.files[1])["traceEvents"] if e.get("name") == "[memory]"]
    allocated, live = 0, Counter[int]()
    for instant in sorted(instants, key=lambda e: e["ts"]):
        args = instant["args"]
        allocated += args["Bytes"]
        live[args["Addr"]] += args["Bytes"]
        assert args["Total Allocated"] == allocated <= args["Total Reserved"]
        assert (args["Device Type"], args["Device Id"]) == (1, 1)
    assert instants
    assert set(live.values()) == {0}


def test_python_frames_have_parents(job: Job) -> None:
    """Each Python frame lies within its parent, up to a single root; modules have a module id."""
    frames = {e["args"]["Python id"]: e for e in events_of(job.files[0], "python_function")}
    roots = [f for f in frames.values() if f["args"]["Python parent id"] is None]
    assert [root["name"] for root in roots] == ["train.py(131): <module>"]
    for frame in frames.values():
        assert ("Python module id" in frame["args"]) == frame["name"].startswith("nn.Module: ")
        if frame not in roots:
            parent = frames[frame["args"]["Python parent id"]]
            assert parent["ts"] <= frame["ts"]
            assert frame["ts"] + frame["dur"] <= parent["ts"] + parent["dur"]
