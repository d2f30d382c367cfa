"""``hta-sql serving``: phases of a serving engine, their token rates and their bottlenecks."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from hta_sql.cli.options import (
    Output,
    audience_option,
    memory_limit_option,
    roles_option,
    scope_options,
)
from hta_sql.cli.reading import opened_or_read
from hta_sql.cli.selection import label, store_argument
from hta_sql.cli.terminal import wrapped
from hta_sql.cli.verifying import verify_option
from hta_sql.results.serving_phases import roof_sentence, token_rates, work_shares
from hta_sql.text import counted, printable, rank_spans, time_text

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

Row = dict[str, Any]

KINDS = 4
"""Maximum number of kinds of work named in a line."""

NOTHING = (
    "No iterations of a serving engine found: the traces have no annotations of vLLM, SGLang, ATOM or "
    "TensorRT-LLM, and no graph is replayed. `hta-sql sql STORE 'FROM iteration_formats'` lists the known names."
)


@click.command(short_help="Show where the time of a serving engine goes.")
@store_argument("traces", "STORE[:RUN]|TRACES")
@scope_options
@roles_option
@audience_option("json (the analysis `serving`)")
@memory_limit_option
@verify_option
def serving(
    *,
    traces: str,
    runs: list[str] | None,
    ranks: list[int] | None,
    roles: list[str] | None,
    format_name: str,
    memory_limit: str | None,
) -> None:
    """Show phases, time per token and tokens per second of a STORE, or of TRACES that are ingested first.

    Each phase of each rank has one line: how long an iteration takes, how many tokens per second go
    in and out, how busy the device is, the time between iterations, which kinds of work take the
    time, and what they would take at the roofline. The numbers are those of the analyses `serving`,
    `serving_kinds`, `serving_roofline`, `expert_parallel` and `iterations`. Without --ranks, the
    first rank of each run is shown.
    """
    with opened_or_read(traces, memory_limit=memory_limit) as (opened, is_new):
        store = opened.of_roles(roles)
        if format_name == "json":
            from hta_sql.cli.output import send  # noqa: PLC0415 - imports are the start-up cost

            send(store.run("serving", runs=runs, ranks=ranks), Output("json"))
            return
        phases = _of_first_ranks(store, "serving", runs, ranks)
        kinds = _by(_of_first_ranks(store, "serving_kinds", runs, ranks), "run", "rank", "phase")
        roofs = {
            (row["run"], row["rank"], row["phase"]): row
            for row in _of_first_ranks(store, "serving_roofline", runs, ranks)
            if row["category"] == "all"
        }
        exchanges = _by(
            _of_first_ranks(store, "expert_parallel", runs, ranks), "run", "rank", "comm_library"
        )
        if not phases:
            click.echo(NOTHING)
        of = shlex.quote(label("job.store" if is_new else traces, runs))
        for row in phases:
            of_phase = kinds.get((row["run"], row["rank"], row["phase"]), [])
            click.echo(wrapped(_line(row, of_phase)))
            roof = roofs.get((row["run"], row["rank"], row["phase"]))
            if roof and (said := roof_sentence(roof, of)):
                click.echo(wrapped(printable(f"  {said}")))
        for row in _of_first_ranks(store, "findings", runs, ranks) if phases else ():
            if row["finding"] == "graphs_without_capture":
                click.echo(wrapped(printable(_uncaptured_line(row, of))))
        for parts in exchanges.values():
            click.echo(wrapped(_exchange_line(parts)))
        there = sorted({rank for run in runs or store.runs() for rank in store.ranks(run)})
        if not ranks and len(there) > 1 and (phases or exchanges):
            click.echo(
                f"Only the first rank is shown; to show all ranks: --ranks {rank_spans(there, ',')}."
            )
        if phases or exchanges:
            before = f"hta-sql ingest {shlex.quote(traces)} -o job.store; " if is_new else ""
            analysis = "iterations" if phases else "expert_parallel"
            click.echo(f"See: {before}hta-sql run {of} {analysis}")


def _of_first_ranks(
    store: TraceStore, analysis: str, runs: list[str] | None, ranks: list[int] | None
) -> list[Row]:
    rows = [
        r for r in store.run(analysis, runs=runs, ranks=ranks).records() if r["rank"] is not None
    ]
    first: dict[str, int] = {}
    for row in rows:
        first[row["run"]] = min(row["rank"], first.get(row["run"], row["rank"]))
    return [row for row in rows if ranks or row["rank"] == first[row["run"]]]


def _by(rows: list[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return groups


def _line(row: Row, kinds: list[Row]) -> str:
    """Format the figures of one phase on one rank as a line."""
    engine = f" ({row['framework']})" if row["framework"] else ""
    phase = row["phase"] or "phase unknown"
    said = [
        f"{row['run']} rank {row['rank']}: {phase}{engine}, {counted(row['iteration_count'], 'iteration')}"
    ]
    if row["iteration_p50_ns"] is None:
        return printable(f"{said[0]}; their device operations are unknown.")
    per_token = " per output token" if row["phase"] == "decode" else " per iteration"
    said.append(f"{time_text(row['iteration_p50_ns'])}{per_token}")
    if row["iteration_count"] > 1:
        said[-1] += f" (p99 {time_text(row['iteration_p99_ns'])})"
    if row["mean_request_count"] is not None:
        said.append(f"{row['mean_request_count']:,.1f} requests")
    said += [f"{rate} {unit}" for rate, unit in token_rates(row)]
    said.append(f"device busy {row['busy_pct']:.1f} %")
    if row["gap_p50_ns"] is not None:
        said.append(f"{time_text(row['gap_p50_ns'])} between iterations")
    said.append(f"{row['graph_pct']:.0f} % of iterations replay graphs")
    if row["unrecorded_ns"]:
        said.append(f"{time_text(row['unrecorded_ns'])} unrecorded and excluded")
    shares = work_shares(row, kinds[:KINDS])
    most = ", ".join(f"{name} {share:.0f} %" for name, share in shares.items())
    return printable(f"{'; '.join(said)}. Most of the time: {most}.")


def _uncaptured_line(row: Row, store: str) -> str:
    """Return how much is replayed from graphs without captures, and how to ingest these."""
    return (
        f"{row['run']} rank {row['rank']}: {row['message']} Their operators and shapes are unknown. Record the "
        f"captures too: hta-sql ingest TRACES -o {store.partition(':')[0]} --captures CAPTURES"
    )


def _exchange_line(parts: list[Row]) -> str:
    """Format the time that a rank spends in one library's expert-parallel exchanges as a line."""
    sums = {
        role: sum(row["total_ns"] for row in of) for (role,), of in _by(parts, "comm_role").items()
    }
    total, exposed = sum(sums.values()), sum(row["exposed_ns"] for row in parts)
    roles = ", ".join(f"{role} {time_text(ns)}" for role, ns in sums.items())
    first = parts[0]
    said = (
        f"{first['run']} rank {first['rank']}: {first['comm_library']} expert exchanges take "
        f"{time_text(total)} ({roles}); {100 * (total - exposed) / max(total, 1):.1f} % of it overlapped by computation"
    )
    waits = [row["wait_ns"] for row in parts]
    if None not in waits:
        said += f", {time_text(sum(waits))} waiting for other ranks"
    return printable(f"{said}.")
