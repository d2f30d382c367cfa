"""Tests that follow PyTorch's tutorial "Profiling your PyTorch module".

The tutorial finds the slowest operator of a module, fixes it, and compares the versions. The three
versions were recorded with torch 2.13 on the CPU (traces/recorded/masked_linear/record.py). The
first copies a mask of doubles for NumPy, the second a mask of floats, and the third calls
torch.nonzero instead of NumPy. Two of the three steps count. docs/notebooks/operator_story.ipynb
has the same analysis.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from tests.shared_stores import ingest_only, made_once

TRACES = Path(__file__).parent / "traces" / "recorded" / "masked_linear"
VERSIONS = ("version1", "version2", "version3")
FRAME = "record.py(45): indices"
FRAME_IN_TORCH = "record.py(54): indices"

STEPS = 2
ELEMENTS = 128**3
FOUND_BYTES = (ELEMENTS // 4 - 1) * 3 * 8
MASK_BYTES = {"version1": 8 * ELEMENTS, "version2": 4 * ELEMENTS}


def make(path: Path) -> None:
    """Ingest one run per version."""
    for version in VERSIONS:
        ingest_only(str(TRACES / f"{version}.json.gz"), path, run=version)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """Open a store with the three versions."""
    with hta_sql.open(made_once(tmp_path_factory, "operator_story", make)) as opened:
        yield opened


def first(store: hta_sql.TraceStore, analysis: str, *, run: str, **given: Any) -> dict[str, Any]:
    """Return the first row of an analysis, which has the answer to the test's question."""
    return store.run(analysis, runs=[run], **given).records()[0]


@pytest.mark.parametrize(
    ("run", "operator", "self_ns"),
    [
        ("version1", "aten::copy_", 23_560_040),
        ("version2", "aten::copy_", 22_249_200),
        ("version3", "aten::nonzero", 30_792_766),
    ],
)
def test_which_operator_takes_most_time(
    store: hta_sql.TraceStore, run: str, operator: str, self_ns: int
) -> None:
    """The copies take the most time; in the third version, the search does."""
    row = first(store, "operator_table", run=run)
    assert (row["name"], row["host_self_ns"]) == (operator, self_ns)


@pytest.mark.parametrize(
    ("run", "frame", "total_ns"),
    [
        ("version1", FRAME, 70_615_508),
        ("version2", FRAME, 61_870_385),
        ("version3", FRAME_IN_TORCH, 34_709_623),
    ],
)
def test_in_which_line_of_mine(
    store: hta_sql.TraceStore, run: str, frame: str, total_ns: int
) -> None:
    """The time of the function that searches the mask includes PyTorch and NumPy calls."""
    hidden = r"^<built-in|^nn\.Module: |^torch/|^numpy/"
    row = first(store, "source_lines", run=run, hidden=hidden)
    assert (row["frame"], row["host_self_ns"], row["call_count"]) == (frame, total_ns, STEPS)


def test_by_stack_the_operator_names_the_line(store: hta_sql.TraceStore) -> None:
    """The stack shows the line that makes the four copies of large tensors."""
    row = first(store, "operator_table", run="version1", stack_frames=2)
    assert (row["name"], row["call_count"], row["host_self_ns"]) == ("aten::copy_", 4, 23_550_555)
    assert row["stack"].endswith(f'"{FRAME}"]')


def test_frames_around_a_call_are_those_recorded(store: hta_sql.TraceStore) -> None:
    """The innermost frames of the Python tracer equal the five that torch recorded per operator."""
    query = """
        SELECT count(*), count_if(f.frames = lib.counted_stack(c.call_stack)[:5])
        FROM cpu_ops AS c
        JOIN lib._innermost_frames(NULL, NULL, 5) AS f
            ON f.run = c.run AND f.rank = c.rank AND f.stack_id = c.stack_id
    """
    ((operators, same),) = store.sql(query).rows()
    assert (operators, same) == (324, 324)


def test_of_what_shapes(store: hta_sql.TraceStore) -> None:
    """The mask has dtype double, and the number of positions found is right."""
    rows = store.run("operator_unique_args", runs=["version1"]).records()
    copies = {row["input_shapes"]: row["input_types"] for row in rows if row["name"] == "aten::to"}
    assert copies["[[128,128,128],[],[],[],[],[],[],[]]"].startswith('["double"')
    assert f"[[{ELEMENTS // 4 - 1},3],[],[],[],[],[],[],[]]" in copies


@pytest.mark.parametrize(
    ("run", "operator", "each_step"),
    [
        ("version1", "aten::empty_strided", MASK_BYTES["version1"] + FOUND_BYTES),
        ("version2", "aten::empty_strided", MASK_BYTES["version2"] + FOUND_BYTES),
        ("version3", "aten::nonzero", FOUND_BYTES),
    ],
)
def test_which_operator_takes_most_memory(
    store: hta_sql.TraceStore, run: str, operator: str, each_step: int
) -> None:
    """Copies allocate the mask and the positions; the last version only allocates positions."""
    row = first(store, "memory_by_operator", run=run)
    small = 4 * STEPS if operator == "aten::empty_strided" else 0
    assert row["operator_name"] == operator
    assert row["self_allocated_bytes"] == STEPS * each_step + small


@pytest.mark.parametrize(
    ("run", "operator", "frame", "held"),
    [
        ("version1", "aten::_to_copy", FRAME, MASK_BYTES["version1"] + 2 * FOUND_BYTES),
        ("version2", "aten::_to_copy", FRAME, MASK_BYTES["version2"] + 2 * FOUND_BYTES),
        ("version3", "aten::nonzero", FRAME_IN_TORCH, 2 * FOUND_BYTES),
    ],
)
def test_who_holds_the_memory_at_the_peak(
    store: hta_sql.TraceStore, run: str, operator: str, frame: str, held: int
) -> None:
    """At the peak, a step's mask and positions are live, and so are the previous positions."""
    row = first(store, "live_at_peak", run=run)
    assert (row["operator_name"], row["frame"], row["bytes"]) == (operator, frame, held)


def test_it_is_mended(store: hta_sql.TraceStore) -> None:
    """Step time and peak memory decrease from version to version."""
    rows = store.run("operator_table").records()
    times = [row["host_total_ns"] for row in rows if row["name"] == "ProfilerStep*"]
    peaks = [first(store, "memory_peaks", run=run)["peak_allocated_bytes"] for run in VERSIONS]
    assert times == [71_887_400, 63_200_105, 35_893_445]
    assert peaks == [41_951_184, 33_562_576, 27_271_120]
    # The second version saves half of the mask. The third saves the rest, but needs one byte per
    # element to compare.
    assert peaks[0] - peaks[1] == MASK_BYTES["version2"]
    assert peaks[1] - peaks[2] == MASK_BYTES["version2"] - ELEMENTS


@pytest.mark.parametrize(
    ("test", "change", "label_ns", "copies_ns"),
    [
        ("version2", "unchanged", (71_114_572, 62_411_277), (23_560_040, 22_249_200)),
        ("version3", "decreased", (71_114_572, 35_171_652), (23_560_040, 13_847)),
    ],
)
def test_the_versions_are_compared(
    store: hta_sql.TraceStore,
    test: str,
    change: str,
    label_ns: tuple[int, int],
    copies_ns: tuple[int, int],
) -> None:
    """The versions are compared by the enclosing annotation and by operator."""
    rows = {row["name"]: row for row in store.run("trace_diff", runs=["version1", test]).records()}
    label, copies = rows["MASK INDICES"], rows["aten::copy_"]
    assert (label["control_sum_ns"], label["test_sum_ns"]) == label_ns
    assert (copies["control_sum_ns"], copies["test_sum_ns"]) == copies_ns
    assert copies["count_change"] == change


def test_as_torch_counts_it(store: hta_sql.TraceStore) -> None:
    """Grouped by stack over all three steps, as in the tutorial, the copies come first."""
    rows = store.run(
        "operator_table",
        runs=["version1"],
        stack_frames=5,
        include_last_profiler_step=True,
        like_torch=True,
    ).records()
    row = max(
        (row for row in rows if row["name"].startswith("aten::")),
        key=lambda row: row["host_self_ns"],
    )
    assert (row["name"], row["call_count"]) == ("aten::copy_", 6)
    assert json.loads(row["stack"])[1] == FRAME
