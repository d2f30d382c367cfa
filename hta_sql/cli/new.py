"""``hta-sql new``: creates the files of a user analysis."""

from __future__ import annotations

from pathlib import Path

import click

from hta_sql.cli.messages import note


@click.command(short_help="Write the files of a new analysis.")
@click.argument("kind", type=click.Choice(["analysis"]), metavar="analysis")
@click.argument("name")
@click.option(
    "--topic",
    default="own",
    help="Folder below DIR, and heading in lists and reports.",
)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default="analyses",
    metavar="DIR",
    help="Folder of your own analyses; created if missing.",
)
def new(*, kind: str, name: str, topic: str, into: Path) -> None:  # noqa: ARG001 - only one kind exists
    """Write the two files of a user analysis NAME, which work unchanged.

    DIR/TOPIC/NAME_v1.sql is the analysis, DIR/tests/TOPIC/NAME_v1.test its golden test, on a tiny
    trace next to it. Change them, then run: hta-sql check DIR.
    """
    from hta_sql.authoring.new import write_new_analysis  # noqa: PLC0415 - lazy, to start faster

    for path in write_new_analysis(name, topic, into):
        click.echo(path)
    note(f"Next: hta-sql check {into}; hta-sql run STORE {name} --analyses {into}")
