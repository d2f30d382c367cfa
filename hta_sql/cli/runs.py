"""``hta-sql runs``: lists, tags, renames and removes the runs of a store."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import click

from hta_sql.cli.messages import logged, note
from hta_sql.cli.options import STORE, FromText, Output, output_options, tag_option, tags_of
from hta_sql.library.sql_files import query_sql
from hta_sql.text import counted, size_text

_AGE = re.compile(r"(\d{1,6})\s*([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


class Listing(click.Group):
    """A group whose default command is ``list``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert ``list`` before a store."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["list", *args]
        return super().parse_args(ctx, args)


def _age(text: str) -> timedelta:
    """Parse an age: ``30d`` is thirty days."""
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
    """List, tag, rename and remove the runs of a STORE.

    `hta-sql runs STORE` lists them; each change is a separate COMMAND. (Write ./tag for a store
    that is named like a command.) Readers see the store either before or after a change.
    """


@runs.command("list", short_help="List the runs of a store.")
@click.argument("store", type=STORE)
@output_options
def list_runs(store: Path, out: Output) -> None:
    """List the runs of a STORE: ranks, device, steps, when captured and ingested, tags, size.

    The table `runs` has all columns.
    """
    import hta_sql  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.cli.output import send  # noqa: PLC0415

    with logged(verbose=False), hta_sql.open(store) as opened:
        send(opened.sql(query_sql("runs", "listed")), out)


@runs.command(short_help="Add or remove tags of a run.")
@click.argument("store", type=STORE)
@click.argument("run")
@click.argument("tags", nargs=-1, required=True, metavar="KEY=VALUE...", callback=tags_of)
def tag(store: Path, run: str, tags: dict[str, str]) -> None:
    """Add tags to a RUN of a STORE; KEY= removes a tag."""
    from hta_sql.store.catalog.run_tags import tag_runs  # noqa: PLC0415

    with logged(verbose=False):
        tag_runs(store, [run], tags)
    note(f"Tagged run {run}. Next: hta-sql runs {store}")


@runs.command(short_help="Rename a run.")
@click.argument("store", type=STORE)
@click.argument("run")
@click.argument("name")
def rename(store: Path, run: str, name: str) -> None:
    """Rename a RUN of a STORE to NAME.

    Its files are renamed, without a copy if the file system supports links.
    """
    from hta_sql.store.maintenance.edits import rename_run  # noqa: PLC0415

    with logged(verbose=False):
        rename_run(store, run, name)
    note(f"Renamed run {run} to {name}. Ingest its traces with --run {name} from now on.")


@runs.command(short_help="Remove runs and their files.")
@click.argument("store", type=STORE)
@click.argument("names", nargs=-1, required=True, metavar="RUN...")
def remove(store: Path, names: tuple[str, ...]) -> None:
    """Remove runs and their files from a STORE. The original traces remain."""
    from hta_sql.store.maintenance.edits import remove_runs  # noqa: PLC0415

    with logged(verbose=False):
        freed = remove_runs(store, names)
    note(f"Removed {counted(len(set(names)), 'run')}, {size_text(freed)}.")


@runs.command(short_help="Remove old runs.")
@click.argument("store", type=STORE)
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    metavar="N",
    help="Keep the newest N runs, regardless of age.",
)
@tag_option("Only remove runs with this tag. May be repeated: with all of these tags.")
@click.option("--older-than", type=FromText("AGE", _age), help="Keep younger runs: 12h, 30d, 8w.")
@click.option("--dry-run", is_flag=True, help="List the runs without removing them.")
def retain(
    store: Path,
    keep: int | None,
    tags: dict[str, str],
    older_than: timedelta | None,
    *,
    dry_run: bool,
) -> None:
    """Remove the old runs of a STORE.

    The age of a run is that of its first event, or of its ingest if no trace states a time of day.
    The names of the removed runs are printed to stdout.
    """
    from hta_sql.store.maintenance.retention import retain_runs  # noqa: PLC0415

    if keep is None and older_than is None:
        raise click.UsageError("Pass the runs to keep: --keep N, --older-than AGE, or both")
    with logged(verbose=False):
        old = retain_runs(store, keep=keep, tags=tags, older_than=older_than, dry_run=dry_run)
    for run in old:
        click.echo(run)
    what = "Would remove" if dry_run else "Removed"
    note(f"{what} {counted(len(old), 'run')}.")
