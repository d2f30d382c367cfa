"""The rows equal those of the TensorBoard profiler plugin, or are correct where it is wrong.

The plugin reads times as doubles of microseconds since the epoch, which have steps of 0.25 µs. It
prints two digits, and whole microseconds in the kernel view.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from hta_sql import TraceStore
from hta_sql.traces.whole_files import trace_events
from tests.parity.jobs import EXACT, SHARED, files_of
from tests.parity.test_key_averages import ingest_cases
from tests.properties.answers_steps import ROLES
from tests.shared_stores import made_once

PLUGIN = SHARED / "expected" / "tb_plugin"

pytestmark = pytest.mark.skipif(not PLUGIN.is_dir(), reason="the plugin's answers are not here")

Row = dict[str, Any]

GPU_JOBS = ("hta_nccl_parser_config", "hta_ns_resolution")
CPU_JOBS = {"ddp_gloo_2_rank0": "ddp_gloo_2", "tinygpt_sched_all_span0": "tinygpt_sched_all_span0"}
"""The plugin's file ─▶ our run."""

EVERYTHING: dict[str, Any] = {"include_last_profiler_step": True}
BY_ALL = {f"by_{key}": True for key in ("operator", "grid", "block", "registers", "shared_memory")}

TICK_US = 0.25


def theirs(job: str) -> Row:
    """Return the plugin's result for a job."""
    answer: Row = json.loads((PLUGIN / f"{job}.json").read_text(encoding="utf-8"))
    return answer


def ours(store: TraceStore, name: str, run: str, **options: Any) -> list[Row]:
    """Return the rows of an analysis over all steps of a run."""
    rows: list[Row] = store.run(name, runs=[run], **EVERYTHING, **options).arrow().to_pylist()
    return rows


def durations_agree(row: Row, cells: list[float], *, total: float, single: float) -> bool:
    """Return whether calls, durations, blocks and occupancy match the plugin's cells.

    ``total`` and ``single`` are the tolerances of a sum and of one duration [µs].
    """
    calls, duration, mean, longest, shortest, blocks, occupancy = cells
    return bool(
        calls == row["kernel_count"]
        and abs(duration - row["sum_ns"] / 1000) <= total
        and abs(mean - row["mean_ns"] / 1000) <= 0.5 + single
        and abs(longest - row["max_ns"] / 1000) <= single
        and abs(shortest - row["min_ns"] / 1000) <= single
        and abs(blocks - row["blocks_per_sm_count"]) <= 0.005001
        and abs(occupancy - with_zeros(row)) <= 0.005001
    )


def with_zeros(row: Row) -> float:
    """Return the mean occupancy of the plugin, in which unknown occupancy counts as 0."""
    return float(row["occupancy_pct"] or 0) * float(row["occupancy_known_pct"]) / 100


@pytest.mark.parametrize(("job", "count"), [(GPU_JOBS[0], 70), (GPU_JOBS[1], 77)])
def test_kernels_are_those_of_the_plugin(job: str, count: int, jobs_store: TraceStore) -> None:
    """Launches, time, blocks and occupancy of every kernel match to the printed digits."""
    found = {row["name"]: row for row in ours(jobs_store, "kernel_table", job)}
    rows = theirs(job)["kernel_table"]["data"]["rows"]
    assert len(rows) == len(found) == count
    for name, _, *cells in rows:
        assert durations_agree(found[name], cells, total=0.5001, single=0.5001), name


@pytest.mark.parametrize(
    ("job", "count", "differing"), [(GPU_JOBS[0], 217, []), (GPU_JOBS[1], 205, ["aten::mul"])]
)
def test_kernels_by_operator_and_size_are_those_of_the_plugin(
    job: str, count: int, differing: list[str], jobs_store: TraceStore
) -> None:
    """Rows by operator, grid, block, registers and shared memory match.

    The plugin loses one launch of the second job: with its doubles, the operator ends after the
    enclosing one.
    """
    keys = ("name", "op_name", "grid", "block", "registers_per_thread_count", "shared_memory_bytes")
    found = {
        tuple("N/A" if row[key] is None else str(row[key]) for key in keys): row
        for row in ours(jobs_store, "kernel_table", job, **BY_ALL)
    }
    rows = theirs(job)["kernel_op_table"]["data"]["rows"]
    assert {tuple(row[:6]) for row in rows} == found.keys()
    assert len(rows) == count
    others = [
        row[1]
        for row in rows
        if not durations_agree(
            found[tuple(row[:6])], row[8:], total=TICK_US * row[8], single=TICK_US + 0.001
        )
    ]
    assert others == differing


@pytest.mark.parametrize("job", GPU_JOBS)
def test_gpus_are_those_of_the_plugin(job: str, jobs_store: TraceStore) -> None:
    """Model, memory, capability, utilization, SM efficiency and occupancy match.

    The plugin divides by the time from the first step to the end of the last step. We exclude the
    time between steps, which is 0.01 % of the total.
    """
    (found,) = ours(jobs_store, "gpu_summary", job)
    said = {line["title"]: line["value"] for line in theirs(job)["gpu_summary"]}
    assert said["Name"] == found["device_name"]
    assert said["Memory"] == f"{found['capacity_bytes'] / 1024**3:.2f} GB"
    assert said["Compute Capability"] == found["compute_capability"]
    for title, number in (
        ("GPU Utilization", found["utilization_pct"]),
        ("Est. SM Efficiency", found["sm_efficiency_pct"]),
        ("Est. Achieved Occupancy", with_zeros(found)),
    ):
        assert abs(float(said[title].removesuffix(" %")) - number) <= 0.0151, title
    assert found["sm_known_pct"] == 100


def test_tensor_cores_are_told_from_todays_names(jobs_store: TraceStore) -> None:
    """The plugin finds 16.4 % tensor core use, and the correct value is 23.8 %.

    The plugin misses convolutions whose names contain tensor16x8x8 or TensorOp.
    """
    job = GPU_JOBS[0]
    found = ours(jobs_store, "kernel_table", job)
    listed = {name: said == "Yes" for name, said, *_ in theirs(job)["kernel_table"]["data"]["rows"]}
    missed = {row["name"] for row in found if row["uses_tensor_cores"] and not listed[row["name"]]}
    assert all("tensor16x8x8" in name or "TensorOp" in name for name in missed)
    assert len(missed) == 12
    assert all(row["uses_tensor_cores"] for row in found if listed[row["name"]])
    whole = sum(row["sum_ns"] for row in found)
    by_their_list = sum(row["sum_ns"] for row in found if listed[row["name"]])
    assert theirs(job)["gpu_summary"][-1]["value"] == f"{100 * by_their_list / whole:.2f} %"
    (gpu,) = ours(jobs_store, "gpu_summary", job)
    true = by_their_list + sum(row["sum_ns"] for row in found if row["name"] in missed)
    assert gpu["tensor_core_pct"] == pytest.approx(100 * true / whole)
    assert gpu["tensor_core_pct"] == pytest.approx(23.756, abs=0.001)
    assert gpu["tensor_core_unknown_pct"] < 0.2


BY_ITS_RULES = """
WITH
    windows AS (FROM lib.device_steps([$job], NULL, NULL, true)),
    device AS (
        SELECT run, rank, CASE kind WHEN 'kernel' THEN 1 WHEN 'memcpy' THEN 2 ELSE 3 END AS layer, ts, dur
        FROM gpu_ops
        WHERE run = $job AND kind <> 'sync'
    ),
    collectives AS (
        SELECT run, rank, 4, ts, dur
        FROM annotations
        WHERE run = $job AND name IN ('nccl:broadcast', 'nccl:reduce', 'nccl:all_reduce')
    ),
    calls AS (
        SELECT run, rank, 5, ts, dur FROM runtime_calls WHERE run = $job
    ),
    operators AS (
        SELECT run, rank, 7, ts, dur FROM cpu_ops WHERE run = $job
        UNION ALL
        SELECT run, rank, 7, ts, dur
        FROM annotations
        WHERE run = $job AND NOT on_gpu AND NOT starts_with(name, 'ProfilerStep#')
    ),
    spans AS (
        FROM device UNION ALL FROM collectives UNION ALL FROM calls UNION ALL FROM operators
    )
SELECT p.step, p.layer, p.ns FROM lib.layers_in_steps('windows', 'spans') AS p
"""
"""Step parts by the plugin's rules: NCCL's annotations on the host count as communication.

NCCL's kernels count as kernels.
"""


@pytest.mark.parametrize("job", GPU_JOBS)
def test_steps_are_those_of_the_plugin_by_its_own_rules(job: str, jobs_store: TraceStore) -> None:
    """With the plugin's definition of communication, the steps and their roles match."""
    rows = jobs_store.sql(BY_ITS_RULES, {"job": job}).rows()
    by_role: Counter[tuple[int, int]] = Counter({(step, layer): ns for step, layer, ns in rows})
    lengths = {row["step"]: row["step_ns"] for row in ours(jobs_store, "step_breakdown", job)}
    said = theirs(job)
    assert [str(step) for step in lengths] == said["steps"]
    for step, costs in zip(lengths, said["steps_costs"], strict=True):
        assert abs(costs[8] - lengths[step] / 1000) <= TICK_US
        for layer, cost in enumerate(costs[:7], 1):
            # Thousands of starts and ends are rounded to doubles.
            assert abs(cost - by_role[step, layer] / 1000) <= 8, (step, ROLES[layer - 1])


def test_communication_is_what_nccl_runs(jobs_store: TraceStore) -> None:
    """The exposed time of NCCL kernels equals a brute-force computation."""
    job = GPU_JOBS[0]
    classes = json.loads((EXACT / f"{job}.json").read_text())["ranks"]["0"]["all"]["class_sets"]
    sums: Counter[str] = Counter()
    for row in ours(jobs_store, "step_breakdown", job):
        sums.update({role: row[f"{role}_ns"] for role in ROLES})
        assert sum(row[f"{role}_ns"] for role in ROLES) == row["step_ns"]
    assert sums["communication"] == classes["communication"] == 39_190_669
    computing = sum(ns for name, ns in classes.items() if name.startswith("computation"))
    assert sums["kernel"] == computing
    assert sums["memcpy"] + sums["memset"] == classes["memory"] + classes["communication+memory"]
    said = [sum(costs[3] for costs in theirs(job)["steps_costs"])]
    assert said == [pytest.approx(1040.3, abs=0.1)]


def test_what_the_driver_launches_has_its_operator(jobs_store: TraceStore) -> None:
    """The operator of each kernel matches its external id, even for launches by the driver API."""
    job = "bert_small_h100"
    (path,) = files_of(job)
    events = list(trace_events(str(path)))
    names = {
        event["args"]["External id"]: event["name"]
        for event in events
        if event.get("cat") == "cpu_op"
    }
    expected: Counter[str] = Counter()
    for event in events:
        if event.get("cat") == "kernel":
            expected[names[event["args"]["External id"]]] += round(event["dur"] * 1000)
    found: Counter[str] = Counter()
    for row in ours(jobs_store, "kernel_table", job, by_operator=True):
        found[row["op_name"]] += row["sum_ns"]
    assert found == expected
    assert found["aten::addmm"] == 197_598


@pytest.fixture(scope="module")
def cpu_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    """Ingest the jobs that have no device."""
    with TraceStore(made_once(tmp_path_factory, "key_averages", ingest_cases)) as opened:
        yield opened


@pytest.mark.parametrize("job", CPU_JOBS)
def test_steps_without_a_device_are_those_of_the_plugin(job: str, cpu_store: TraceStore) -> None:
    """The steps of jobs without a device match the plugin's.

    Gloo operations count as communication. The annotation ## data ## counts as data loading and not
    as an operator.
    """
    rows = [r for r in ours(cpu_store, "step_breakdown", CPU_JOBS[job]) if r["rank"] == 0]
    said = theirs(job)
    names = [column["name"] for column in said["overview"]["steps"]["columns"] if "name" in column]
    for row, line in zip(rows, said["overview"]["steps"]["rows"], strict=True):
        values = dict(
            zip(names, (cell for cell in line if not str(cell).startswith("<")), strict=True)
        )
        assert str(row["step"]) == values["Step"]
        communication = values.get("Communication", 0)
        assert row["communication_ns"] / 1000 == pytest.approx(communication, abs=TICK_US)
        assert row["other_ns"] / 1000 == pytest.approx(values["Other"], abs=TICK_US)
        host = values["DataLoader"] + values["CPU Exec"]
        assert (row["data_loader_ns"] + row["cpu_exec_ns"]) / 1000 == pytest.approx(
            host, abs=TICK_US
        )
        assert row["data_loader_ns"] / 1000 >= values["DataLoader"] - TICK_US
