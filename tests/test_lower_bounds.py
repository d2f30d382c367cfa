"""Tests that MFU is shown as a lower bound, in terminals and reports, if kernels are unknown."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import hta_sql
from hta_sql.library.objects import load_library
from hta_sql.report.tables import table_markup
from hta_sql.results.display import TableRows, text_columns
from hta_sql.synthetic import JobSpec, write_job

COVERED = {"mfu": "covered_pct", "kpis": "mfu_covered_pct"}


def shown(name: str, covered: list[float | None]) -> Iterator[str]:
    """Yield the cells of mfu_pct as a terminal shows them."""
    analysis = next(a for a in load_library().analyses if a.base_name == name)
    runs = [f"run {number}" for number in range(len(covered))]
    table = pa.table({"run": runs, "mfu_pct": [40.0] * len(covered), COVERED[name]: covered})
    rows = TableRows(table, analysis)
    (column,) = (column for column in text_columns(rows) if column.name == "mfu_pct")
    yield from column.cells


@pytest.mark.parametrize("name", COVERED)
def test_mfu_with_less_than_90_percent_covered_is_a_lower_bound(name: str) -> None:
    """MFU is a lower bound below 90 % coverage, but not if the coverage is unknown."""
    below, from_90, unknown = shown(name, [89.9, 90.0, None])
    assert below.startswith("≥ ")
    assert from_90 == unknown == below.removeprefix("≥ ")


@pytest.mark.parametrize("name", COVERED)
def test_the_tables_of_a_report_show_the_same(name: str) -> None:
    """A table in a report shows lower bounds like the terminal."""
    analysis = next(a for a in load_library().analyses if a.base_name == name)
    table = pa.table({"run": ["a", "b"], "mfu_pct": [41.0, 42.0], COVERED[name]: [50.0, 95.0]})
    markup = str(table_markup(TableRows(table, analysis), 10))
    assert "≥ 41" in markup
    assert "≥ 42" not in markup


def test_savings_with_an_unmatched_collective_are_lower_bounds_with_a_reason(
    tmp_path: Path,
) -> None:
    """Each saving has a bound, and each lower bound a reason."""
    write_job(tmp_path / "job", JobSpec(ranks=2, steps=2))
    path = min((tmp_path / "job").iterdir())
    with gzip.open(path, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    transfers = [
        place
        for place, event in enumerate(events)
        if event.get("cat") == "kernel" and "nccl" in event["name"]
    ]
    del events[transfers[2]]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(trace, file)
    with hta_sql.ingest(tmp_path / "job", tmp_path / "store", run="job") as store:
        rows = {row["scenario"]: row for row in store.run("what_if").records()}
    known = [row for row in rows.values() if row["replayed_ns"] is not None]
    changed = [row for row in known if row["scenario"] != "as recorded"]
    assert {row["bound"] for row in changed} == {"lower"}
    assert {row["reason_code"] for row in changed} == {"what_if.unmatched"}
    assert all(row["reason"].endswith("the saving may be larger") for row in changed)


def test_products_without_a_formula_are_not_covered(tmp_path: Path) -> None:
    """A gemm under a normalization, or in a template of Inductor, has FLOPs, and they are unknown."""
    kernels = {
        "aten::native_layer_norm": ["layer_norm_kernel"],
        "_C::fused_add_rms_norm": ["rms_norm_kernel", "void gemm<float>"],
        "triton_tem_fused_convolution_3": ["triton_tem_fused_convolution_3"],
        "triton_poi_fused_add_1": ["triton_poi_fused_add_1"],
    }
    events: list[dict[str, object]] = []
    for place, (operator, names) in enumerate(kernels.items()):
        at = 100 * place
        events.append(_complete("cpu_op", operator, at, 50, {}))
        for number, name in enumerate(names):
            key = {"correlation": 10 * place + number + 1}
            launch = at + 10 * (number + 1)
            events.append(_complete("cuda_runtime", "cudaLaunchKernel", launch, 5, key))
            place_of = {"device": 0, "stream": 7, **key}
            events.append(_complete("kernel", name, launch + 20, 4, place_of))
    (tmp_path / "0.json").write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    store = hta_sql.ingest(tmp_path / "0.json", tmp_path / "store")
    (row,) = store.run("mfu").df().to_dict("records")
    # Of five kernels of equal duration, the norm and the pointwise kernel are known to have none.
    assert row["covered_pct"] == pytest.approx(40)


def _complete(
    category: str, name: str, ts: int, dur: int, arguments: Mapping[str, object]
) -> dict[str, object]:
    event = {"ph": "X", "cat": category, "name": name, "ts": ts, "dur": dur, "pid": 1}
    return {**event, "tid": 1, "args": arguments}
