"""``hta-sql verify``: verifies that a store is intact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hta_sql.cli.messages import logged, note
from hta_sql.cli.options import STORE, audience_option

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hta_sql.store.disk.file_checks import Fault
    from hta_sql.store.maintenance.verify import Verified


@click.command(short_help="Verify that a store is intact.")
@click.argument("store", type=STORE)
@click.option(
    "--deep",
    is_flag=True,
    help="Also verify every link between events.",
)
@audience_option("json")
@click.pass_context
def verify(ctx: click.Context, *, store: Path, deep: bool, format_name: str) -> None:
    """Read all files of a STORE and compare them with its manifest. Nothing is changed.

    Checks the sizes and checksums of Parquet files, the checksum of the manifest, unpublished
    shards, and the content of the catalog. If anything is wrong, the commands that restore the store
    are printed, and the exit code is 1.
    """
    from hta_sql.store.maintenance.verify import (  # noqa: PLC0415 - lazy, to start faster
        remedies,
        verify_store,
    )

    with logged(verbose=False):
        verified = verify_store(str(store), deep=deep)
    if format_name == "json":
        click.echo(json.dumps(verified.as_json(), indent=1))
    else:
        _show_faults(verified.faults)
        _sum_up(verified)
    for sentence in remedies(str(store), verified.faults):
        note(f"{sentence}.")
    if verified.faults:
        ctx.exit(1)


def _show_faults(faults: Iterable[Fault]) -> None:
    """Print a line for each fault."""
    from hta_sql.text import printable  # noqa: PLC0415

    for fault in faults:
        click.echo(printable(str(fault)))


def _sum_up(verified: Verified) -> None:
    from hta_sql.text import counted  # noqa: PLC0415

    well = "" if verified.faults else " No faults found."
    size = verified.bytes / 1e6
    note(f"Read {counted(verified.files, 'file')}, {size:,.1f} MB.{well}")
