"""Tests that replayed kernels are matched with the capture of their own graph and with no other."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql.ingestion.discover import discover
from hta_sql.ingestion.graph_nodes import pair_nodes

Event = dict[str, Any]

LAYER = ("norm", "gemm_a", "rope", "attention_in", "norm", "gemm_b", "route", "expert", "expert")
MODEL = ("embed", *LAYER * 24, "head")


CAPTURE_ALONE = {
    "traceEvents": [
        {"ph": "X", "name": "aten::mm", "cat": "cpu_op", "ts": 1, "dur": 1, "pid": 1, "tid": 1}
    ]
}


def test_lists_that_are_equal_are_matched_by_position() -> None:
    """Equal kernel lists are matched by position, even if names repeat."""
    assert pair_nodes(MODEL, MODEL) == (tuple(range(len(MODEL))), "position")


def test_nodes_in_another_order_are_matched_by_occurrence() -> None:
    """With multiple streams, the n-th kernel of a name matches the n-th node of that name."""
    assert pair_nodes(["b", "a", "a", "c"], ["a", "b", "a", "c"]) == ((1, 0, 2, 3), "occurrence")


def test_a_capture_without_names_is_matched_by_count() -> None:
    """A capture without names is matched by kernel count; copies are recognized by their call."""
    captured = [None, "<memcpy>", None]
    assert pair_nodes(["k", "<memcpy>", "k"], captured) == ((0, 1, 2), "count")
    assert pair_nodes(["k", "k", "<memcpy>"], captured) is None
    assert pair_nodes(["k", "<memcpy>"], captured) is None


@pytest.mark.parametrize("seed", range(8))
def test_lost_nodes_leave_the_others_right(seed: int) -> None:
    """With 5 % of 218 nodes lost, no other node is matched with a node in a different layer."""
    drawn = random.Random(seed)
    kept = [position for position in range(len(MODEL)) if drawn.random() > 0.05]
    paired = pair_nodes([MODEL[position] for position in kept], MODEL)
    assert paired is not None
    # If one of two equal adjacent nodes is lost, it is unknown which one.
    wrong = [
        (truth, found)
        for truth, found in zip(kept, paired[0], strict=True)
        if found != truth
        and not (found is not None and abs(found - truth) == 1 and MODEL[found] == MODEL[truth])
    ]
    assert not wrong


def test_a_renamed_node_is_the_only_one_without_a_match() -> None:
    """Only a renamed node is unmatched, even next to a node that has its former name."""
    for position in range(len(MODEL)):
        replayed = [*MODEL[:position], "renamed", *MODEL[position + 1 :]]
        paired = pair_nodes(replayed, MODEL)
        assert paired is not None
        assert paired[0] == tuple(None if i == position else i for i in range(len(MODEL)))


def test_a_graph_of_another_size_is_not_matched() -> None:
    """A graph captured for a different size does not match, because its kernel names differ."""
    other = [name.replace("gemm_", "gemm_64x64_") for name in MODEL]
    assert pair_nodes(MODEL, other) is None
    assert pair_nodes(MODEL, MODEL[:40]) is None


# A synthetic engine: for each of two sizes, one graph for the embedding and three for layers.

LAYERS = ["Layer_0", *(f"Layer_{n}" for n in (1, 1, 2, 2, 3, 3))]
KERNELS = {8: ("embed", "gemm_32", "norm"), 64: ("embed", "gemm_128", "norm")}


def _host(name: str, cat: str, ts: float, dur: float, **args: object) -> Event:
    return {
        "ph": "X",
        "pid": 1,
        "tid": 1,
        "name": name,
        "cat": cat,
        "ts": ts,
        "dur": dur,
        "args": args,
    }


def capture(sizes: tuple[int, ...] = (64, 8), *, named: bool = True) -> dict[str, Any]:
    """Return a trace that captures four graphs per size: the embedding and three layers."""
    events: list[Event] = []
    at, correlation = 0.0, 1
    for size in sizes:
        begin = at
        for graph in range(4):
            events.append(_host("cudaStreamBeginCapture", "cuda_runtime", at + 1, 1))
            events.append(_host(f"nn.Module: Layer_{graph}", "python_function", at + 3, 40))
            names = KERNELS[size][:1] if graph == 0 else KERNELS[size][1:]
            for position, name in enumerate(names):
                start = at + 5 + 10 * position
                shapes = [[size, 16]]
                op = {"Input Dims": shapes, "Input type": ["float"], "External id": correlation}
                events.append(_host(f"aten::{name.split('_')[0]}", "cpu_op", start, 8, **op))
                kernel = {"kernel": name} if named else {}
                events.append(
                    _host(
                        "cudaLaunchKernel",
                        "cuda_runtime",
                        start + 1,
                        2,
                        correlation=correlation,
                        **kernel,
                    )
                )
                correlation += 1
            events.append(_host("cudaStreamEndCapture", "cuda_runtime", at + 50, 1))
            at += 100
        label = f"capture_{size}_PIECEWISE"
        events.append(_host(label, "user_annotation", begin, at - begin - 10))
    return {"schemaVersion": 1, "traceEvents": events}


def replay(tokens: list[int], sizes: list[int], *, annotated: bool = True) -> dict[str, Any]:
    """Return a trace of iterations, each of which replays the four graphs of a size."""
    events: list[Event] = []
    at, correlation = 0.0, 1
    for count, size in zip(tokens, sizes, strict=True):
        if annotated:
            name = f"execute_context_0(0)_generation_{count}({count})"
            events.append(_host(name, "user_annotation", at, 90))
        for graph in range(4):
            launch = at + 5 + 20 * graph
            events.append(
                _host("cudaGraphLaunch", "cuda_runtime", launch, 2, correlation=correlation)
            )
            names = KERNELS[size][:1] if graph == 0 else KERNELS[size][1:]
            for position, kernel in enumerate(names):
                args = {"correlation": correlation, "device": 0, "stream": 7}
                on_device = {
                    "ph": "X",
                    "cat": "kernel",
                    "pid": 0,
                    "tid": 7,
                    "name": kernel,
                    "args": args,
                }
                events.append({**on_device, "ts": launch + 4 + 6 * position, "dur": 5})
            correlation += 1
        at += 100
    return {"schemaVersion": 1, "traceEvents": events}


def joined(folder: Path, trace: dict[str, Any], captured: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Ingest a trace with its capture, and return the match of each replayed kernel in order.

    The columns are kernel name, match method, graph label, shapes and module.
    """
    (folder / "rank0.json").write_text(json.dumps(trace), encoding="utf-8")
    (folder / "graph_capture_rank_0.json").write_text(json.dumps(captured), encoding="utf-8")
    with hta_sql.ingest(folder, folder / "job.store") as store:
        return store.sql(
            "SELECT g.name, m.match_method, m.graph_label, m.input_dims, m.module_path FROM gpu_ops AS g "
            "LEFT JOIN graph_matches AS m ON m.run = g.run AND m.rank = g.rank AND m.event_id = g.event_id ORDER BY g.ts"
        ).rows()


def test_an_iteration_gets_the_graphs_of_its_size(tmp_path: Path) -> None:
    """An iteration is matched with the graphs of the smallest size that fits its tokens.

    The capture is discovered by its file name.
    """
    rows = joined(tmp_path, replay([64, 5], [64, 8]), capture())
    assert [row[1] for row in rows] == ["position"] * 14
    assert [row[2] for row in rows] == ["capture_64_PIECEWISE"] * 7 + ["capture_8_PIECEWISE"] * 7
    assert [json.loads(row[3])[0] for row in rows] == [[64, 16]] * 7 + [[8, 16]] * 7
    assert [row[4] for row in rows[:7]] == [row[4] for row in rows[7:]] == LAYERS


def test_a_capture_of_another_batch_size_matches_nothing(tmp_path: Path) -> None:
    """A capture of a different batch size is too small for the tokens or has different kernels."""
    for number, trace in enumerate((replay([64], [64]), replay([5], [8]))):
        folder = tmp_path / str(number)
        folder.mkdir()
        other = capture((8,) if number == 0 else (64,))
        assert {row[1] for row in joined(folder, trace, other)} == {None}


def test_replays_without_iterations_begin_again_behind_the_last_graph(tmp_path: Path) -> None:
    """Without iterations, matching starts over after the last graph of the captured size."""
    rows = joined(tmp_path, replay([8, 8], [8, 8], annotated=False), capture((8,)))
    modules = [row[4] for row in rows]
    assert modules[:7] == modules[7:]
    assert modules[:7] == LAYERS


def test_of_graphs_that_differ_in_shapes_only_none_is_chosen_without_a_size(tmp_path: Path) -> None:
    """Two sizes with equal kernels are ambiguous if the number of tokens is unknown."""
    captured = capture((64, 8))
    for event in captured["traceEvents"]:
        if event["args"].get("kernel") == "gemm_32":
            event["args"]["kernel"] = "gemm_128"
    rows = joined(tmp_path, replay([8, 8], [64, 64], annotated=False), captured)
    assert {row[1] for row in rows} == {None}


def test_a_capture_without_kernel_names_says_that_it_is_matched_by_count(tmp_path: Path) -> None:
    """Kernels that match a capture without kernel names have the match method ``count``."""
    rows = joined(tmp_path, replay([8], [8]), capture((8,), named=False))
    assert {row[1] for row in rows} == {"count"}
    assert rows[-1][4] == "Layer_3"


def test_captures_alone_are_traces_also_next_to_other_json(tmp_path: Path) -> None:
    """A folder of captures is ingested even if vLLM's execution details, a JSON list, are in it."""
    (tmp_path / "graph_capture_rank_0.json").write_text(json.dumps(CAPTURE_ALONE), encoding="utf-8")
    (tmp_path / "execution_details.json").write_text("[]", encoding="utf-8")
    (found,) = discover(str(tmp_path))
    assert (found.rank, found.captures) == (0, ())
    assert found.path.endswith("graph_capture_rank_0.json")


def test_every_rank_gets_a_capture_and_another_capture_is_another_ingest(tmp_path: Path) -> None:
    """The capture of rank 0 applies to both ranks; ingesting it again changes nothing."""
    for rank in (0, 1):
        trace = json.dumps(replay([8], [8]))
        (tmp_path / f"rank{rank}.json").write_text(trace, encoding="utf-8")
    captures = tmp_path / "captures"
    captures.mkdir()
    (captures / "of_rank0.json").write_text(json.dumps(capture()), encoding="utf-8")
    traces = {rank: str(tmp_path / f"rank{rank}.json") for rank in (0, 1)}
    with hta_sql.ingest(traces, tmp_path / "job.store", run="job", captures=captures) as store:
        matched = "SELECT rank, count(*) FROM graph_matches GROUP BY rank ORDER BY rank"
        assert store.sql(matched).rows() == [(0, 7), (1, 7)]
        again = hta_sql.ingest(traces, tmp_path / "job.store", run="job", captures=captures)
        assert again.ingested
        assert len(again.ingested.unchanged) == 2
        without = hta_sql.ingest(traces, tmp_path / "job.store", run="job")
        assert without.ingested
        assert len(without.ingested.results) == 2
        again.close()
        without.close()


def test_tables_by_operator_say_how_a_kernel_was_matched(tmp_path: Path) -> None:
    """Tables by operator state how kernels were matched, and still add up to the device time."""
    joined(tmp_path, replay([64, 5], [64, 64]), capture((64,)))
    with hta_sql.open(tmp_path / "job.store") as store:
        rows = [
            row
            for row in store.run("operator_table", by_shapes=True, by_module=True).records()
            if row["side"] == "device"
        ]
        assert {(row["name"], row["match_method"]) for row in rows} == {
            (f"aten::{name}", "position") for name in ("embed", "gemm", "norm")
        }
        assert {row["module"] for row in rows} == {f"nn.Module: Layer_{n}" for n in range(4)}
        assert sum(row["device_self_ns"] for row in rows) == 70_000
        for name in ("roofline", "launching_operators"):
            answered = store.run(name).records()
            assert sum(row["device_ns"] for row in answered) == 70_000
            assert {row["match_method"] for row in answered} == {"position"}
        launching = {row["name"]: row for row in store.run("launching_operators").records()}
        assert launching["aten::gemm"]["call_count"] == 6
        by_module = store.run("modules").records()
        assert {row["path"]: row["device_self_ns"] for row in by_module} == {
            "Layer": 70_000,
            None: 0,
        }
        assert by_module[0]["replayed_device_ns"] == 70_000
        (coverage,) = store.run("graph_coverage").records()
        assert (coverage["graph_count"], coverage["replay_count"], coverage["op_count"]) == (
            4,
            8,
            14,
        )
        assert coverage["replayed_pct"] == coverage["device_pct"] == 100


SHARED = Path(__file__).parents[2] / "shared" / "traces"
REPLAYED = SHARED / "vllm_prefilldecode_piecewise" / "graph_execution.json.gz"
CAPTURED = SHARED / "vllm_prefilldecode_piecewise_capture"

recorded = pytest.mark.skipif(not CAPTURED.exists(), reason="needs the recorded traces")

MATCHES = (
    "SELECT g.name, g.ts, m.match_method, m.graph_number, m.node_number, m.captured_op_name, m.input_dims, m.module_path, "
    "m.captured_frame FROM gpu_ops AS g JOIN runtime_calls AS c ON c.run = g.run AND c.rank = g.rank AND "
    "c.event_id = g.launch_id AND c.name = 'hipGraphLaunch' LEFT JOIN graph_matches AS m "
    "ON m.run = g.run AND m.rank = g.rank AND m.event_id = g.event_id ORDER BY g.ts"
)


def recorded_pair(
    folder: Path, change: Callable[[list[Event], list[Event]], list[Event]]
) -> list[tuple[Any, ...]]:
    """Ingest the recorded replay with changed events, together with its unchanged capture.

    Args:
        folder: Folder for the changed trace and the store.
        change: Takes all events and the replayed kernels; returns the events to write.
    """
    document = json.loads(gzip.decompress(REPLAYED.read_bytes()))
    events = document["traceEvents"]
    launches = {e["args"]["correlation"] for e in events if e.get("name") == "hipGraphLaunch"}
    kernels = [
        e for e in events if e.get("cat") == "kernel" and e["args"].get("correlation") in launches
    ]
    document["traceEvents"] = change(events, kernels)
    (folder / "rank0.json").write_text(json.dumps(document), encoding="utf-8")
    with hta_sql.ingest(folder / "rank0.json", folder / "job.store", captures=CAPTURED) as store:
        return store.sql(MATCHES).rows()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    """Ingest the recorded pair unchanged and return its matches."""
    return recorded_pair(tmp_path_factory.mktemp("whole"), lambda events, _: events)


@recorded
def test_all_replayed_kernels_of_a_recorded_pair_are_matched(whole: list[tuple[Any, ...]]) -> None:
    """All 361 kernels in 25 graphs have an operator, shapes, a module and a source line."""
    assert len(whole) == 361
    assert {row[2] for row in whole} == {"position"}
    assert len({row[3] for row in whole}) == 25
    assert all(None not in row for row in whole)


@recorded
def test_lost_kernels_of_a_recorded_pair_leave_the_others_right(
    whole: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    """With 5 % of the kernels lost, 99.9 % of the others are matched, 99.9 % of them correctly."""
    right = {(row[0], row[1]): row[3:5] for row in whole}
    matched = correct = left = 0
    for seed in range(3):
        drawn = random.Random(seed)

        def lose(
            events: list[Event], kernels: list[Event], drawn: random.Random = drawn
        ) -> list[Event]:
            lost = {id(kernel) for kernel in kernels if drawn.random() < 0.05}
            return [event for event in events if id(event) not in lost]

        folder = tmp_path / str(seed)
        folder.mkdir()
        rows = recorded_pair(folder, lose)
        left += len(rows)
        matched += sum(row[2] is not None for row in rows)
        correct += sum(row[2] is not None and right[row[0], row[1]] == row[3:5] for row in rows)
    assert correct >= 0.999 * matched
    assert matched >= 0.999 * left


@recorded
def test_a_renamed_kernel_of_a_recorded_pair_is_the_only_one_unmatched(
    whole: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    """Only the renamed kernel is unmatched, and all others match as before."""

    def rename(events: list[Event], kernels: list[Event]) -> list[Event]:
        kernels[100]["name"] = "renamed"
        return events

    rows = recorded_pair(tmp_path, rename)
    assert [row[0] for row in rows if row[2] is None] == ["renamed"]
    kept = [(row[1], *row[3:5]) for row in rows if row[2]]
    assert kept == [(row[1], *row[3:5]) for row in whole if (row[1], *row[3:5]) in set(kept)]
    assert len(kept) == 360


@recorded
@pytest.mark.parametrize("tokens", [4096, 20000])
def test_a_recorded_capture_of_another_batch_size_matches_nothing(
    tmp_path: Path, tokens: int
) -> None:
    """The capture is too small for more tokens and has different kernels for fewer tokens."""

    def other_size(events: list[Event], kernels: list[Event]) -> list[Event]:
        for kernel in kernels:
            if kernel["name"].startswith("Cijk_"):
                kernel["name"] = kernel["name"].replace("MT256x192x64", "MT128x96x64")
        for event in events:
            if str(event.get("name", "")).startswith("execute_8192_"):
                event["name"] = f"execute_context_9({tokens})_generation_0(0)"
        return events

    assert {row[2] for row in recorded_pair(tmp_path, other_size)} == {None}
