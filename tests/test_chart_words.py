"""Tests of the text around the marks of a chart: keys, axes and notes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import pytest

from hta_sql import charts
from hta_sql.charts.communication.waits import collective_waits
from hta_sql.charts.communication.what_if import what_if
from hta_sql.charts.drawing.palette import NEUTRAL_COLOR
from hta_sql.charts.drawing.style import bars_by_name, labels
from hta_sql.charts.export import page_of, spec_of
from hta_sql.charts.kernels.busy_time import gpu_kernel_types
from hta_sql.charts.kernels.summary import gpu_summary
from hta_sql.charts.launch import launch_histograms
from hta_sql.charts.shown import themed
from tests.report_pages import Browser

SCENARIOS = {"as recorded": 100.0, "no late rank": None, "balanced": 80.0}


def notes(spec: dict[str, Any]) -> str:
    """Return the notes below the heading of a chart."""
    return " ".join(spec["title"]["subtitle"])


def test_what_is_known_of_no_gpu_has_no_panel() -> None:
    """A panel without known values is omitted: an empty axis would look like zero utilization."""
    row = {
        "run": "a",
        "rank": 0,
        "device": 0,
        "device_name": "H100",
        "tensor_core_unknown_pct": 0.0,
    }
    known = {"utilization_pct": 80.0, "sm_efficiency_pct": 50.0, "occupancy_pct": 25.0}
    unknown = {"tensor_core_pct": None, "peak_pct": None}
    spec = spec_of(gpu_summary(pd.DataFrame([row | known | unknown])))
    heads = [panel["title"]["text"] for panel in spec["hconcat"]]
    assert heads == ["Utilization", "SM efficiency", "Occupancy"]
    assert "Unknown for every GPU: tensor cores, peak memory." in notes(spec)


def test_every_part_of_a_ring_has_its_number() -> None:
    """Each label of a ring chart begins with its percentage, which is thus never cut off."""
    busy = {"computation": 999_600, "memory": 400, "computation+communication+memory": 600_000}
    rows = [{"run": "a", "rank": 0, "classes": k, "busy_ns": v} for k, v in busy.items()]
    spec = spec_of(gpu_kernel_types(pd.DataFrame(rows)))
    color = spec["hconcat"][0]["layer"][0]["encoding"]["color"]
    assert color["scale"]["domain"] == [
        *("62.5 % computation", "< 0.1 % memory", "37.5 % computation+communication+memory")
    ]
    assert color["legend"]["labelLimit"] == 0


def test_scenarios_are_explained_and_none_is_missing_without_a_word() -> None:
    """The notes explain the scenarios and name each scenario without a result, with the reason."""
    rows = [
        {"run": "a", "scenario": name, "replayed_step_ns": ns, "replayed_ns": ns, "saved_pct": 20.0}
        | {"reason": None if ns else "there is no straggler"}
        for name, ns in SCENARIOS.items()
    ]
    spec = spec_of(what_if(pd.DataFrame(rows)))
    said = notes(spec)
    assert "as long as its slowest rank" in said
    assert "Balanced: each operation takes the mean" in said
    assert "Omitted: no late rank (there is no straggler)." in said
    assert '"as recorded", "replayed"' in json.dumps(spec["vconcat"][0]["layer"][0]["encoding"])


def test_launches_are_called_what_they_are() -> None:
    """No launch is called an outlier, and a duration of 0 is drawn next to the shortest one."""
    kinds = {"kernel_duration": None, "call_duration": 50_000, "launch_delay": 100_000}
    rows = [
        {"run": "a", "measure": kind, "low_ns": low, "high_ns": high, "launch_count": 9000}
        | {"outlier_count": 8000, "cutoff_ns": cutoff}
        for kind, cutoff in kinds.items()
        for low, high in ((0, 1), (100_000, 150_000), (150_000, 200_000))
    ]
    spec = spec_of(launch_histograms(pd.DataFrame(rows)))
    panels = spec["vconcat"][0]["hconcat"]
    assert [panel["encoding"]["color"]["scale"]["domain"] for panel in panels] == [
        *(["shorter than their call", "others"], ["longer than 50 µs", "up to 50 µs"]),
        ["later than 100 µs", "up to 100 µs"],
    ]
    assert "if 0, the kernel starts before its call ends" in notes(spec)
    lows = {row["low"] for rows in spec["datasets"].values() for row in rows}
    assert min(lows) > 20_000
    assert panels[0]["encoding"]["y"]["axis"]["format"] == ",d"


def test_counters_say_what_is_what() -> None:
    """Ranks are in order, whatever their values, and a counter that is always 0 has no panel."""
    peaks = {(1, 7): 5, (0, 7): 3, (0, 9): 0}
    rows = [
        {"run": "a", "rank": rank, "device": 2, "stream": stream, "ts": ts, "dur": 5}
        | {"queue_length": peak * (ts == 0)}
        for (rank, stream), peak in sorted(peaks.items())
        for ts in (0, 5)
    ]
    spec = spec_of(charts.FIGURES["queue_length_series"](pd.DataFrame(rows)))
    assert spec["facet"]["row"]["sort"] == [f"rank {rank}, device 2, stream 7" for rank in (0, 1)]
    assert "Always 0: rank 0, device 2, stream 9." in notes(spec)
    assert "its own scale" in notes(spec)
    still = spec_of(
        charts.FIGURES["queue_length_series"](pd.DataFrame(rows).assign(queue_length=0))
    )
    assert "The value is always 0." in json.dumps(still)


@pytest.mark.parametrize("width", [1280, 1000, 390])
def test_names_that_are_folded_stay_different(
    width: int, tmp_path: Path, chromium: Browser
) -> None:
    """Names that are shortened stay distinct, whether they differ at an end or in the middle."""
    names = [f"{'WMW' * 19}{n}" for n in range(9)] + [f"{n}{'WMW' * 19}" for n in range(9)]
    names += [f"{'WMW' * 9}{n}{'WMW' * 9}" for n in range(9)]
    rows = pd.DataFrame({"lane": names, "short": labels(names), "time": range(len(names))})
    chart = bars_by_name(rows, alt.X("time:Q"), {"lane": "Name"}, NEUTRAL_COLOR)
    page = tmp_path / "page.html"
    page.write_text(page_of(themed(chart)), encoding="utf-8")
    chromium.open(page, width)
    drawn = chromium.ask(
        "return [...document.querySelectorAll('.role-axis-label text')].map(t => t.textContent)"
        ".filter(t => t.includes('W'))"
    )
    assert len(drawn) == len(set(drawn)) == len(names)
    assert all("…" in name for name in drawn)


def test_waits_say_of_which_collectives() -> None:
    """The notes list how many collectives of each kind the axis shows."""
    rows = [
        {"run": "a", "rank": rank, "collective_id": at, "collective": kind, "start_ns": at}
        | {"wait_ns": 1000 * rank}
        for rank in (0, 1)
        for at, kind in enumerate(["all_gather", "all_gather", "all_reduce"])
    ]
    spec = spec_of(collective_waits(pd.DataFrame(rows)))
    assert "3 collectives of several ranks: 2 all_gather, 1 all_reduce" in notes(spec)
    assert spec["vconcat"][0]["encoding"]["x"]["title"].startswith("Collective")
