"""``hta-sql runs``: the runs of a store, their tags and names, and which of them stay."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import click

from hta_sql.cli.messages import logged, note
from hta_sql.cli.options import STORE, FromText, Output, output_options, tag_option, tags_of
from hta_sql.text import counted, size_text

_AGE = re.compile(r"(\d{1,6})\s*([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


class Listing(click.Group):
    """A group that lists what is there where no command of its own is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the name of the list before a store."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["list", *args]
        return super().parse_args(ctx, args)


def _age(text: str) -> timedelta:
    """``30d`` is thirty days."""
    match = _AGE.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not an age such as 12h, 30d or 8w")
    return timedelta(**{_UNITS[match.group(2)]: int(match.group(1))})


@click.group(
    cls=Listing,
    short_help="List, tag, rename and remove runs.",
    subcommand_metavar="STORE | COMMAND",
)
def runs() -> None:
    """List the runs of a STORE, tag, rename and remove them.

    `hta-sql runs STORE` lists them; each change is a COMMAND of its own. (A store that is called like
    one of them is ./tag.) Readers see the store of before a change or of after.
    """


@runs.command("list", short_help="List the runs of a store.")
@click.argument("store", type=STORE)
@output_options
def list_runs(store: Path, out: Output) -> None:
    """List the runs of a STORE: ranks, device, steps, when captured and ingested, tags, size.

    All that is known of them is in the table `runs`.
    """
    import hta_sql  # noqa: PLC0415 - imports are the start-up cost
    from hta_sql.cli.output import send  # noqa: PLC0415

    query = (
        "SELECT run, rank_count, world_size, device_names, step_count, captured_at, ingested_at, tags, "
        "size_bytes FROM runs ORDER BY start_ns, run"
    )
    with logged(verbose=False), hta_sql.open(store) as opened:
        send(opened.sql(query), out)


@runs.command(short_help="Add tags to a run, or take some away.")
@click.argument("store", type=STORE)
@click.argument("run")
@click.argument("tags", nargs=-1, required=True, metavar="KEY=VALUE...", callback=tags_of)
def tag(store: Path, run: str, tags: dict[str, str]) -> None:
    """Add tags to a RUN of a STORE; KEY= takes one away."""
    from hta_sql.store.catalog.run_tags import tag_runs  # noqa: PLC0415

    with logged(verbose=False):
        tag_runs(store, [run], tags)
    note(f"Tagged run {run}. Next: hta-sql runs {store}")


@runs.command(short_help="Give a run another name.")
@click.argument("store", type=STORE)
@click.argument("run")
@click.argument("name")
def rename(store: Path, run: str, name: str) -> None:
    """Give a RUN of a STORE another NAME.

    Its files get new names, without a copy where the file system has links.
    """
    from hta_sql.store.maintenance.edits import rename_run  # noqa: PLC0415

    with logged(verbose=False):
        rename_run(store, run, name)
    note(f"Run {run} is {name} now; its traces are read again with --run {name}.")


@runs.command(short_help="Remove runs and their files.")
@click.argument("store", type=STORE)
@click.argument("names", nargs=-1, required=True, metavar="RUN...")
def remove(store: Path, names: tuple[str, ...]) -> None:
    """Remove runs from a STORE, and their files. The traces stay where they are."""
    from hta_sql.store.maintenance.edits import remove_runs  # noqa: PLC0415

    with logged(verbose=False):
        freed = remove_runs(store, names)
    note(f"Removed {counted(len(set(names)), 'run')}, {size_text(freed)}.")


@runs.command(short_help="Remove the runs that are old enough.")
@click.argument("store", type=STORE)
@click.option(
    "--keep", type=click.IntRange(min=0), metavar="N", help="The newest N runs stay, however old."
)
@tag_option("Only runs with this tag are removed; may be repeated: with all of them.")
@click.option(
    "--older-than", type=FromText("AGE", _age), help="Runs that are younger stay: 12h, 30d, 8w."
)
@click.option("--dry-run", is_flag=True, help="Name the runs, and remove none.")
def retain(
    store: Path,
    keep: int | None,
    tags: dict[str, str],
    older_than: timedelta | None,
    *,
    dry_run: bool,
) -> None:
    """Remove the runs of a STORE that nobody wants any more.

    A run is as old as its first event; where no trace of it says a time of day, as its ingest. The
    names of those that are removed go to stdout.
    """
    from hta_sql.store.maintenance.retention import retain_runs  # noqa: PLC0415

    if keep is None and older_than is None:
        raise click.UsageError("Say what stays: --keep N, --older-than AGE, or both")
    with logged(verbose=False):
        old = retain_runs(store, keep=keep, tags=tags, older_than=older_than, dry_run=dry_run)
    for run in old:
        click.echo(run)
    what = "Would remove" if dry_run else "Removed"
    note(f"{what} {counted(len(old), 'run')}.")
