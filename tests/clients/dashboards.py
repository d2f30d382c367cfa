"""Expected contents of the dashboards in docs/, computed with ``store.run``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from docs.generate.superset_charts import CHARTS, Parameters, query
from hta_sql.store.query.trace_store import TraceStore

Rows = list[Parameters]
Choices = dict[str, list[Any]]

ANALYSES = ("kpis", "step_accounting", "stragglers", "operator_table", "comparison")
TOGETHER: dict[str, Callable[[list[float]], float]] = {
    "SUM": sum,
    "MAX": max,
    "AVG": lambda values: sum(values) / len(values),
}


def choices(store: TraceStore) -> list[Choices]:
    """List the combinations of dashboard filters to test."""
    counted = store.run("step_accounting").rows()
    runs = sorted({row[0] for row in counted})
    last = [row for row in counted if row[0] == runs[-1]]
    rank = min(row[1] for row in last)
    steps = [row[2] for row in last if row[2] is not None][-1:]
    tags = [f"{tag}={value}" for tag, value in store.sql(_TAGS).rows()]
    of_a_run: Choices = {"run": runs[-1:]}
    found = [{}, of_a_run, of_a_run | {"rank": [rank]}]
    found += [of_a_run | {"step": steps}, {"rank": [rank], "step": steps}] if steps else []
    found += [{"tag": tags}] if tags else []
    return [*found, {"control_run": runs[-1:], "test_run": (runs[-2:-1] or runs)}]


_TAGS = "SELECT tag, tag_value FROM run_tags ORDER BY ALL LIMIT 1"


def asked(store: TraceStore) -> dict[str, Parameters]:
    """Return the query of each Superset chart for each combination of filters."""
    return {
        _named(chart, chosen): {"dataset": chart["dataset"], "query": query(chart, chosen)}
        for chart in CHARTS
        for chosen in choices(store)
    }


def _named(chart: Parameters, chosen: Choices) -> str:
    return f"{chart['slice_name']} {chosen}"


def drawn_by_superset(store: TraceStore) -> dict[str, Rows]:
    """Return the expected rows of each Superset chart for each combination of filters."""
    known: dict[str, Rows] = {}
    drawn: dict[str, Rows] = {}
    for chart in CHARTS:
        for chosen in choices(store):
            arguments = _arguments(store, chart, chosen)
            key = f"{chart['dataset']} {arguments}"
            if key not in known:
                known[key] = in_microseconds(store, chart["dataset"], arguments)
            drawn[_named(chart, chosen)] = chart_rows(known[key], chart)
    return drawn


def drawn_by_evidence(store: TraceStore) -> dict[str, Rows]:
    """Return the expected rows of the Evidence pages, which show one analysis each."""
    return {name: in_microseconds(store, name, {}) for name in ANALYSES}


def in_microseconds(store: TraceStore, analysis: str, arguments: Parameters) -> Rows:
    """Return the rows of an analysis with nanoseconds converted to microseconds."""
    result = store.run(analysis, **arguments)
    names = [name.replace("_ns", "_us") for name in result.columns]
    scales = [1e3 if name.endswith("_ns") else None for name in result.columns]
    return [
        {
            name: value / scale if scale and value is not None else value
            for name, value, scale in zip(names, row, scales, strict=True)
        }
        for row in result.rows()
    ]


def _arguments(store: TraceStore, chart: Parameters, chosen: Choices) -> Parameters:
    """Return the arguments of ``store.run`` that correspond to a chart's filters."""
    taken = {one["col"]: one["val"] for one in query(chart, chosen)["filters"] if "isExtra" in one}
    arguments = {f"{name}s": taken[name] for name in ("run", "rank", "step") if name in taken}
    if "tag" in taken:
        arguments["runs"] = _tagged(store, taken["tag"])
    if "control_run" in taken:
        arguments["runs"] = [*taken["control_run"], *taken["test_run"]]
    return arguments


def chart_rows(rows: Rows, chart: Parameters) -> Rows:
    """Filter and aggregate the rows of an analysis as a chart does."""
    for own in chart.get("adhoc_filters", []):
        rows = [row for row in rows if row[own["subject"]] == own["comparator"]]
    return _put_together(rows, query(chart, {}))


def _tagged(store: TraceStore, tags: list[str]) -> list[str]:
    known = store.sql("SELECT run, tag || '=' || tag_value FROM run_tags").rows()
    return [run for run, tag in known if tag in tags]


def _put_together(rows: Rows, asked_for: Parameters) -> Rows:
    columns = asked_for["columns"]
    if "metrics" not in asked_for:
        return [{name: row[name] for name in columns} for row in rows]
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in columns), []).append(row)
    return [
        dict(zip(columns, key, strict=True))
        | {metric["label"]: _measured(metric, group) for metric in asked_for["metrics"]}
        for key, group in groups.items()
    ]


def _measured(metric: Parameters, group: Rows) -> float | None:
    values = [row[metric["column"]["column_name"]] for row in group]
    known = [value for value in values if value is not None]
    return TOGETHER[metric["aggregate"]](known) if known else None


def wrong(drawn: dict[str, Rows], wanted: dict[str, Rows]) -> list[str]:
    """Return the names of charts that are missing or differ from the expected rows."""
    return [name for name, rows in wanted.items() if not _same(drawn.get(name), rows)]


def _same(drawn: Rows | None, wanted: Rows) -> bool:
    if drawn is None or len(drawn) != len(wanted):
        return False
    columns = [name for name in (drawn[0] if drawn else {}) if name in wanted[0]]
    found, known = (_ordered(rows, columns) for rows in (drawn, wanted))
    return found == known and bool(columns or not wanted)


def _ordered(rows: Rows, columns: list[str]) -> list[tuple[Any, ...]]:
    """Return sorted rows with rounded numbers, so that the order of summation does not matter."""
    plain = [tuple(_rounded(row[name]) for name in columns) for row in rows]
    return sorted(plain, key=lambda row: [(value is None, str(value)) for value in row])


def _rounded(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return float(f"{value:.9g}")
