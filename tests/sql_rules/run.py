"""The command ``python -m tests.sql_rules.run``: problems on stderr, exit code 1."""

from __future__ import annotations

import click

from hta_sql.library.sql_files import sql_root
from tests.sql_rules.frozen import freeze, refreeze
from tests.sql_rules.problems import find_problems


@click.command()
@click.option("--freeze", "lock", is_flag=True, help="Lock the analyses released so far.")
@click.option(
    "--refreeze", "again", is_flag=True, help="Lock changed macros without a changed answer."
)
def main(lock: bool, again: bool) -> None:
    """Check the SQL library against its rules and the engine."""
    if again:
        for name in refreeze(sql_root()):
            click.echo(f"frozen again: {name}", err=True)
    if lock:
        for name in freeze(sql_root()):
            click.echo(f"frozen: {name}", err=True)
    problems = find_problems()
    for problem in problems:
        click.echo(problem, err=True)
    if problems:
        raise SystemExit(1)
    click.echo("The SQL library keeps its rules.", err=True)


if __name__ == "__main__":
    main()
