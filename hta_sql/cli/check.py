"""``hta-sql check``: are a team's own analyses as they have to be?"""

from __future__ import annotations

from pathlib import Path

import click

from hta_sql.cli.messages import note
from hta_sql.text import counted


@click.command(short_help="Check analyses of your own.")
@click.argument(
    "folders",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    nargs=-1,
    required=True,
    metavar="DIR...",
)
def check(*, folders: tuple[Path, ...]) -> None:
    """Hold the analyses in DIR to the rules of the library, and ask their golden tests.

    Every parameter and column documented, with its unit, as the engine has it; nothing read but
    tables and lib; rows in an order; DIR/tests/TOPIC/NAME_v1.test gives the expected rows.

    Problems go to stdout as path:line: message. The exit code is 0 without any, 1 with some.
    """
    from hta_sql.authoring.check import counts, folder_problems  # noqa: PLC0415 - start-up cost

    problems = folder_problems(folders)
    for problem in problems:
        click.echo(problem)
    if problems:
        raise click.exceptions.Exit(1)
    analyses, cases = counts(folders)
    note(f"All is well: {counted(analyses, 'SQL file')}, {counted(cases, 'golden case')}.")
