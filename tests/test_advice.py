"""Tests that each advice rule applies to its planted problem, but not just below its threshold."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hta_sql
from hta_sql import TraceStore
from hta_sql.authoring.golden_messages import render
from hta_sql.cli import main
from hta_sql.library.sql_files import sql_root
from hta_sql.synthetic import JobSpec, write_job
from tests.advice_steps import (
    ELEMENTWISE,
    STEP_US,
    Step,
    allocated,
    annotated,
    attention,
    collected,
    communicating,
    convolved,
    data_parallel,
    delayed,
    filled,
    gap,
    gaps,
    gathered,
    hosted,
    normalized,
    products,
    queued,
    running,
    selected,
    shapes,
    single_precision,
    small,
    synchronized,
    transfer,
    unlinked,
)
from tests.pinned.answers import ADVICE, changes, digests_of, pinned

PARTS = {"idle", "compute", "communication", "memory", "lateness", "mixed"}
"""Parts of step time that rules concern; see sql/tables/advice_rules.sql."""

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
INDEXING = "void at::native::index_elementwise_kernel<128, 4, gpu_index_kernel>"
GEMM = "cutlass_80_tensorop_s16816gemm_f16_64x64_64x6_tn_align"
CASES: dict[str, tuple[Step, Step]] = {
    "data_loading": (gap(6_000, "user_annotation", LOADER), gap(4_000, "user_annotation", LOADER)),
    "synchronization": (synchronized(3_000), synchronized(1_000)),
    "launch_bound": (gaps(100, 120), gaps(100, 80)),
    "host_work": (gap(6_000, "cpu_op", "aten::unique"), gap(4_000, "cpu_op", "aten::unique")),
    "driver_memory": (
        gap(1_500, "cuda_runtime", "cudaMalloc"),
        gap(500, "cuda_runtime", "cudaMalloc"),
    ),
    "module_loading": (
        gap(1_500, "cuda_driver", "cuModuleLoadData"),
        gap(500, "cuda_driver", "cuModuleLoadData"),
    ),
    "pageable_copies": (
        running("Memcpy HtoD (Pageable -> Device)", 1_500),
        running("Memcpy HtoD (Pinned -> Device)", 1_500),
    ),
    "exposed_copies": (
        running("Memcpy DtoH (Device -> Pinned)", 6_000),
        running("Memcpy DtoH (Device -> Pinned)", 4_000),
    ),
    "unfused_attention": (attention(2), attention(1)),
    "misaligned_products": (running(f"{GEMM}1", 2_000), running(f"{GEMM}16", 2_000)),
    "single_precision": (
        single_precision("ampere_sgemm_128x64_tn", 8),
        single_precision("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x64", 8),
    ),
    "small_kernels": (small(6, 1_000), small(12, 500)),
    "zeroed_gradients": (
        annotated("Optimizer.zero_grad#SGD.zero_grad", ELEMENTWISE, 300, 2),
        annotated("Optimizer.zero_grad#SGD.zero_grad", ELEMENTWISE, 200, 2),
    ),
    "exposed_transfer": (transfer(hidden=False), transfer(hidden=True)),
    "unfused_optimizer": (
        annotated("Optimizer.step#Adam.step", ELEMENTWISE, 30, 101),
        annotated("Optimizer.step#Adam.step", ELEMENTWISE, 30, 100),
    ),
    "elementwise_kernels": (running(ELEMENTWISE, 12_000), running(ELEMENTWISE, 8_000)),
    "memory_traffic": (running(INDEXING, 6_000), running(INDEXING, 4_000)),
    "slow_products": (products(1_000, 12, 4_096, 4_096), products(1_000, 8, 4_096, 4_096)),
    "memory_bound_products": (products(100, 360, 1, 8_192), products(100, 240, 1, 8_192)),
    "collective_waits": (gathered(300, 24, 128), gathered(300, 16, 128)),
    "queued_gaps": (queued(12_000), queued(8_000)),
    "unlinked_gaps": (unlinked(12_000), unlinked(8_000)),
    "data_parallel": (data_parallel(2), data_parallel(1)),
    "gloo_for_gpus": (communicating("gloo"), communicating("nccl")),
    "memory_near_limit": (allocated(91), allocated(90)),
    "garbage_collection": (collected(1_100), collected(900)),
    "indexing_loops": (selected(10), selected(9)),
    "filled_copies": (filled("aten::zeros"), filled("aten::zeros", "[[8, 9], []]")),
    "dynamic_shapes": (shapes([7, 8, 9]), shapes([7, 8, 8])),
    "sync_batch_norm": (normalized(3_000), normalized(1_900)),
    "conv_bias": (convolved(16), convolved(32)),
    "data_loading-cpu": (hosted(LOADER, 5_100), hosted(LOADER, 4_900)),
    "zeroed_gradients-cpu": (
        hosted("Optimizer.zero_grad#SGD.zero_grad", 600, op="aten::zero_"),
        hosted("Optimizer.zero_grad#SGD.zero_grad", 400, op="aten::zero_"),
    ),
    "unfused_optimizer-cpu": (
        hosted("Optimizer.step#Adam.step", 30, 101),
        hosted("Optimizer.step#Adam.step", 30, 100),
    ),
}
"""Maps a rule to a step to which it applies and a step to which it does not.

The suffix -cpu means a job without a device.
"""


def table_of_rules() -> list[dict[str, str]]:
    """Return the rows of the table advice_rules."""
    with (sql_root() / "tables" / "advice_rules.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_steps(folder: Path, rules: Iterable[str] = CASES) -> dict[str, dict[int, str]]:
    """Write a trace for each of a rule's two steps; return run ─▶ rank ─▶ path."""
    runs = {}
    for rule in rules:
        for run, step in zip((rule, f"{rule}-silent"), CASES[rule], strict=True):
            trace = folder / f"{run}.json"
            trace.write_text(json.dumps(step.trace()), encoding="utf-8")
            runs[run] = {0: str(trace)}
    return runs


def store_of(rules: Iterable[str], folder: Path) -> Path:
    """Ingest two runs for each rule into a store."""
    for run, traces in write_steps(folder, rules).items():
        hta_sql.ingest_shard(traces, folder / "s", run=run, jobs=1, shard=(1, 1))
    hta_sql.publish(folder / "s").close()
    return folder / "s"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with two runs for each rule."""
    return store_of(CASES, tmp_path_factory.mktemp("advice"))


@pytest.fixture(scope="module")
def store(path: Path) -> Iterator[TraceStore]:
    """Open the store once, because the first query materializes its derived tables."""
    with hta_sql.open(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def answer(store: TraceStore) -> list[dict[str, Any]]:
    """Return the advice for all runs."""
    return store.run("advice").records()


@pytest.fixture(scope="module")
def rows(answer: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the advice rows by run and rule."""
    runs = [run for rule in CASES for run in (rule, f"{rule}-silent")]
    found: dict[str, dict[str, dict[str, Any]]] = {run: {} for run in runs}
    for row in answer:
        found[row["run"]][row["rule"]] = row
    return found


def test_a_gap_is_counted_once(store: TraceStore, answer: list[dict[str, Any]]) -> None:
    """An idle gap counts once, however many host operators run during it."""
    parts = store.sql("FROM lib.idle_parts(NULL, NULL, NULL, false)").records()
    about = ("launch_bound", "synchronization", "host_work", "driver_memory", "module_loading")
    counted = {row["run"]: row["event_count"] for row in answer if row["rule"] in about}
    waits = Counter(part["run"] for part in parts if part["waits_for"] == "host")
    assert counted
    assert {run: count for run, count in counted.items() if count > waits[run]} == {}


def test_no_number_of_it_changes_unseen(answer: list[dict[str, Any]]) -> None:
    """The advice matches its pinned values.

    After an intended change, run python -m tests.pinned.answers, and state the change and its
    reason.
    """
    found = digests_of([*answer[0]], [tuple(row.values()) for row in answer])
    assert changes(found, pinned(ADVICE)["FROM advice_v1()"]) == []


@pytest.mark.parametrize("run", CASES)
def test_a_rule_speaks_where_it_should(run: str, rows: dict[str, dict[str, Any]]) -> None:
    """Only the planted rule applies, and its saving is at most the affected time."""
    ((rule, row),) = ((rule, row) for rule, row in rows[run].items() if rule != "largest_loss")
    assert rule == run.removesuffix("-cpu")
    assert row["position"] == row["rank_count"] == 1
    assert row["is_worst"]
    assert row["saved_ns"] is None or 0 < row["saved_ns"] <= row["affected_ns"]
    assert row["title"]
    assert row["remedy"].endswith(".")


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_is_silent_below(rule: str, rows: dict[str, dict[str, Any]]) -> None:
    """Just below the threshold of a rule, the advice names only the largest loss."""
    assert {*rows[f"{rule}-silent"]} == {"largest_loss"}


@pytest.mark.parametrize(
    "run",
    CASES,
)
def test_the_evidence_can_be_asked_for(
    run: str, store: TraceStore, rows: dict[str, dict[str, Any]]
) -> None:
    """The evidence query of each finding returns rows, and its suggested next analysis runs."""
    row = rows[run][run.removesuffix("-cpu")]
    assert len(store.sql(row["evidence_sql"]))
    store.run(row["next_analysis"], runs=[run])


CEILINGS_US = {
    "data_loading": 6_000,
    "synchronization": 3_001,  # 3 ms in the call, and the next launch; nothing else is recorded
    "driver_memory": 1_500,
    "pageable_copies": 1_500,
    "unfused_attention": 4_002,
    "elementwise_kernels": 12_000,
    "memory_traffic": 6_000,
    "collective_waits": 5_999.952,
    "queued_gaps": 12_001,
    "unlinked_gaps": 12_000,
    "single_precision": 7_000,
    "small_kernels": 6_000,
    "exposed_transfer": 6_000,
    "unfused_optimizer": 3_030,
    "memory_near_limit": None,
    "garbage_collection": 1_100,
    "indexing_loops": 1_400,
    "filled_copies": 1_201,
    "dynamic_shapes": None,
    "sync_batch_norm": 3_000,
    "conv_bias": 600,
    "data_loading-cpu": 5_101,
    "zeroed_gradients-cpu": 601,
    "unfused_optimizer-cpu": 3_031,
}


@pytest.mark.parametrize("run", CEILINGS_US)
def test_what_can_be_saved(run: str, rows: dict[str, dict[str, Any]]) -> None:
    """The possible saving is exact to the nanosecond.

    Products in single precision would take an eighth of their time.
    """
    row, us = rows[run][run.removesuffix("-cpu")], CEILINGS_US[run]
    assert row["saved_ns"] == (None if us is None else us * 1_000)
    assert row["saved_pct"] == (None if us is None else pytest.approx(us / 1_000))


def test_the_sentence_about_short_kernels_has_the_threshold_of_the_table(
    rows: dict[str, dict[str, Any]],
) -> None:
    """The threshold stands in advice_rules only."""
    (short_ns,) = (int(row["short_ns"]) for row in table_of_rules() if row["short_ns"])
    assert (
        f"shorter than {short_ns / 1e3:.1f} µs" in rows["small_kernels"]["small_kernels"]["message"]
    )


def test_the_command_says_it_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The output states problem, saving, remedy and next command, or that no rule applies."""
    path = store_of(["single_precision"], tmp_path)
    assert main(["advice", str(path), "--runs", "single_precision"]) == 0
    told = capsys.readouterr().out
    title = render("advice.single_precision", column="title")
    remedy = render("advice.single_precision", column="remedy")
    assert told.startswith(f"single_precision: 1 recommendation\n\n1. {title}: saves 7.000 ms")
    assert f"Try: {remedy}" in " ".join(told.split())
    assert "See: hta-sql run" in told
    assert main(["advice", str(path), "--runs", "single_precision-silent"]) == 0
    told = capsys.readouterr().out
    title = render("advice.largest_loss_compute", column="title")
    assert told.startswith(f"single_precision-silent: 0 recommendations\n\n{title} (rank 0)\n")
    assert "No recommendation saves 3 % or more. Computation takes" in told
    assert main(["advice", str(path), "--runs", "single_precision", "--min-pct", "99"]) == 0
    assert "No recommendations: none saves 99 % of the step time" in capsys.readouterr().err


def advised(step: Step, folder: Path) -> list[dict[str, Any]]:
    """Return the advice for a step."""
    trace = folder / "trace.json"
    trace.write_text(json.dumps(step.trace()), encoding="utf-8")
    with hta_sql.ingest(trace, folder / "store") as store:
        return store.run("advice").records()


def test_small_losses_of_a_late_host_add_up(tmp_path: Path) -> None:
    """A late host is reported if several losses below their thresholds exceed a threshold together.

    Short gaps are 9 % of the step, and an operator is 4 %.
    """
    found = {row["rule"]: row for row in advised(delayed(75, 4_000, 1_000), tmp_path)}
    assert {"launch_bound", "host_work"} <= found.keys()
    assert found["launch_bound"]["saved_pct"] < 10
    assert found["host_work"]["saved_pct"] < 5


def running_on(step: Step, name: str) -> Step:
    """Add an operation of 300 ms that runs after the step that launched it."""
    step.device(name, STEP_US, 4 * STEP_US, launch=50)
    return step


@pytest.mark.parametrize(
    ("step", "rule", "share"),
    [
        (
            # 8 and 300 ms, of which 8 ms are in the step, besides 92 ms of other kernels.
            running_on(single_precision("ampere_sgemm_128x64_tn", 8), "ampere_sgemm_128x64_tn"),
            "single_precision",
            "77.0",
        ),
        (
            running_on(
                running("Memcpy HtoD (Pageable -> Device)", 3_000),
                "Memcpy HtoD (Pageable -> Device)",
            ),
            "pageable_copies",
            "75.8",  # 303 of 400 ms
        ),
    ],
)
def test_work_that_exceeds_its_steps_is_a_share_of_gpu_time(
    step: Step, rule: str, share: str, tmp_path: Path
) -> None:
    """Operations that take longer than all steps are stated as a share of GPU time."""
    (row,) = (row for row in advised(step, tmp_path) if row["rule"] == rule)
    assert f"{share} % of GPU time, which exceeds step time" in row["message"]
    assert row["saved_pct"] <= 100


def test_a_large_message_is_transferred_not_waited_for(tmp_path: Path) -> None:
    """A slow all-gather of 600 MB counts as transfer rather than as waiting.

    Confidence is medium, because the transfer time is estimated from the message size.
    """
    rows = advised(gathered(12_000, 1, 600_000_000), tmp_path)
    (row,) = (row for row in rows if row["rule"] == "exposed_transfer")
    assert row["confidence"] == "medium"
    assert row["saved_ns"] == 11_716_667
    assert "from message sizes" in row["message"]


def test_one_product_is_claimed_by_one_rule(tmp_path: Path) -> None:
    """Misaligned matrix products of an attention trigger one rule, so their time counts once."""
    step = running("void softmax_warp_forward<float>", 4_000, op="aten::_softmax")
    for number in range(2):
        ts = 50_000 + number * 3_000
        step.device(f"{GEMM}1", ts, ts + 3_000, launch=9, op="aten::bmm")
    (row,) = advised(step, tmp_path)
    assert row["rule"] == "unfused_attention"
    assert row["saved_ns"] == row["combined_saved_ns"] == 10_000_000


def test_the_combined_saving_counts_time_once(answer: list[dict[str, Any]]) -> None:
    """The combined saving of a rank is between its largest single saving and the sum of all."""
    ranks: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in answer:
        ranks.setdefault((row["run"], row["rank"]), []).append(row)
    assert ranks
    for rows in ranks.values():
        ceilings = [row["saved_ns"] or 0 for row in rows if row["rule"] != "largest_loss"]
        combined = rows[0]["combined_saved_ns"] or 0
        assert max(ceilings, default=0) <= combined <= sum(ceilings)


def test_each_rule_has_a_part_and_a_message(answer: list[dict[str, Any]]) -> None:
    """The table advice_rules lists exactly the rules of the library, each with one part.

    A rule without a part would be added to the combined saving as if it shared no time with others.
    """
    rows = table_of_rules()
    rules = {row["rule"] for row in rows}
    assert rules >= {row["rule"] for row in answer}
    parts = {(row["rule"], row["part"], row["precedence"]) for row in rows}
    assert len(parts) == len(rules)
    assert {part for _, part, _ in parts} == PARTS
    folder = sql_root() / "lib" / "advice"
    own = {path.stem.removeprefix("_advice_") for path in folder.glob("_advice_*.sql")}
    assert {row["rule"] for row in rows if not row["code"]} <= own
    assert not {row["rule"] for row in rows if row["code"]} & (own - {"unfused_optimizer"})
    with (sql_root() / "messages" / "advice.csv").open(encoding="utf-8", newline="") as file:
        codes = {row["code"].removeprefix("advice.") for row in csv.DictReader(file)}
    own_codes = {
        code: [r for r in rules if code == r or code.startswith(f"{r}_")] for code in codes
    }
    assert all(own_codes.values()), own_codes
    assert rules == {rule for of_code in own_codes.values() for rule in of_code}


def test_each_row_of_a_rule_has_a_threshold_and_a_reason() -> None:
    """A row with a message has a kind, a threshold, a confidence, a next analysis and a reason."""
    for row in table_of_rules():
        if row["code"]:
            assert row["min_affected_pct"] or row["min_saved_pct"], row
            assert all(row[name] for name in ("kind", "confidence", "next_analysis", "about")), row


def test_a_pattern_is_searched_in_single_lines(store: TraceStore) -> None:
    """A pattern finds the lines that regexp_matches finds, anchors included."""
    lines = ["void sgemm_nn", "a_sgemm", "xsgemm", "gemm_align1", "gemm_align16", "align2"]
    for pattern in ("(?i)(^|_)[sf]gemm", "(?i)gemm.*_align[12]($|[^0-9])", "align2$"):
        query = """
            SELECT
                lib.matching_lines(array_to_string($lines, chr(10)), $pattern),
                list_filter($lines, lambda line: regexp_matches(line, $pattern))
        """
        ((found, wanted),) = [
            tuple(row.values())
            for row in store.sql(query, {"lines": lines, "pattern": pattern}).records()
        ]
        assert found == wanted
        assert found


def test_a_late_rank_and_what_makes_it_late_count_once(tmp_path: Path) -> None:
    """Two rules report the slow data loading of rank 2; the combined saving counts it once."""
    write_job(tmp_path / "traces", JobSpec(ranks=4, stragglers={2: 3_000_000}))
    with hta_sql.ingest(tmp_path / "traces", tmp_path / "store") as store:
        rows = store.run("advice", ranks=[2]).arrow().to_pylist()
    ceilings = {row["rule"]: row["saved_ns"] or 0 for row in rows}
    other = sum(ceilings.values()) - ceilings["data_loading"] - ceilings["late_rank"]
    once = max(ceilings["data_loading"], ceilings["late_rank"]) + other
    assert once <= rows[0]["combined_saved_ns"] < 1.05 * once


def test_a_rank_that_is_late_only_over_all_steps_is_not_late_in_none(store: TraceStore) -> None:
    """A straggler whose single steps are all within the noise is described by their sum."""
    query = """
        WITH
            spans AS (SELECT 'job' AS run, 1 AS rank, 300 AS recorded_ns),
            verdicts AS (
                SELECT
                    'job' AS run, 1 AS rank, 'straggler' AS verdict, true AS is_late, unnest([0, 2]) AS late_step_count,
                    3 AS step_count, 30 AS late_ns, 60 AS most_cost_ns, 300 AS window_ns
            ),
            causes AS (SELECT 'job' AS run, 1 AS rank, 'host-bound' AS cause, 'save()' AS subject, NULL AS kernel)
        SELECT lib.message_text(m.message, a.message.fields)
        FROM lib._advice_late_rank('spans', 'verdicts', 'causes', NULL) AS a
        JOIN messages AS m ON m.code = a.message.code
        ORDER BY a.event_count
    """
    texts = [text for (text,) in store.sql(query).rows()]
    late, cause = (
        "Straggler: rank 1 has more work than its peers",
        "Cause: host-bound, mostly in save().",
    )
    assert texts == [
        f"{late} over 3 steps together, and they wait for it. {cause}",
        f"{late} in 2 of 3 steps, and they wait for it. {cause}",
    ]
