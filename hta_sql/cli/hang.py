"""``hta-sql hang``: finds the stuck process group, its operation, and the rank that blocks it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from itertools import groupby
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
from hta_sql.library.sql_files import query_sql
from hta_sql.text import counted, printable, rank_spans

if TYPE_CHECKING:
    from hta_sql.errors import HtaSqlError
    from hta_sql.store.query.trace_store import TraceStore

Row = dict[str, Any]

HANGS = 4
"""Exit code if something hangs."""

UNDECIDED = 3
"""Exit code if the dumps do not decide whether something hangs."""

SHOWN = 10
"""Maximum number of stuck groups per run with a sentence; the table has all of them."""

MAPS = 3
"""Maximum number of stuck groups with a map."""

MOST_LINES = 16
"""Maximum number of ranks with a line each in a map; with more, equal ranks share a line."""

MARKS = {
    "finished": ".",
    "waiting": "W",
    "missing": "-",
    "different": "D",
    "not started": "S",
    "no dump": "?",
    "ended": "e",
    "unknown": " ",
}
"""State of a cell of ``hang_grid`` ─▶ mark in the map."""

TABLE = (
    *("channel", "missing_ranks", "waiting_ranks", "op", "kind", "is_root", "collective_seq_id"),
    *("different_ranks", "undumped_ranks", "since"),
)


@click.command(short_help="Name the rank that blocks a hanging job, from Flight Recorder dumps.")
@store_argument("traces", "STORE[:RUN]|DUMPS")
@scope_options
@roles_option
@audience_option("json (the analysis `hang`)")
@memory_limit_option
@verify_option
@click.pass_context
def hang(
    ctx: click.Context,
    *,
    traces: str,
    runs: list[str] | None,
    ranks: list[int] | None,
    roles: list[str] | None,
    format_name: str,
    memory_limit: str | None,
) -> None:
    """Show what hangs in a STORE, or in a folder of Flight Recorder DUMPS.

    DUMPS are the files that torch.distributed writes when a collective times out
    (nccl_trace_rank_N), or what torch._C._distributed_c10d._dump_fr_trace_json() returns; the
    folder may also contain traces. The cause is printed first: group, operation, the rank that
    never entered the operation, and the last operation of that rank. Groups that only wait for
    another group follow. Exit codes: 4 if something hangs, 3 if the dumps do not decide it, 0 if
    nothing hangs, 1 and 2 for errors.
    """
    from hta_sql.cli.messages import note  # noqa: PLC0415
    from hta_sql.cli.output import send  # noqa: PLC0415 - imports are the start-up cost

    failures: list[HtaSqlError] = []
    with opened_or_read(traces, memory_limit=memory_limit, on_failure=failures.append) as (
        opened,
        _,
    ):
        store = opened.of_roles(roles)
        dumps = _dumps(store, runs)
        result = store.run("hang", runs=runs, ranks=ranks)
        rows = result.records()
        if format_name == "json":
            send(result, Output("json"))
        else:
            several = len(dumps) > 1
            labels = {
                run: shlex.quote(label(traces, [run] if several or runs else None)) for run in dumps
            }
            _print(rows, dumps, labels, _folders(store, dumps) if several else {})
            _print_damaged(store, dumps)
            if rows:
                cells = store.run("hang_grid", runs=runs, ranks=ranks).records()
                _print_map(rows, cells, labels)
                click.echo()
                send(result, Output(columns=("run", *TABLE) if several else TABLE))
    is_certain = any(row["is_certain"] for row in rows)
    if not is_certain:
        for failure in failures:
            raise failure
    for failure in failures:
        note(f"warning: {failure}")
    if rows:
        ctx.exit(HANGS if is_certain else UNDECIDED)


def _print_map(rows: list[Row], cells: list[Row], labels: dict[str, str]) -> None:
    """Print a line for each rank of the first stuck groups, with its state at each collective.

    Args:
        rows: Rows of ``hang``, with the cause first.
        cells: Rows of ``hang_grid``.
        labels: Run ─▶ ``STORE`` or ``STORE:RUN``; with several runs, each map names its run.
    """
    groups: dict[tuple[str, str], dict[int, list[Row]]] = {}
    for cell in cells:
        lines = groups.setdefault((cell["run"], cell["channel"]), {})
        lines.setdefault(cell["rank"], []).append(cell)
    # Sends and receives have no cells.
    keys = list(
        dict.fromkeys(key for row in rows if (key := (row["run"], row["channel"])) in groups)
    )
    for key in keys[:MAPS]:
        channel, lines = ": ".join(key if len(labels) > 1 else key[1:]), groups[key]
        last = max(cell["collective_seq_id"] for cell in next(iter(lines.values())))
        width = len(str(max(lines)))
        click.echo(f"\n{printable(channel)}, up to collective {last}:")
        # Ranks that did the same share one line.
        alike: dict[str, list[int]] = {}
        for rank, row in lines.items():
            marks = " ".join(MARKS[cell["state"]] for cell in row)
            alike.setdefault(marks, []).append(rank)
            if len(lines) <= MOST_LINES:
                click.echo(f"  rank {rank:>{width}}  {marks}")
        if len(lines) > MOST_LINES:
            for marks, ranks in alike.items():
                click.echo(f"  {marks}  {counted(len(ranks), 'rank')}: {rank_spans(ranks)}")
    if len(keys) > MAPS:
        click.echo(f"\n{counted(len(keys) - MAPS, 'more group')}:")
        for run in dict.fromkeys(run for run, _ in keys[MAPS:]):
            click.echo(f"  hta-sql run {labels[run]} hang_grid")
    click.echo("\n" + ", ".join(f"{mark} {state}" for state, mark in MARKS.items() if mark.strip()))


def _dumps(store: TraceStore, runs: list[str] | None) -> dict[str, list[int]]:
    """Return the ranks with a dump, by run.

    Raises:
        UsageError: There is no dump.
    """
    found: dict[str, list[int]] = {}
    for run, rank in store.sql(query_sql("artifacts", "dumped_ranks")).rows():
        if not runs or run in runs:
            found.setdefault(run, []).append(rank)
    if not found:
        raise click.ClickException(
            "No Flight Recorder dump contains an operation. Set TORCH_FR_BUFFER_SIZE=2000 (older versions: "
            "TORCH_NCCL_TRACE_BUFFER_SIZE) and TORCH_NCCL_DUMP_ON_TIMEOUT=1, and pass the files that the job writes "
            "when it hangs: nccl_trace_rank_N."
        )
    return found


def _print_damaged(store: TraceStore, runs: Iterable[str]) -> None:
    """Print the damaged dumps; their lost operations are missing from the verdict."""
    for run, rank, reason in store.sql(query_sql("artifacts", "damaged_dumps")).rows():
        if run in runs:
            click.echo(f"\n{printable(run)} rank {rank}: damaged {printable(reason)}.")


def _folders(store: TraceStore, runs: Iterable[str]) -> dict[str, str]:
    """Return the folder of each run that has another name than its folder.

    Folders are relative to the folder that all of them are in. The result is empty if runs share a
    folder.
    """
    from hta_sql.ingestion.captures import distinct_names  # noqa: PLC0415

    sources = store.sql(query_sql("runs", "sources"), {"run": None}).rows()
    named = distinct_names([source for _, _, source, _ in sources])
    found: dict[str, set[str]] = {}
    for (run, *_), name in zip(sources, named, strict=True):
        if run in runs:
            found.setdefault(run, set()).add(name.rpartition("/")[0])
    folders = {run: min(of) for run, of in found.items()}
    if len(set().union(*found.values())) < len(found) or max(map(len, found.values())) > 1:
        return {}
    return {run: folder for run, folder in folders.items() if folder and folder != run}


def _print(
    rows: list[Row], dumps: dict[str, list[int]], labels: dict[str, str], folders: dict[str, str]
) -> None:
    """Print the verdict on each run: its causes, then the groups that follow.

    Args:
        rows: Rows of ``hang``.
        dumps: Run ─▶ ranks with a dump.
        labels: Run ─▶ ``STORE`` or ``STORE:RUN``, for commands.
        folders: Run ─▶ folder of its dumps, for runs whose name does not state it.
    """
    by_run = {run: list(of) for run, of in groupby(rows, key=lambda row: row["run"])}
    for at, (run, ranks) in enumerate(dumps.items()):
        stuck = by_run.get(run, [])
        folder = f" (folder {printable(folders[run])})" if run in folders else ""
        head = (
            f"{printable(run)}{folder}: {counted(len(ranks), 'dump')} (ranks {rank_spans(ranks)})"
        )
        if at:
            click.echo()
        if not stuck:
            click.echo(
                f"{head}: nothing hangs. All ranks with a dump entered the same operations, and these have ended."
            )
            continue
        click.echo(f"{head}: {_summary(stuck)}")
        for number, row in enumerate(stuck[:SHOWN], 1):
            message = row["message"].replace("run STORE", f"run {labels[run]}")
            click.echo(wrapped(f"\n{number}. {_same_cause(stuck, row)}{printable(message)}"))
        if len(stuck) > SHOWN:
            click.echo(f"\n{len(stuck) - SHOWN} more: hta-sql run {labels[run]} hang")


def _summary(stuck: list[Row]) -> str:
    """Return the number of stuck groups of a run, of independent causes, and of consequences."""
    certain = [row for row in stuck if row["is_certain"]]
    if not certain:
        hang = "hangs" if len(stuck) == 1 else "hang"
        return f"the dumps do not decide whether {counted(len(stuck), 'group')} {hang}"
    causes = len({row["cause_id"] for row in certain if row["is_root"]})
    followers = sum(not row["is_root"] for row in certain)
    waits = "waits" if followers == 1 else "wait"
    follow = f", {counted(followers, 'group')} that only {waits}" if followers else ""
    open_count = len(stuck) - len(certain)
    undecided = f", {counted(open_count, 'group')} undecided" if open_count else ""
    return f"{counted(len(certain), 'group')} stuck, {counted(causes, 'cause')}{follow}{undecided}"


def _same_cause(stuck: list[Row], row: Row) -> str:
    """Return ``Same cause as N:`` unless the row is the first of its cause."""
    causes = [row["cause_id"] for row in stuck]
    first = stuck[causes.index(row["cause_id"])]
    if not row["is_root"] or first is row:
        return ""
    return f"Same cause as {stuck.index(first) + 1}: "
