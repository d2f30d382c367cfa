"""``hta-sql completion``: writes the script for shell completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

PROGRAM = "hta-sql"
VARIABLE = "_HTA_SQL_COMPLETE"
"""Environment variable that the completion script sets to request completions."""


@click.command(short_help="Let a shell complete stores, runs and analyses.")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Write a script that lets a SHELL complete commands, options, stores, runs and analyses.

    \b
    hta-sql completion bash >> ~/.bashrc
    hta-sql completion zsh >> ~/.zshrc
    hta-sql completion fish > ~/.config/fish/completions/hta-sql.fish
    """  # noqa: D301 - \b is click's marker for preformatted lines
    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"completion for {shell} is not supported")
    click.echo(script(ctx.find_root().command, {}, PROGRAM, VARIABLE).source())
