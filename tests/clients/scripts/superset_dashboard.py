"""What the dashboard shows: datasets, charts and their places, as Superset's API takes them."""

import json
from typing import Any

Parameters = dict[str, Any]

DATASETS = {
    "temporal_breakdown": "us",
    "gpu_kernels_by_name": "us",
    "gpu_kernel_types": "us",
    "idle_time_breakdown": "us",
    "comm_comp_overlap": "us",
}
"""View ─▶ its schema: ``us`` has microseconds."""

COLOURS = {
    "compute_us": "#0072B2",
    "exposed_communication_us": "#D55E00",
    "exposed_memory_us": "#009E73",
    "idle_us": "#BBBBBB",
}


def total(column: str) -> Parameters:
    """A metric: the sum of a column."""
    return {
        "expressionType": "SIMPLE",
        "column": {"column_name": column},
        "aggregate": "SUM",
        "label": column,
        "optionName": f"metric_{column}",
    }


CHARTS: list[Parameters] = [
    {
        "slice_name": "Where the time of each GPU goes [µs]",
        "dataset": "temporal_breakdown",
        "viz_type": "echarts_timeseries_bar",
        "x_axis": "rank",
        "xAxisForceCategorical": True,
        "x_axis_sort": "rank",
        "x_axis_sort_asc": True,
        "metrics": [total(column) for column in COLOURS],
        "stack": "Stack",
        "show_legend": True,
        "x_axis_title": "Rank",
        "x_axis_title_margin": 30,
        "y_axis_format": "SMART_NUMBER",
        "rich_tooltip": True,
    },
    {
        "slice_name": "Busy time by class [µs]",
        "dataset": "gpu_kernel_types",
        "viz_type": "pie",
        "groupby": ["classes"],
        "metric": total("busy_us"),
        "donut": True,
        "label_type": "key_percent",
        "show_legend": True,
    },
    {
        "slice_name": "Communication hidden behind computation [%]",
        "dataset": "comm_comp_overlap",
        "viz_type": "echarts_timeseries_bar",
        "x_axis": "rank",
        "xAxisForceCategorical": True,
        "metrics": [{**total("overlap_pct"), "aggregate": "AVG"}],
        "x_axis_title": "Rank",
        "x_axis_title_margin": 30,
    },
    {
        "slice_name": "Why streams are idle [µs]",
        "dataset": "idle_time_breakdown",
        "viz_type": "echarts_timeseries_bar",
        "x_axis": "rank",
        "xAxisForceCategorical": True,
        "metrics": [total("idle_us")],
        "groupby": ["category"],
        "stack": "Stack",
        "show_legend": True,
        "x_axis_title": "Rank",
        "x_axis_title_margin": 30,
    },
    {
        "slice_name": "Kernels that cost most",
        "dataset": "gpu_kernels_by_name",
        "viz_type": "table",
        "query_mode": "aggregate",
        # Names of templates are long enough to push the numbers out of sight.
        "groupby": [
            {"expressionType": "SQL", "sqlExpression": "left(name, 70)", "label": "kernel"},
            "class",
        ],
        "metrics": [total("sum_us"), total("kernel_count")],
        "timeseries_limit_metric": total("sum_us"),
        "order_desc": True,
        "row_limit": 50,
    },
]


def form_data(chart: Parameters, dataset_id: int) -> Parameters:
    """The parameters of a chart, as its editor would save them."""
    rest = {key: value for key, value in chart.items() if key not in {"slice_name", "dataset"}}
    defaults = {"datasource": f"{dataset_id}__table", "adhoc_filters": [], "row_limit": 10_000}
    return {**defaults, "color_scheme": "supersetColors", **rest}


def position(chart_names: dict[int, str]) -> Parameters:
    """Two charts a row; the table below."""
    chart_ids = list(chart_names)
    pairs = [chart_ids[:2], chart_ids[2:4], chart_ids[4:]]
    rows = [f"ROW-{number}" for number in range(len(pairs))]
    places: Parameters = {
        "DASHBOARD_VERSION_KEY": "v2",
        "ROOT_ID": {"type": "ROOT", "id": "ROOT_ID", "children": ["GRID_ID"]},
        "GRID_ID": {"type": "GRID", "id": "GRID_ID", "children": rows, "parents": ["ROOT_ID"]},
    }
    for row, pair in zip(rows, pairs, strict=True):
        places[row] = {
            "type": "ROW",
            "id": row,
            "children": [f"CHART-{chart}" for chart in pair],
            "parents": ["ROOT_ID", "GRID_ID"],
            "meta": {"background": "BACKGROUND_TRANSPARENT"},
        }
        for chart in pair:
            places[f"CHART-{chart}"] = {
                "type": "CHART",
                "id": f"CHART-{chart}",
                "children": [],
                "parents": ["ROOT_ID", "GRID_ID", row],
                "meta": {
                    "chartId": chart,
                    "sliceName": chart_names[chart],
                    "width": 12 // len(pair),
                    "height": 50,
                },
            }
    return places


def json_metadata(dataset_id: int) -> str:
    """Colours, and a filter by run over all charts."""
    by_run = {
        "id": "NATIVE_FILTER-run",
        "name": "run",
        "type": "NATIVE_FILTER",
        "filterType": "filter_select",
        "targets": [{"datasetId": dataset_id, "column": {"name": "run"}}],
        "controlValues": {"multiSelect": False, "defaultToFirstItem": True},
        "requiredFirst": True,
        "defaultDataMask": {"extraFormData": {}, "filterState": {}, "ownState": {}},
        "cascadeParentIds": [],
        "scope": {"rootPath": ["ROOT_ID"], "excluded": []},
    }
    return json.dumps({"label_colors": COLOURS, "native_filter_configuration": [by_run]})
