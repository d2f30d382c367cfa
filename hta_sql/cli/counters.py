"""``hta-sql counters``: writes traces with counter tracks, for a trace viewer."""

from __future__ import annotations

from pathlib import Path

import click

from hta_sql.cli.messages import logged, note
from hta_sql.cli.options import INTEGERS, run_option
from hta_sql.cli.selection import store_argument
from hta_sql.cli.verifying import verifies, verify_option
from hta_sql.text import printable

SERIES = ("queue", "memory")


@click.command(short_help="Write traces with counter tracks.")
@store_argument()
@click.option(
    "--series",
    type=click.Choice(SERIES),
    multiple=True,
    show_default="both",
    help="queue: operations waiting on each stream; memory: bandwidth of copies by kind. May be "
    "repeated.",
)
@run_option
@click.option("--ranks", type=INTEGERS, show_default="all of the run", help="Ranks to write.")
@click.option("--include-last-profiler-step", is_flag=True, help="Include the last profiler step.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    show_default="next to each trace",
    help="Folder to write to.",
)
@verify_option
def counters(
    *,
    store: Path,
    series: tuple[str, ...],
    run: str | None,
    ranks: list[int] | None,
    include_last_profiler_step: bool,
    output: Path | None,
) -> None:
    """Write the traces of a STORE with counter tracks, to open in Perfetto or Chrome.

    Existing events are unchanged. The files are named *_with_counters.json.gz, which ingest skips.
    Their paths are printed to stdout.

    \b
    hta-sql counters job.store --ranks 0 -o /tmp
    """  # noqa: D301 - \b is click's marker for preformatted lines
    import hta_sql  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.overlay.counters import write_counters  # noqa: PLC0415

    with logged(verbose=False), hta_sql.open(store, verify=verifies()) as opened:
        name = run or opened.runs()[0]
        opened.check_scope({"runs": [name]})
        for rank in ranks if ranks is not None else opened.ranks(name):
            done = write_counters(
                opened,
                name,
                rank,
                series or SERIES,
                output_dir=output,
                include_last_profiler_step=include_last_profiler_step,
            )
            click.echo(printable(done.path))
            note(f"rank {rank}: {done.events:,} events and {done.added:,} points.")
