"""``hta-sql check``: checks user analyses against the rules of the library."""

from __future__ import annotations

from pathlib import Path

import click

from hta_sql.cli.messages import note
from hta_sql.text import counted


@click.command(short_help="Check your own analyses.")
@click.argument(
    "folders",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    nargs=-1,
    required=True,
    metavar="DIR...",
)
def check(*, folders: tuple[Path, ...]) -> None:
    """Check the analyses in DIR against the rules of the library, and run their golden tests.

    Every parameter and column must be documented, with its unit, as the engine reports it. An
    analysis may read only tables and lib, and must order its rows. DIR/tests/TOPIC/NAME_v1.test
    gives the expected rows. Problems are printed to stdout as path:line: message. The exit code is
    0 without problems, otherwise 1.
    """
    from hta_sql.authoring.check import counts, folder_problems  # noqa: PLC0415 - lazy, to start faster

    problems = folder_problems(folders)
    for problem in problems:
        click.echo(problem)
    if problems:
        raise click.exceptions.Exit(1)
    analyses, cases = counts(folders)
    note(f"No problems: {counted(analyses, 'SQL file')}, {counted(cases, 'golden case')}.")
