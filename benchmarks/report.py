"""Render the measurements as tables for a terminal, as a table for the README, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from benchmarks.rounds import ANALYSES, OUR_ANALYSES, Outcome
from benchmarks.targets import check

COST_ROWS = (
    ("hta_sql ingest (imports excluded)", "ours.ingest", "ours.ingest process"),
    ("  its imports", "ours.ingest import", None),
    ("  its whole process", "ours.ingest process", "ours.ingest process"),
    ("HTA load (imports excluded)", "hta.load", "hta.process"),
    ("  its imports", "hta.import", None),
    ("gunzip + orjson.loads", "orjson.total", "orjson.process"),
    ("  gunzip alone", "orjson.gunzip", None),
    ("gunzip + simdjson parse", "simdjson.total", "simdjson.process"),
    ("re-open: imports", "ours.reopen import", None),
    ("re-open: open the store", "ours.open", "ours.reopen process"),
    ("re-open: first answer", "ours.first answer", None),
)
RATIO_ROWS = (
    ("ingest / HTA load", "ours.ingest", "hta.load"),
    ("ingest / (gunzip + orjson.loads)", "ours.ingest", "orjson.total"),
    ("ingest / (gunzip + simdjson)", "ours.ingest", "simdjson.total"),
)


def text_report(outcomes: list[Outcome]) -> str:
    """Return the report of all jobs, followed by the targets."""
    parts = [_job_report(outcome) for outcome in outcomes]
    return "\n\n".join([*parts, targets_report(outcomes)])


def _job_report(outcome: Outcome) -> str:
    facts = outcome.facts
    head = (
        f"== {outcome.job.name}: {facts['events']:,} events, {facts['ranks']} ranks, "
        f"{_mb(facts.get('json_bytes')):.0f} MB of JSON, "
        f"{outcome.job.file_bytes / 1e6:.1f} MB on disk"
    )
    lines = [head, f"{'':42}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}"]
    for label, figure, process in COST_ROWS:
        peak = outcome.median(f"{process}.peak_mb") if process else None
        wall, cpu = outcome.median(f"{figure}.wall_s"), outcome.median(f"{figure}.cpu_s")
        lines.append(f"{label:42}{_number(wall):>9}{_number(cpu):>9}{_number(peak, 0):>9}")
    for label, figure, other in RATIO_ROWS:
        wall = outcome.ratio(f"{figure}.wall_s", f"{other}.wall_s")
        cpu = outcome.ratio(f"{figure}.cpu_s", f"{other}.cpu_s")
        lines.append(f"{label:42}{_number(wall):>9}{_number(cpu):>9}")
    lines.append(f"{'analyses [wall ms]':42}{'hta_sql':>9}{'HTA':>9}{'ratio':>9}")
    for method, names in ANALYSES.items():
        ours, theirs = _our_milliseconds(outcome, names), _hta_milliseconds(outcome, method)
        quotient = ours / theirs if ours and theirs else None
        cells = f"{_number(ours, 1):>9}{_number(theirs, 1):>9}{_number(quotient):>9}"
        lines.append(f"{' + '.join(names):42}{cells}")
    lines += [f"{what}: {error}" for what, error in sorted(outcome.errors.items())]
    return "\n".join(lines)


def targets_report(outcomes: list[Outcome]) -> str:
    """List each target with its figure; imports are excluded from all of them."""
    lines = ["== targets"]
    for job, what, value, limit, verdict in check(outcomes):
        lines.append(f"{verdict:5} {job}: {what} = {_number(value, 3)} (at most {limit:g})")
    return "\n".join(lines)


def markdown_report(outcomes: list[Outcome]) -> str:
    """Return the table for the README, with one row per job."""
    heads = (
        "job", "JSON MB", "events", "ingest s", "HTA load s", "wall ratio", "CPU ratio",
        "CPU vs orjson", "peak MB ours / HTA", "re-open to answer ms",
        "five analyses ms ours / HTA",
    )  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    lines += [f"| {' | '.join(_markdown_cells(outcome))} |" for outcome in outcomes]
    return "\n".join(lines)


def _markdown_cells(outcome: Outcome) -> list[str]:
    ours, load = "ours.ingest", "hta.load"
    peaks = (outcome.median(f"{p}.peak_mb") for p in ("ours.ingest process", "hta.process"))
    answer = [outcome.median(f"ours.{lap}.wall_s") or 0 for lap in ("open", "first answer")]
    theirs = [_hta_milliseconds(outcome, method) for method in ANALYSES]
    raised = sum(one is None for one in theirs)
    sum_theirs = _number(sum(filter(None, theirs)), 0) + (f" ({raised} raised)" if raised else "")
    failed = outcome.errors.get("hta.load") or outcome.errors.get("hta")
    return [
        outcome.job.name,
        f"{_mb(outcome.facts.get('json_bytes')):.0f}",
        f"{outcome.facts['events']:,}",
        _number(outcome.median(f"{ours}.wall_s")),
        f"raised {failed.split(':')[0]}" if failed else _number(outcome.median(f"{load}.wall_s")),
        _number(outcome.ratio(f"{ours}.wall_s", f"{load}.wall_s")),
        _number(outcome.ratio(f"{ours}.cpu_s", f"{load}.cpu_s")),
        _number(outcome.ratio(f"{ours}.cpu_s", "orjson.total.cpu_s")),
        " / ".join(_number(peak, 0) for peak in peaks),
        _number(sum(answer) * 1000, 0),
        f"{_number(_our_milliseconds(outcome, tuple(OUR_ANALYSES)), 0)} / {sum_theirs}",
    ]


def as_json(outcomes: list[Outcome], environment: dict[str, Any]) -> dict[str, Any]:
    """Return every sample as JSON, not only medians."""
    return {
        "environment": environment,
        "jobs": [
            {**asdict(outcome), "job": {**asdict(outcome.job), "traces": str(outcome.job.traces)}}
            for outcome in outcomes
        ],
        "targets": [
            dict(zip(("job", "what", "value", "limit", "verdict"), row, strict=True))
            for row in check(outcomes)
        ],
    }


def _our_milliseconds(outcome: Outcome, names: tuple[str, ...]) -> float | None:
    times = [outcome.median(f"ours.{name}.wall_s") for name in names]
    known = [one for one in times if one is not None]
    return sum(known) * 1000 if len(known) == len(times) else None


def _hta_milliseconds(outcome: Outcome, method: str) -> float | None:
    seconds = outcome.median(f"hta.{method}.wall_s")
    return None if seconds is None else seconds * 1000


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _mb(count: int | None) -> float:
    return (count or 0) / 1e6
