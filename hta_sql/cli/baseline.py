"""``hta-sql baseline``: manages baselines, which are named runs with a content digest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hta_sql.cli.messages import logged, note
from hta_sql.cli.options import STORE, STORE_RUN

if TYPE_CHECKING:
    from hta_sql.comparison.baselines import BaselineFile


def _file_option(words: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE.json",
        show_default=words,
        help="Baselines file, for example one under version control.",
    )


@click.group(short_help="Name runs that gate compares others with.")
def baseline() -> None:
    """Name runs that gate compares others with.

    A baseline records the content of its run. If the content changes, gate fails.

    \b
    hta-sql baseline set main job.store:nightly
    hta-sql baseline list job.store
    hta-sql gate --baseline main --candidate job.store:change
    """  # noqa: D301 - \b is click's marker for preformatted lines


@baseline.command(name="set", short_help="Give a run a name.")
@click.argument("name")
@click.argument("run", type=STORE_RUN, metavar="STORE:RUN")
@_file_option("in the store")
def set_(*, name: str, run: tuple[Path, str | None], file: Path | None) -> None:
    """Set the baseline NAME to the RUN of a store, replacing an existing baseline of that name."""
    import hta_sql  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.cli.reading import run_in  # noqa: PLC0415

    with logged(verbose=False), hta_sql.open(run[0]) as opened:
        named = _file(file or run[0]).set(name, opened, run_in(opened, *run))
    note(f"{named.name}: run {named.run!r}, content {named.digest[:12]}.")


@baseline.command(name="list", short_help="List the names.")
@click.argument("store", type=click.Path(path_type=Path), metavar="STORE|FILE.json")
def list_(*, store: Path) -> None:
    """List the baselines of a STORE or a file: name, run, store, digest of the content."""
    for named in _file(store).read().values():
        click.echo(f"{named.name}\t{named.run}\t{named.store}\t{named.digest}")


@baseline.command(short_help="Remove a baseline.")
@click.argument("name")
@click.argument("store", type=click.Path(path_type=Path), metavar="STORE|FILE.json")
def remove(*, name: str, store: Path) -> None:
    """Remove the baseline NAME; its run remains."""
    _file(store).remove(name)


def _file(path: Path) -> BaselineFile:
    from hta_sql.comparison.baselines import BaselineFile  # noqa: PLC0415 - lazy, to start faster

    return BaselineFile(STORE.convert(path, None, None))
