"""``hta-sql doctor``: reports what traces lack, what that limits, and how to fix it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from hta_sql.cli.options import Output, audience_option, runs_option
from hta_sql.cli.reading import opened_or_read
from hta_sql.cli.selection import label, store_argument
from hta_sql.cli.verifying import verify_option
from hta_sql.library.sql_files import query_sql
from hta_sql.text import counted, rank_spans

if TYPE_CHECKING:
    from hta_sql.results.display import Rows
    from hta_sql.store.query.trace_store import TraceStore

SEVERITIES = ("error", "warning", "note")

WRITTEN = "job.store"
"""Store that a printed command writes if the traces are not ingested."""


@click.command(short_help="Report what is missing from traces, and how to fix it.")
@store_argument("traces", "STORE[:RUN]|TRACES")
@runs_option
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "never"]),
    default="error",
    help="Exit with code 1 if there is a finding of this severity or higher.",
)
@click.option(
    "--argument-types",
    "level",
    type=click.Choice(["minimal", "standard", "complete", "off"]),
    default="standard",
    help="Arguments of TRACES whose types are checked; each file is read a second time.",
)
@audience_option("json (the analysis `findings`)")
@verify_option
@click.pass_context
def doctor(
    ctx: click.Context,
    *,
    traces: str,
    runs: list[str] | None,
    fail_on: str,
    level: str,
    format_name: str,
) -> None:
    """Examine a STORE, or TRACES that are not ingested (they are read into a temporary store).

    Each finding states what it limits, and which profiler option or command helps. The findings
    come from the analysis `findings`, and the counts behind them from `rank_health`. For TRACES,
    the types of the arguments are checked as well.
    """
    with opened_or_read(traces) as (store, is_new):
        result: Rows = store.run("findings", runs=runs)
        if is_new and level != "off":
            result = _with_argument_types(result, store, level)
        findings = result.arrow().to_pylist()
        if format_name == "json":
            from hta_sql.cli.output import send  # noqa: PLC0415 - lazy, to start faster

            send(result, Output("json"))
        else:
            _print_text(store, traces, findings, runs, written=WRITTEN if is_new else traces)
    failing = () if fail_on == "never" else SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    if any(finding["severity"] in failing for finding in findings):
        ctx.exit(1)


def _with_argument_types(findings: Rows, store: TraceStore, level: str) -> Rows:
    """Add a row for each rank with arguments of the wrong type."""
    import pyarrow as pa  # noqa: PLC0415

    from hta_sql.results.display import TableRows  # noqa: PLC0415
    from hta_sql.traces.argument_types import check_argument_types  # noqa: PLC0415
    from hta_sql.traces.names import path_of  # noqa: PLC0415

    table, found = findings.arrow(), []
    for run, rank, source, _ in store.sql(query_sql("runs", "sources"), {"run": None}).rows():
        # A trace that cannot be read at all has a finding of its own.
        checked = check_argument_types(path_of(source), level)
        wrong = [*checked.violations.values(), *filter(None, [checked.no_arguments])]
        if wrong:
            found.append(
                {
                    "run": run,
                    "rank": rank,
                    "severity": "warning",
                    "finding": "argument_types",
                    "value": float(len(wrong)),
                    "message": f"Arguments have different types from those that PyTorch writes: {wrong[0]}.",
                    "limits": "Values that cannot be converted are NULL in their columns; event_args contains them.",
                    "remedy": "Query event_args, or write the arguments as torch.profiler does.",
                }
            )
    return TableRows(
        pa.concat_tables([table, pa.Table.from_pylist(found, table.schema)]), findings.analysis
    )


def _print_text(
    store: TraceStore,
    traces: str,
    findings: list[dict[str, Any]],
    runs: list[str] | None,
    *,
    written: str,
) -> None:
    from hta_sql.text import printable  # noqa: PLC0415

    match = store.run("collective_match", runs=runs).arrow().to_pylist()
    health = store.run("rank_health", runs=runs)
    several = len(store.runs()) > 1
    columns = dict(zip(health.columns, zip(*health.rows(), strict=True), strict=True))
    for run, rows in groupby(enumerate(columns.get("run", ())), key=lambda item: item[1]):
        at = [index for index, _ in rows]
        events = sum(columns["event_count"][index] for index in at)
        ops = sum(columns["gpu_op_count"][index] for index in at)
        click.echo(
            f"{run}: {counted(len(at), 'rank')}, {events:,} events, {ops:,} device operations"
        )
        if len(at) > 1 and (groups := [group for group in match if group["run"] == run]):
            click.echo(f"  {_match_of(groups)}")
        own = [finding for finding in findings if finding["run"] == run]
        if not own:
            click.echo("  nothing to report")
        name = shlex.quote(label(traces, [run] if several else None))
        for _, group in groupby(own, key=lambda f: (f["severity"], f["finding"])):
            _print_finding(list(group), name, shlex.quote(written), printable)


def _match_of(groups: list[dict[str, Any]]) -> str:
    """Return how much of a run's communication is matched across ranks, and how."""
    kernels, matched, judged = (
        sum(group[name] for group in groups)
        for name in ("kernel_count", "matched_count", "judged_count")
    )
    methods = {name for group in groups for name in group["match_method"].split(", ")} - {"none"}
    text = f"collectives: {matched:,} of {counted(kernels, 'kernel')} matched across ranks"
    if judged:
        trusted = sum((group["trusted_pct"] or 0) * group["judged_count"] for group in groups)
        text += f" by {', '.join(sorted(methods))}; the end times of {trusted / judged:.0f} % agree"
    return text


def _print_finding(
    same: list[dict[str, Any]], store: str, written: str, printable: Callable[[str], str]
) -> None:
    """Print a finding of some ranks; ``store`` is read by its commands, ``written`` is their output."""
    first = same[0]
    ranks = [f["rank"] for f in same if f["rank"] is not None]
    where = f" (rank{'s' if len(ranks) > 1 else ''} {rank_spans(ranks)})" if ranks else ""
    click.echo(f"  {first['severity']:<8} {first['finding']}{where}: {printable(first['message'])}")
    click.echo(f"           limits: {first['limits']}")
    remedy = re.sub(r"(?<=-o )STORE\b", lambda _: written, first["remedy"])
    remedy = re.sub(r"\bSTORE\b", lambda _: store, remedy)
    click.echo(f"           remedy: {remedy}")
