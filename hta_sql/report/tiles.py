"""Renders the job description and the key figures, and embeds them as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from hta_sql.report.first_screen import HOST_PARTS, STEP_PARTS, FirstScreen, accounted, is_on_host
from hta_sql.report.rendering import render
from hta_sql.results.losses import lost_text
from hta_sql.results.lower_bounds import is_lower_bound
from hta_sql.text import counted, duration_text, size_text

TILES = 6
"""Maximum number of tiles."""

HOST_TILES = 3
"""Number of tiles about the parts of a step of a run without device activity."""

MEANS_FROM = 512
"""Number of ranks above which the page contains mean steps of ranks instead of all steps."""

HELD = 50
"""Maximum number of stragglers and of recommendations in the JSON data, to limit its size."""

Row = dict[str, Any]


def job_text(first: FirstScreen, runs: Sequence[str]) -> str:
    """Return the job description: devices, ranks, hosts, software, steps and events, if known."""
    jobs = [row for row in first.jobs.records() if not runs or row["run"] in runs]
    health = first.rank_health.records()
    scope = {row["run"]: row for row in first.kpis.records()}
    return " | ".join(
        " · ".join(_job(job, [r for r in health if r["run"] == job["run"]], scope.get(job["run"])))
        for job in jobs[:2]
    )


def _job(job: Row, health: list[Row], kpi: Row | None) -> Iterator[str]:
    devices = f" on {counted(job['device_count'], 'device')}" if job["device_count"] else ""
    if job["device_names"]:
        devices = f" on {job['device_count']:,} × {job['device_names']}"  # noqa: RUF001 - multiplication sign
    ranks = counted(job["rank_count"], "rank")
    if (job["world_size"] or 0) > job["rank_count"]:
        ranks += f" of {job['world_size']:,}"
    hosts = f", {counted(job['host_count'], 'host')}" if job["host_count"] else ""
    yield f"{ranks}{devices}{hosts}"
    nccl = f"NCCL {job['nccl_version']}" if job["nccl_version"] else None
    software = [text for text in (job["framework"], job["runtime"], nccl) if text]
    if software:
        yield ", ".join(software)
    steps = max((row["step_count"] for row in health), default=0)
    if steps and kpi and kpi["step_count"]:
        last = ", without the last one" if kpi["step_count"] < steps else ""
        yield f"{kpi['step_count']:,} of {counted(steps, 'step')}{last}"
    elif not steps:
        yield "no profiler steps"
    yield f"{counted(job['event_count'], 'event')}, {lost_text(health)}"


def tiles_markup(first: FirstScreen, runs: Mapping[str, list[Row]]) -> Markup:
    """Render the key figures: tiles for one run, a table with one column per run for several."""
    late = {row["run"]: row for row in first.stragglers.records() if row["is_straggler"]}
    kpis = {row["run"]: row for row in first.kpis.records()}
    figures_of_run = {
        run: dict(_figures(kpis[run], rows, late.get(run)))
        for run, rows in runs.items()
        if run in kpis
    }
    if not figures_of_run:
        return Markup()
    if len(figures_of_run) > 1:
        return _compared(figures_of_run)
    (figures,) = figures_of_run.values()
    return render("tiles", tiles=list(figures.items())[:TILES])


def _compared(figures_of_run: Mapping[str, Mapping[str, str]]) -> Markup:
    # The same labels for all runs: details of a single run follow a comma.
    short = {
        run: {words.partition(",")[0]: value for words, value in figures.items()}
        for run, figures in figures_of_run.items()
    }
    names = list(dict.fromkeys(words for figures in short.values() for words in figures))
    lines = [
        (words, [figures.get(words, "–") for figures in short.values()])  # noqa: RUF001 - same dash as in tables
        for words in names
    ]
    return render("compared_runs", runs=list(short), lines=lines)


def _figures(kpi: Row, rows: list[Row], late: Row | None) -> Iterator[tuple[str, str]]:
    """Yield (label, value) of the known figures, most important first."""
    step = kpi["step_ns"]
    if step is None:
        return
    steps = [row["step_ns"] for row in rows if row["step"] is not None]
    ends = [duration_text(end) for end in (min(steps), max(steps))] if steps else []
    spread = f", {ends[0]} to {ends[1]}" if len(set(ends)) > 1 else ""
    yield f"{'step time' if steps else 'capture time'}{spread}", duration_text(step)
    yield from _on_host(rows)
    if kpi["compute_pct"] is not None:
        yield "computing", _percent(kpi["compute_pct"])
    if kpi["mfu_pct"] is not None:
        yield mfu_figure(kpi["mfu_pct"], kpi["mfu_peak_tflops"], kpi["mfu_covered_pct"])
    if kpi["wait_pct"]:
        whom = f", mostly for rank {late['rank']}" if late else ""
        yield f"waiting for other ranks{whom}", duration_text(_mean_wait(rows))
    if kpi["peak_memory_bytes"] is not None:
        share = kpi["peak_memory_pct"]
        of = f", {_percent(share)} of the device" if share is not None else ""
        yield f"peak memory{of}", size_text(kpi["peak_memory_bytes"])
    if kpi["idle_pct"] is not None:
        yield idle_figure(kpi["idle_pct"], kpi["launch_bound_pct"])
    # Without a device, the parts of the host include it.
    if kpi["exposed_communication_pct"] and not all(map(is_on_host, rows)):
        unknown = kpi["unmatched_pct"]
        of = f", {_percent(unknown)} transfer or wait, unknown which" if unknown else ""
        yield f"exposed communication{of}", _percent(kpi["exposed_communication_pct"])


def _on_host(rows: list[Row]) -> Iterator[tuple[str, str]]:
    """Yield the largest parts of the host's steps, for a run without device activity."""
    total = sum(row["step_ns"] for row in rows)
    if not total or not all(map(is_on_host, rows)):
        return
    shares = {name: 100 * sum(row[name] or 0 for row in rows) / total for name in HOST_PARTS}
    for name in sorted(shares, key=lambda name: -shares[name])[:HOST_TILES]:
        if shares[name] >= 1:
            yield HOST_PARTS[name][0], _percent(shares[name])


def _mean_wait(rows: list[Row]) -> float:
    """Return the mean exposed wait of the steps [ns], as in the bar of the step."""
    return sum(row["wait_ns"] or 0 for row in rows) / len(rows)


def idle_figure(idle_pct: float, launch_bound_pct: float | None) -> tuple[str, str]:
    """Return (label, value) of idle time; the label has the part that waits for the host."""
    part = f", {_percent(launch_bound_pct)} waiting for the host" if launch_bound_pct else ""
    return f"idle{part}", _percent(idle_pct)


def mfu_figure(
    mfu_pct: float, peak_tflops: float | None, covered_pct: float | None
) -> tuple[str, str]:
    """Return (label, value) of MFU: a lower bound if the FLOPs of many kernels are unknown."""
    peak = f", share of the peak of {peak_tflops:,.0f} TFLOP/s" if peak_tflops else ""
    part = (
        f", work known for {_percent(covered_pct)} of kernel time"
        if covered_pct is not None
        else ""
    )
    # Counting the FLOPs of the other kernels could only raise the figure.
    least = "≥ " if is_lower_bound(covered_pct) else ""
    return f"MFU{peak}{part}", least + _percent(mfu_pct)


def _percent(value: float) -> str:
    return f"{value:.2g} %" if abs(value) < 1 else f"{value:.0f} %"


def figures_markup(first: FirstScreen) -> Markup:
    """Render the exact data of the first screen as JSON, in ns."""
    columns = ["run", "rank", "step", "step_ns", *STEP_PARTS]
    rows = [[row[name] for name in columns] for row in accounted(first)]
    if len({(row[0], row[1]) for row in rows}) > MEANS_FROM:
        rows = _means(rows)
    late = [row for row in first.stragglers.records() if row["is_straggler"]]
    advice = [row for row in first.advice.records() if row["is_worst"]]
    held: dict[str, Any] = {
        "jobs": first.jobs.records(),
        "kpis": first.kpis.records(),
        "stragglers": late[:HELD],
        "advice": advice[:HELD],
        "steps": {"columns": columns, "rows": rows},
    }
    if first.failures:
        held["failures"] = dict(first.failures)
    return render("figures", figures=held)


def _means(rows: list[list[Any]]) -> list[list[Any]]:
    of: dict[tuple[Any, Any], list[list[Any]]] = {}
    for row in rows:
        of.setdefault((row[0], row[1]), []).append(row[3:])
    return [
        [*key, None, *(_mean(values) for values in zip(*steps, strict=True))]
        for key, steps in of.items()
    ]


def _mean(values: Sequence[int | None]) -> int | None:
    """Return the mean, or None if a value is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) // len(known) if len(known) == len(values) else None
