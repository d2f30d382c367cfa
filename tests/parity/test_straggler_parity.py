"""Steps, stragglers and CUPTI counters of the public jobs equal HTA's, if HTA has a result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_sql import TraceStore
from hta_sql.hta.trace_analysis import TraceAnalysis
from tests.parity.jobs import HTA, JOBS

pytestmark = pytest.mark.skipif(not HTA.is_dir(), reason="HTA's numbers are not here")

SEVERAL_RANKS = (
    *("dlrm_8rank_v100", "hta_trace_filter", "lightllm_decode_8rank_h200", "megatron_tp2_v100"),
    *("nanogpt_8rank_h100", "torchrec_a2a_5_qcomm_run0", "torchrec_a2a_5_run0"),
)
ONE_MORE_STEP = {"nanogpt_8rank_h100"}
"""Jobs in which HTA includes the last step, because the device has a copy of it (Q15)."""


def answer(job: str, name: str) -> Any:
    """Return a list that HTA returned, or None if HTA crashed."""
    path: Path = HTA / job / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


@pytest.mark.parametrize("job", [j for j in JOBS if answer(j, "profiler_steps") is not None])
def test_profiler_steps_are_htas(job: str, jobs_store: TraceStore) -> None:
    """The profiler steps equal HTA's, apart from the last step if HTA includes it."""
    want = answer(job, "profiler_steps")
    with TraceAnalysis(store=jobs_store.path, run=job) as analysis:
        steps = analysis.get_profiler_steps()
    assert steps == (want[:-1] if job in ONE_MORE_STEP else want)


@pytest.mark.parametrize("job", SEVERAL_RANKS)
def test_stragglers_are_htas_and_every_job_of_several_ranks_has_an_answer(
    job: str, jobs_store: TraceStore
) -> None:
    """Stragglers equal HTA's on two of seven jobs; HTA raises an error on the others (Q45).

    With last_only, the analysis considers the same kernels as HTA: the last kernel of each step
    that is long on its own rank.
    """
    want = answer(job, "potential_stragglers")
    with TraceAnalysis(store=jobs_store.path, run=job) as analysis:
        found = analysis.get_potential_stragglers()
    assert len(found) == 2
    table = jobs_store.run("potential_stragglers", runs=[job], last_only=True).arrow().to_pylist()
    if job in {"dlrm_8rank_v100", "hta_trace_filter"}:
        assert [row["rank"] for row in table if row["is_candidate"]] == want
    else:
        assert want is None


def test_cupti_counters_are_htas(jobs_store: TraceStore) -> None:
    """Time, counters, launch and operators of all 77 ranges equal HTA's."""
    job = "hta_cupti_profiler"
    hta = pd.read_parquet(HTA / job / "cupti_counters.parquet")
    with TraceAnalysis(store=jobs_store.path, run=job) as analysis:
        (ours,) = analysis.get_cupti_counter_data_with_operators()
    assert len(ours) == 77
    counters = [column for column in hta.columns if column.startswith("smsp__")]
    assert len(counters) == 9
    same = [*counters, "index", "cat", "name", "dur", "top_level_op", "bottom_level_op"]
    for column in [*same, "index_runtime"]:
        assert ours[column].tolist() == hta[column].tolist(), column
    # The file with HTA's frame stores lists as JSON.
    assert ours["op_stack"].tolist() == [json.loads(text) for text in hta["op_stack"]]
    assert (ours["ts"] - ours["ts"][0]).tolist() == (hta["ts"] - hta["ts"][0]).tolist()
    row = ours.iloc[5]
    assert "fft2d_r2c_32x32" in row["name"]
    assert row["smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"] == 86114304
    assert (row["top_level_op"], row["bottom_level_op"]) == (
        "aten::conv2d",
        "aten::cudnn_convolution",
    )
