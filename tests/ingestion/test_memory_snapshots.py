"""PyTorch memory snapshots are read or refused, and their figures match those of other tools."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hta_sql
from hta_sql.errors import TraceError, TraceFormatError
from hta_sql.exports.redaction.names import Redactor
from hta_sql.exports.redaction.stores import redact_store
from hta_sql.ingestion.artifacts.reading import engine_memory
from hta_sql.store.disk.folder import store_folder
from hta_sql.traces.memory_snapshot import SnapshotSink, is_snapshot, read_snapshot

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "tests" / "traces"
TRAINING = TRACES / "snapshots" / "training.json"
MOSAIC = ROOT.parent / "shared" / "traces" / "mosaic_memory_snapshot" / "output.pickle"

TABLES = ("segments", "blocks", "events", "annotations", "frames")


def snapshot() -> dict[str, Any]:
    """Return the memory snapshot of a small training job."""
    value: dict[str, Any] = json.loads(TRAINING.read_text(encoding="utf-8"))
    return value


def rows(store: TraceStore) -> dict[str, list[Any]]:
    """Return the rows of all snapshot tables."""
    query = "SELECT * EXCLUDE (run) FROM query_table($table) ORDER BY ALL"
    return {table: store.sql(query, {"table": f"snapshot_{table}"}).rows() for table in TABLES}


def ingested(path: Path, store: Path) -> TraceStore:
    """Ingest a file or folder into a new store and return the open store."""
    return hta_sql.ingest(str(path), str(store), run="job", jobs=1)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_all_protocols_are_read_as_json_is(protocol: int, tmp_path: Path) -> None:
    """A pickled snapshot of any protocol gives the same rows as JSON."""
    path = tmp_path / "rank0_snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot(), protocol))
    with ingested(TRAINING, tmp_path / "a.store") as a, ingested(path, tmp_path / "b.store") as b:
        assert rows(b) == rows(a)
        assert len(rows(a)["events"]) == 30
        assert len(rows(a)["blocks"]) == 14


def test_stacks_that_events_share_are_read_with_each_of_them(tmp_path: Path) -> None:
    """A stack that events share in the pickle is stored once, and each event refers to it."""
    # In PyTorch's pickle, events of one call share a stack, and stacks share frames.
    frames = [{"name": "f", "filename": "a.py", "line": 1}]
    other = [*frames, {"name": "g", "filename": "a.py", "line": 2}]
    events = [
        {"action": "alloc", "addr": n, "size": 8, "stream": 0, "time_us": n, "frames": stack}
        for n, stack in enumerate([frames, other] * 2500)
    ]
    value = {"segments": [], "device_traces": [[], events]}
    path = tmp_path / "snapshot.pkl"
    path.write_bytes(pickle.dumps(value, 4))
    with ingested(path, tmp_path / "store") as store:
        query = "SELECT device, stack_id, count(*) FROM snapshot_events GROUP BY ALL ORDER BY ALL"
        assert store.sql(query).rows() == [(1, 0, 2500), (1, 1, 2500)]
        assert store.sql("SELECT count(*) FROM snapshot_frames").rows() == [(3,)]


def test_a_pickle_that_runs_a_command_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    """A pickle that would run a command is refused without running it."""
    witness = tmp_path / "witness"

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, (f"touch {witness}",)

    value = snapshot()
    value["device_traces"][0][3]["frames"] = Evil()
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(value, 2))
    with pytest.raises(
        TraceFormatError, match=r"rejected: .*GLOBAL.*system.*Nothing in the file was executed"
    ):
        read_snapshot(str(path), _ignore())
    with pytest.raises(TraceError):
        ingested(path, tmp_path / "store")
    assert not witness.exists()


def _ignore() -> SnapshotSink:
    return SnapshotSink(lambda _: None, lambda _, __: None, lambda _: None)


def test_of_a_pickle_that_is_cut_off_the_complete_events_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """From a truncated snapshot, all complete events are read."""
    whole = pickle.dumps(snapshot(), 4)
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(whole[: whole.index(b"external_annotations") - 2_000])
    with ingested(path, tmp_path / "store") as store:
        (found,) = store.sql("SELECT count(*) FROM snapshot_events").rows()
        assert 0 < found[0] < 30
        assert store.sql("SELECT count(*) FROM snapshot_segments").rows() == [(4,)]
    assert "cut off" in caplog.text


def test_a_snapshot_lies_beside_the_trace_of_its_rank(tmp_path: Path) -> None:
    """A compressed snapshot is assigned to the rank in its file name."""
    folder = tmp_path / "job"
    folder.mkdir()
    shutil.copy(TRACES / "memory_of_training.json", folder / "rank1.json")
    with gzip.open(folder / "rank1_snapshot.pickle.gz", "wb") as file:
        file.write(pickle.dumps(snapshot(), 2))
    with ingested(folder, tmp_path / "store") as store:
        query = "SELECT DISTINCT run, rank FROM snapshot_events UNION SELECT run, rank FROM cpu_ops"
        assert store.sql(query).rows() == [("job", 1)]
        assert store.run("snapshot_summary").records()[0]["peak_bytes"] == 4160


def test_several_snapshots_of_a_rank_are_runs_of_their_own(tmp_path: Path) -> None:
    """Two snapshots of one rank in separate folders, as torchtitan writes them, become two runs."""
    for iteration in (1, 2):
        folder = tmp_path / "job" / f"iteration_{iteration}"
        folder.mkdir(parents=True)
        shutil.copy(TRAINING, folder / "rank0_memory_snapshot.json")
    with ingested(tmp_path / "job", tmp_path / "store") as store:
        found = store.sql("SELECT DISTINCT run FROM snapshot_segments ORDER BY ALL").rows()
        assert found == [("job",), ("job-capture2",)]
        assert store.run("snapshot_diff").records() == []


def test_an_unchanged_snapshot_is_not_read_again(tmp_path: Path) -> None:
    """Ingesting an unchanged snapshot again does not duplicate its rows."""
    path = tmp_path / "snapshot.json"
    shutil.copy(TRAINING, path)
    ingested(path, tmp_path / "store").close()
    with ingested(path, tmp_path / "store") as store:
        assert store.sql("SELECT count(*) FROM snapshot_events").rows() == [(30,)]


def test_redaction_keeps_the_figures_and_no_text_of_the_user(tmp_path: Path) -> None:
    """Redaction preserves categories and sizes but removes the names of files and functions."""
    value = snapshot()
    value["device_traces"][0][1]["user_metadata"] = "secret model"
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    columns = "moment, category, block_count, bytes, is_recorded"
    with ingested(path, tmp_path / "store") as store:
        query = f"SELECT {columns} FROM snapshot_peak() ORDER BY ALL"  # noqa: S608 - a constant
        expected = store.sql(query).rows()
        redact_store(store_folder(str(tmp_path / "store")), tmp_path / "copy", Redactor())
    with hta_sql.open(str(tmp_path / "copy")) as copy:
        assert copy.sql(query).rows() == expected
        assert copy.run("snapshot_summary").records()[0]["inactive_split_bytes"] == 7088
        texts = str([rows(copy), copy.run("snapshot_stacks").records()])
    for word in ("/job", "train.py", "keep_loss", "evaluate", "secret", "model.py"):
        assert word not in texts


def test_a_dump_and_a_trace_are_no_snapshots() -> None:
    """Flight Recorder dumps and traces are not mistaken for snapshots."""
    assert is_snapshot(pickle.dumps(snapshot(), 5))
    assert not is_snapshot(pickle.dumps({"version": "2.4", "entries": []}))
    assert not is_snapshot(b'{"traceEvents": [], "segments": []}')


def test_bytes_by_stack_are_those_of_torch_memory_viz(tmp_path: Path) -> None:
    """Requested bytes and rounding gaps by stack equal those of PyTorch's memory_viz."""
    # Output of torch.cuda._memory_viz.memory in PyTorch 2.6, summed by stack.
    expected = {
        ("active_allocated", "<gaps>"): 36,
        ("active_allocated", "<non-python>"): 1000,
        ("active_allocated", "train.py:90:main;model.py:12:build;module.py:915:_apply"): 1020,
        ("active_allocated", "train.py:90:main;train.py:42:step;adam.py:173:_init_group"): 504,
        ("active_allocated", "train.py:90:main;train.py:43:step;train.py:50:keep_loss"): 96,
        ("active_awaiting_free", "<gaps>"): 24,
        (
            "active_awaiting_free",
            "train.py:90:main;train.py:40:step;module.py:1740:_call_impl;model.py:20:forward;functional.py:2:linear",
        ): 1000,
        ("inactive", "<gaps>"): 1536,
        ("inactive", "<non-python>"): 5552 + 2048,
    }
    with ingested(TRAINING, tmp_path / "store") as store:
        assert _by_stack(store) == expected


def _by_stack(store: TraceStore) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for row in store.run("snapshot_stacks").records():
        for stack, column in (
            (row["folded_stack"] or "<non-python>", "requested_bytes"),
            ("<gaps>", "rounding_bytes"),
        ):
            if row[column]:
                key = row["state"], stack
                found[key] = found.get(key, 0) + row[column]
    return found


@pytest.mark.skipif(not MOSAIC.exists(), reason="needs ../shared/traces/mosaic_memory_snapshot")
def test_figures_are_those_of_mosaic_and_torch(tmp_path: Path) -> None:
    """The figures for a snapshot from Mosaic's tests equal Mosaic's and PyTorch's figures."""
    with ingested(MOSAIC, tmp_path / "store") as store:
        (summary,) = store.run("snapshot_summary").records()
        # EXPECTED_MEM_PEAK in Mosaic's test_cmds.py, which excludes memory allocated before
        # recording.
        assert summary["recorded_peak_bytes"] == 2_255_398_132
        assert summary["peak_bytes"] == 2_255_398_132 + 8704
        assert summary["held_before_bytes"] == 8704
        peak = store.run("snapshot_peak").records()
        recorded = [row for row in peak if row["is_recorded"]]
        assert sum(row["bytes"] for row in recorded) == 2_255_398_132
        assert {row["category"] for row in recorded} == {"unknown"}
        # EXPECTED_MAX_ALLOCATION_ADDRESS: the event that reaches the peak.
        query = "SELECT printf('%x', address) FROM snapshot_events WHERE event_id = $event"
        address = store.sql(query, {"event": summary["peak_event_id"]}).rows()
        assert address == [("343e4b6023956",)]
        by_context = """
            SELECT e.compile_context, sum(l.bytes)::BIGINT
            FROM lib.snapshot_live(NULL, NULL, 1) AS l
            JOIN snapshot_events AS e ON e.event_id = l.alloc_event_id
            WHERE l.moment = 'peak' GROUP BY ALL ORDER BY ALL
        """
        assert store.sql(by_context).rows() == [
            ("context1", 528_274_631),
            ("context2", 1_212_434_191),
            ("context3", 514_689_310),
        ]
        # Output of torch.cuda._memory_viz.memory in PyTorch 2.6.
        assert _by_stack(store) == {
            ("active_allocated", "<non-python>"): 466,
            ("active_allocated", "<gaps>"): 8238,
        }


def test_stacks_that_events_share_across_batches_are_known_by_their_number(tmp_path: Path) -> None:
    """A stack keeps its number in later batches."""
    frames = [{"name": f"f{number}", "filename": "a.py", "line": number} for number in range(9)]
    stacks = [frames[number:] for number in range(9)]
    events = [
        {"action": "alloc", "addr": number, "size": 512, "frames": stacks[number % 7]}
        for number in range(5000)
    ]
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [events]}))
    found: list[tuple[int, int]] = []

    def take(_: int, records: list[dict[str, Any]]) -> None:
        found.extend((record["addr"], record["frames"].number) for record in records)

    sink = SnapshotSink(lambda _: None, take, lambda _: None)
    assert read_snapshot(str(path), sink) is None
    assert found == [(number, number % 7) for number in range(5000)]


def test_the_engine_has_less_memory_next_to_the_reader_of_a_large_snapshot() -> None:
    """DuckDB's memory limit is reduced by a sixteenth of the file size, but at most halved."""
    assert engine_memory("368MiB", 0) == "368MiB"
    assert engine_memory("368MiB", 1056 << 20) == f"{302 << 10}KiB"
    assert engine_memory("368MiB", 100 << 30) == f"{184 << 10}KiB"


def test_several_snapshots_of_a_rank_are_compared_in_order_of_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Snapshots are compared in time order, although their runs are numbered by name."""
    later = snapshot()
    later["device_traces"][0].append(
        {"action": "alloc", "addr": 71536, "size": 256, "time_us": 1_700_000_001_000_000}
    )
    folder = tmp_path / "steps"
    folder.mkdir()
    for step, value in ((5, later), (11, snapshot())):
        (folder / f"rank0_step{step}_snapshot.json").write_text(json.dumps(value))
    with hta_sql.ingest(str(folder), tmp_path / "store", run="job") as store:
        query = "SELECT DISTINCT control_run, test_run, diff_bytes FROM snapshot_diff()"
        assert store.sql(query).rows() == [("job-capture2", "job", 256)]
    assert "named NAME, NAME-capture2, ... in order of file name: " in caplog.text
    assert caplog.text.index("step5") < caplog.text.index("step11")


def test_the_reserved_memory_at_an_oom_leaves_out_later_segments(tmp_path: Path) -> None:
    """Memory reserved at an out-of-memory error excludes segments that were allocated later."""
    value = snapshot()
    segment = {**value["segments"][0], "address": 1 << 20, "total_size": 5000, "blocks": []}
    value["segments"].append(segment)
    value["device_traces"][0].append({"action": "segment_alloc", "addr": 1 << 20, "size": 5000})
    path = tmp_path / "rank0_snapshot.json"
    path.write_text(json.dumps(value))
    with ingested(path, tmp_path / "store") as store:
        query = "SELECT reserved_bytes, oom_reserved_bytes, oom_unallocated_bytes FROM snapshot_summary()"
        assert store.sql(query).rows() == [(12816 + 5000, 12816, 9136)]


def test_layers_and_losses_have_categories(tmp_path: Path) -> None:
    """Stacks with torch.nn constructors mean parameters; with torch.nn.functional, activations."""
    torch = "/lib/python3/torch/nn"
    stacks = {
        256: [f"{torch}/modules/linear.py:__init__", "/job/model.py:__init__"],
        512: [f"{torch}/functional.py:cross_entropy", "/job/train.py:step"],
        1024: ["/job/modules/linear.py:__init__", "/job/train.py:main"],
    }
    events = []
    for number, (size, places) in enumerate(stacks.items()):
        named = [place.rsplit(":", 1) for place in places]
        frames = [{"filename": file, "line": 1, "name": name} for file, name in named]
        events.append(
            {
                "action": "alloc",
                "addr": 4096 * number,
                "size": size,
                "frames": frames,
                "time_us": number,
            }
        )
    path = tmp_path / "rank0_snapshot.json"
    path.write_text(json.dumps({"segments": [], "device_traces": [events]}))
    with ingested(path, tmp_path / "store") as store:
        query = "SELECT bytes, category FROM snapshot_peak() ORDER BY bytes"
        wanted = [(256, "parameters"), (512, "activations"), (1024, "unknown")]
        assert store.sql(query).rows() == wanted
