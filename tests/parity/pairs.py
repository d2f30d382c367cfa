"""Compare our TraceDiff with HTA's on pairs of public traces, as lines of the ledger."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from hta_sql import LabeledTrace, TraceDiff, TraceStore
from hta_sql.hta.trace_diff import DeviceType
from tests.parity.comparison import Line, compare
from tests.parity.jobs import HTA
from tests.parity.own.answers import own_frame
from tests.parity.own.jobs import OWN_PAIRS

PAIRS = {
    "pair_trace_diff": ("hta_trace_diff_control", "hta_trace_diff_test"),
    "pair_trace_compare": ("hta_trace_compare_base", "hta_trace_compare_test"),
}

DEVICES = {device.name.lower(): device for device in DeviceType}

PAIR_FRAMES = [
    *(f"trace_diff_{device}{ending}" for device in DEVICES for ending in ("", "_short")),
    *(f"trace_diff_ops_{device}" for device in DEVICES),
    "trace_diff_iterations",
]


def labeled(store: TraceStore, pair: str) -> tuple[LabeledTrace, LabeledTrace]:
    """Return the control and the test of a pair with HTA's labels."""
    control, test = {**PAIRS, **OWN_PAIRS}[pair]
    return LabeledTrace("Control", store, run=control), LabeledTrace("Test", store, run=test)


def lines_of_pair(store: TraceStore, pair: str) -> list[Line]:
    """Compare every frame and list of a pair."""
    lines: list[Line] = []
    for frame in PAIR_FRAMES:
        ours, hta = _ours(store, pair, frame), _hta(pair, frame)
        if hta is None:
            lines.append(Line(pair, frame, "*", "hta_crash", ours.size))
        else:
            lines += compare(pair, frame, ours, hta)
    return lines


def _ours(store: TraceStore, pair: str, frame: str) -> pd.DataFrame:
    control, test = labeled(store, pair)
    if frame.endswith("iterations"):
        steps = {"control": control.iterations(), "test": test.iterations()}
        return _items(steps | {"control_ranks": control.ranks(), "test_ranks": test.ranks()})
    words = frame.split("_")
    if words[2] == "ops":
        return _items(TraceDiff.ops_diff(control, test, device_type=DEVICES[words[3]]))
    return (
        TraceDiff.compare_traces(
            control, test, device_type=DEVICES[words[2]], use_short_name=frame.endswith("_short")
        )
        .rename_axis("item")
        .reset_index()
    )


def _hta(pair: str, frame: str) -> pd.DataFrame | None:
    if pair in OWN_PAIRS:
        return own_frame(pair, frame)
    path = HTA / pair / f"{frame}.parquet"
    if not path.exists():
        return _items(json.loads(path.with_suffix(".json").read_text()))
    table = pd.read_parquet(path)
    return table.rename(columns={str(table.columns[0]): "item"})


def _items(lists: dict[str, list[Any]]) -> pd.DataFrame:
    """Return a frame with a row for each entry of each list."""
    rows = [(f"{name}: {item}", name) for name, items in lists.items() for item in items]
    return pd.DataFrame(rows, columns=["item", "list"])
