"""``hta-sql critical-path``: the critical path of each rank, and the effect of faster kernels."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hta_sql.cli.options import (
    INTEGERS,
    Output,
    chart_option,
    output_options,
    scope_options,
    steps_option,
)
from hta_sql.cli.selection import label, store_argument
from hta_sql.cli.verifying import verifies, verify_option

if TYPE_CHECKING:
    import pyarrow as pa

    from hta_sql.store.query.trace_store import TraceStore


CLASSES = ("computation", "communication", "memory")

_WAITS = (
    "note: Collectives on the path include waits for other ranks, which the path of one rank cannot separate from "
    "transfer. Faster transfer does not shorten these waits. The replay of all ranks separates them: "
    "hta-sql run {} what_if_faster"
)


@click.command("critical-path", short_help="Find the critical path of each rank.")
@store_argument()
@scope_options
@click.option(
    "--annotation",
    metavar="TEXT",
    help="Use the window of the host events whose name contains this, such as ProfilerStep.",
)
@click.option(
    "--instance",
    "instances",
    type=INTEGERS,
    help="Numbers of the windows to use, from 0 in time order: N or N-M.",
)
@steps_option
@click.option(
    "--include-last-profiler-step", is_flag=True, help="Include the last step of two or more."
)
@click.option(
    "--infer-syncs/--no-infer-syncs",
    default=True,
    help="Infer unrecorded waits from the operations that end during them.",
)
@click.option(
    "--path", "wants_path", is_flag=True, help="Write the edges of the path instead of its summary."
)
@click.option(
    "--faster",
    type=click.FloatRange(min=0, min_open=True),
    metavar="K",
    help="Compute the length if the events of --name and --class were K times faster.",
)
@click.option("--name", metavar="TEXT", help="With --faster: only events whose name contains this.")
@click.option(
    "--class",
    "kernel_class",
    type=click.Choice(CLASSES),
    help="With --faster: only kernels of this class.",
)
@output_options
@chart_option
@verify_option
def critical_path(
    *,
    store: Path,
    runs: list[str] | None,
    ranks: list[int] | None,
    instances: list[int] | None,
    out: Output,
    chart: Path | None,
    **wanted: Any,
) -> None:
    """Find the longest chain of operators, kernels and delays of each rank of a STORE.

    The edges and nodes are available as the analyses `critical_path_edges` and
    `critical_path_nodes`.
    """
    import hta_sql  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.cli.interrupts import interruptible  # noqa: PLC0415
    from hta_sql.cli.messages import note  # noqa: PLC0415
    from hta_sql.cli.output import send  # noqa: PLC0415
    from hta_sql.critical_path import critical_paths  # noqa: PLC0415
    from hta_sql.results.display import TableRows  # noqa: PLC0415

    _check(wanted)
    keys = ("annotation", "steps", "include_last_profiler_step", "infer_syncs")
    window: dict[str, Any] = {key: wanted[key] for key in keys}
    if instances:
        window |= {"first_instance": instances[0], "last_instance": instances[-1]}
    window["include_launch_edges"] = wanted["faster"] is not None
    with hta_sql.TraceStore(store, verify=verifies()) as opened:
        table = interruptible(
            opened, lambda: _table(critical_paths(opened, runs, ranks, **window), wanted)
        )
        includes_waits = _includes_waits(table, wanted, opened)
    if not len(table):
        _explain_nothing(wanted)
    if chart:
        _draw(table, chart)
    if out.path or not chart:
        send(TableRows(table), out)
    if includes_waits:
        note(_WAITS.format(shlex.quote(label(store, runs))))


def _explain_nothing(wanted: dict[str, Any]) -> None:
    where = [f"within {named!r}" for named in (wanted["annotation"],) if named]
    where += ["in these steps"] if wanted["steps"] else []
    if where:
        remedy = (
            ""
            if wanted["include_last_profiler_step"]
            else " The last profiler step is excluded unless --include-last-profiler-step is given."
        )
        raise click.ClickException(
            f"There is no critical path: no host operator of these ranks starts {', '.join(where)}.{remedy}"
        )


def _check(wanted: dict[str, Any]) -> None:
    has_events = bool(wanted["name"] or wanted["kernel_class"])
    if (wanted["faster"] is not None) != has_events:
        raise click.UsageError("--faster requires --name or --class, and these require --faster")
    if wanted["faster"] is not None and wanted["wants_path"]:
        raise click.UsageError("--path and --faster cannot be combined")


def _table(graphs: Any, wanted: dict[str, Any]) -> pa.Table:
    from hta_sql.critical_path import tables  # noqa: PLC0415 - lazy, to start faster

    if wanted["faster"] is not None:
        return tables.what_if_table(
            graphs, wanted["faster"], wanted["name"], wanted["kernel_class"]
        )
    return tables.path_table(graphs) if wanted["wants_path"] else tables.summary_table(graphs)


def _includes_waits(table: pa.Table, wanted: dict[str, Any], opened: TraceStore) -> bool:
    """Return whether times of a table may be waits for other ranks that look like communication."""
    if wanted["faster"] is not None:
        return bool(wanted["kernel_class"] == "communication")
    if wanted["wants_path"]:
        return False
    # The first row of a rank has its largest part.
    largest: dict[tuple[str, int], str] = {}
    for row in table.select(["run", "rank", "bound_by"]).to_pylist():
        largest.setdefault((row["run"], row["rank"]), row["bound_by"])
    return any(
        bound == "gpu_communication_bound" and len(opened.ranks(run)) > 1
        for (run, _), bound in largest.items()
    )


def _draw(table: pa.Table, path: Path) -> None:
    from hta_sql.charts import save  # noqa: PLC0415
    from hta_sql.charts.path import critical_path_summary  # noqa: PLC0415
    from hta_sql.cli.messages import note  # noqa: PLC0415

    save(critical_path_summary(table.to_pandas()), path, "Critical path")
    note(f"Wrote the chart to {path}.")
