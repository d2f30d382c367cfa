"""Define the filters and charts of the Superset dashboard, as Superset's editor saves them."""

from __future__ import annotations

import json
from typing import Any

Parameters = dict[str, Any]

ALL_ROWS = 10_000

PARTS = {
    "compute_us": "#0072B2",
    "exposed_transfer_us": "#D55E00",
    "exposed_unmatched_us": "#EFB08E",
    "exposed_wait_us": "#E69F00",
    "exposed_memory_us": "#009E73",
    "idle_before_us": "#DDDDDD",
    "idle_between_us": "#BBBBBB",
    "idle_after_us": "#999999",
}
"""Parts of a step in stacking order, and their colors."""

LABEL_COLORS = PARTS | {"wait_us": "#E69F00", "wait_caused_us": "#CC79A7", "diff_us": "#0072B2"}

OF_A_RUN = ("step_accounting", "stragglers", "operator_table")
COMPARED = ("comparison",)
FILTERS: tuple[Parameters, ...] = (
    {"name": "tag", "title": "Tag", "many": True, "takes": ("kpis", *OF_A_RUN)},
    {
        "name": "run",
        "title": "Run",
        "many": False,
        "first": True,
        "within": ["tag"],
        "takes": OF_A_RUN,
    },
    {
        "name": "rank",
        "title": "Rank",
        "many": True,
        "within": ["run"],
        "takes": (*OF_A_RUN, *COMPARED),
    },
    {
        "name": "step",
        "title": "Step",
        "many": True,
        "within": ["run"],
        "takes": ("step_accounting", "operator_table", *COMPARED),
    },
    {"name": "control_run", "title": "Compare: control", "many": False, "takes": COMPARED},
    {"name": "test_run", "title": "Compare: test", "many": False, "takes": COMPARED},
)
"""Filters above the charts, and the datasets that each applies to; ``kpis`` compares runs."""


def measure(column: str, aggregate: str = "SUM") -> Parameters:
    """Return a metric: an aggregated column."""
    return {
        "expressionType": "SIMPLE",
        "column": {"column_name": column},
        "aggregate": aggregate,
        "label": column,
        "optionName": f"metric_{column}",
    }


def bars(x_axis: str, metrics: list[Parameters], **more: Any) -> Parameters:
    """Return the parameters of a bar chart over a few named items."""
    return {
        "viz_type": "echarts_timeseries_bar",
        "x_axis": x_axis,
        "xAxisForceCategorical": True,
        "x_axis_sort": x_axis,
        "x_axis_sort_asc": True,
        "groupby": [],
        "metrics": metrics,
        "show_legend": True,
        "x_axis_title": x_axis.replace("_", " "),
        "x_axis_title_margin": 30,
        "y_axis_format": "SMART_NUMBER",
        "rich_tooltip": True,
        "sort_series_type": "name",
        "sort_series_ascending": True,
        **more,
    }


SLANTED: Parameters = {"xAxisLabelRotation": 45, "xAxisLabelInterval": "0", "x_axis_title": ""}
"""Parameters that show a slanted name below every bar."""


def listed(columns: list[str], *order: tuple[str, bool]) -> Parameters:
    """Return the parameters of a table chart; ``order`` lists (column, ascending) pairs."""
    return {
        "viz_type": "table",
        "query_mode": "raw",
        "show_cell_bars": False,
        "all_columns": columns,
        "order_by_cols": [json.dumps(by) for by in order],
        "row_limit": 1000,
        "column_config": {
            name: {"d3NumberFormat": ",.1f"} for name in columns if _is_measured(name)
        },
    }


def _is_measured(column: str) -> bool:
    return column.endswith(("_us", "_pct"))


def only(column: str, value: str) -> Parameters:
    """Return a filter that limits one chart to rows with the given value in a column."""
    return {
        "expressionType": "SIMPLE",
        "subject": column,
        "operator": "==",
        "comparator": value,
        "clause": "WHERE",
    }


CHARTS: tuple[Parameters, ...] = (
    {
        "slice_name": "Runs: what people quote",
        "dataset": "kpis",
        "row": 1,
        "height": 30,
        **listed(
            [
                *("run", "rank_count", "step_count", "step_us", "utilization_pct", "compute_pct"),
                *("exposed_communication_pct", "wait_pct", "idle_pct", "launch_bound_pct"),
                *("mfu_pct", "peak_memory_pct"),
            ],
            ("run", True),
        ),
    },
    {
        "slice_name": "Step time of each run [µs]",
        "dataset": "kpis",
        "row": 2,
        **bars("run", [measure("step_us", "MAX")], show_legend=False, **SLANTED),
    },
    {
        "slice_name": "Where a step of each rank goes [µs]",
        "dataset": "step_accounting",
        "row": 3,
        **bars("rank", [measure(part, "AVG") for part in PARTS], stack="Stack"),
    },
    {
        "slice_name": "Where each step goes, mean of the ranks [µs]",
        "dataset": "step_accounting",
        "row": 3,
        **bars("step", [measure(part, "AVG") for part in PARTS], stack="Stack"),
    },
    {
        "slice_name": "Stragglers",
        "dataset": "stragglers",
        "row": 4,
        "width": 8,
        **listed(
            [
                *(
                    "rank",
                    "verdict",
                    "is_straggler",
                    "message",
                    "cause",
                    "cost_us",
                    "cost_pct",
                    "wait_us",
                ),
                *("wait_caused_us", "last_arrival_pct", "verdict_reason"),
            ],
            ("rank", True),
        ),
    },
    {
        "slice_name": "What each rank waits, and others for it [µs]",
        "dataset": "stragglers",
        "row": 4,
        "width": 4,
        **bars("rank", [measure("wait_us"), measure("wait_caused_us")]),
    },
    {
        "slice_name": "Operators that cost most",
        "dataset": "operator_table",
        "row": 5,
        "viz_type": "table",
        "query_mode": "aggregate",
        "show_cell_bars": False,
        "groupby": ["name", "side"],
        "metrics": [
            measure(column)
            for column in ("call_count", "device_self_us", "device_total_us", "host_self_us")
        ],
        "timeseries_limit_metric": measure("device_self_us"),
        "order_desc": True,
        "row_limit": 100,
        "column_config": {
            name: {"d3NumberFormat": ",.1f"}
            for name in ("device_self_us", "device_total_us", "host_self_us")
        },
    },
    {
        "slice_name": "What changed, by part of the step [µs]",
        "dataset": "comparison",
        "row": 6,
        "width": 4,
        "adhoc_filters": [only("level", "part")],
        **bars("part", [measure("diff_us")], show_legend=False, **SLANTED),
    },
    {
        "slice_name": "What changed",
        "dataset": "comparison",
        "row": 6,
        "width": 8,
        **listed(
            [
                *("level", "part", "control_us", "test_us", "diff_us", "diff_pct", "noise_us"),
                *("verdict", "subject", "control_run", "test_run"),
            ],
            *(("level_order", True), ("abs_diff_us", False)),
        ),
    },
)
"""Charts in page order; all keys except dataset, row, width and height are Superset's."""

OURS = {"slice_name", "dataset", "row", "width", "height"}


def form_data(about: Parameters) -> Parameters:
    """Return the parameters of a chart, as its editor would save them."""
    rest = {key: value for key, value in about.items() if key not in OURS}
    return {"adhoc_filters": [], "row_limit": ALL_ROWS, "color_scheme": "supersetColors", **rest}


def query(about: Parameters, choices: Parameters) -> Parameters:
    """Return the query of a chart with the selected filter values, without its row limit."""
    taken = [one["name"] for one in FILTERS if about["dataset"] in one["takes"]]
    chosen = [
        {"col": name, "op": "IN", "val": values, "isExtra": True}
        for name, values in choices.items()
        if name in taken
    ]
    own = [
        {"col": one["subject"], "op": one["operator"], "val": one["comparator"]}
        for one in about.get("adhoc_filters", [])
    ]
    asked: Parameters = {"row_limit": ALL_ROWS, "filters": own + chosen}
    if about.get("query_mode") == "raw":
        return asked | {"columns": about["all_columns"]}
    keys = [about["x_axis"]] if "x_axis" in about else about["groupby"]
    return asked | {"columns": keys, "metrics": about["metrics"]}
