"""``hta-sql repair``: an alias of ``hta-sql verify``, which prints the command for each damage."""

from __future__ import annotations

from pathlib import Path

import click

from hta_sql.cli.messages import note
from hta_sql.cli.options import STORE
from hta_sql.cli.verify import verify


@click.command(short_help="Alias of verify, which prints the commands that restore a store.")
@click.argument("store", type=STORE)
@click.option("--deep", is_flag=True, help="Also verify every link between events.")
@click.pass_context
def repair(ctx: click.Context, *, store: Path, deep: bool) -> None:
    """Print the commands that restore a STORE. Nothing is changed.

    A damaged run is restored by ingesting its traces again with --force. The exit code is 1 if
    anything is wrong.
    """
    note("hta-sql repair is an alias of hta-sql verify; ingest --force restores a damaged run.")
    ctx.invoke(verify, store=store, deep=deep, format_name="text")
