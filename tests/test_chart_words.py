"""What charts say around their marks: keys, axes and notes, of what is drawn and of what is not."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from hta_sql.charts.files import spec_of
from hta_sql.charts.gpu_views import gpu_summary
from hta_sql.charts.kernels import gpu_kernel_types
from hta_sql.charts.waits import collective_waits
from hta_sql.charts.what_if import what_if

SCENARIOS = {"as recorded": 100.0, "no late rank": None, "balanced": 80.0}


def notes(spec: dict[str, Any]) -> str:
    """What stands below the heading of a chart."""
    return " ".join(spec["title"]["subtitle"])


def test_what_is_known_of_no_gpu_has_no_panel() -> None:
    """An empty axis would be taken for nothing in use."""
    row = {
        "run": "a",
        "rank": 0,
        "device": 0,
        "device_name": "H100",
        "tensor_core_unknown_pct": 0.0,
    }
    known = {"utilisation_pct": 80.0, "sm_efficiency_pct": 50.0, "occupancy_pct": 25.0}
    unknown = {"tensor_core_pct": None, "peak_pct": None}
    spec = spec_of(gpu_summary(pd.DataFrame([row | known | unknown])))
    heads = [panel["title"]["text"] for panel in spec["hconcat"]]
    assert heads == ["Utilisation", "SM efficiency", "Occupancy"]
    assert "Not known of any GPU: tensor cores, peak memory." in notes(spec)


def test_every_part_of_a_ring_has_its_number() -> None:
    """First, where no width cuts it off; a part that is hardly seen as well."""
    busy = {"computation": 999_600, "memory": 400, "computation+communication+memory": 600_000}
    rows = [{"run": "a", "rank": 0, "classes": k, "busy_ns": v} for k, v in busy.items()]
    spec = spec_of(gpu_kernel_types(pd.DataFrame(rows)))
    colour = spec["hconcat"][0]["layer"][0]["encoding"]["color"]
    assert colour["scale"]["domain"] == [
        *("62.5 % computation", "< 0.1 % memory", "37.5 % computation+communication+memory")
    ]
    assert colour["legend"]["labelLimit"] == 0


def test_scenarios_are_explained_and_none_is_missing_without_a_word() -> None:
    """What is changed in each, why so little is saved, and which has no answer."""
    rows = [
        {"run": "a", "scenario": name, "then_step_ns": ns, "replayed_ns": ns, "saved_pct": 20.0}
        | {"reason": None if ns else "no rank is late"}
        for name, ns in SCENARIOS.items()
    ]
    spec = spec_of(what_if(pd.DataFrame(rows)))
    said = notes(spec)
    assert "as long as its slowest rank" in said
    assert "Balanced: between two collectives" in said
    assert "Left out: no late rank (no rank is late)." in said
    assert '"as recorded", "at best"' in json.dumps(spec["vconcat"][0]["layer"][0]["encoding"])


def test_waits_say_of_which_collectives() -> None:
    """Along the axis in their order, and how many of which kind."""
    rows = [
        {"run": "a", "rank": rank, "collective_id": at, "collective": kind, "start_ns": at}
        | {"wait_ns": 1000 * rank}
        for rank in (0, 1)
        for at, kind in enumerate(["all_gather", "all_gather", "all_reduce"])
    ]
    spec = spec_of(collective_waits(pd.DataFrame(rows)))
    assert "The 3 collectives that ranks meet in: 2 all_gather, 1 all_reduce" in notes(spec)
    assert spec["vconcat"][0]["encoding"]["x"]["title"].startswith("Collective")
