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

    Checks the checksums of Parquet files and of the manifest, footers, row counts, the run and rank
    inside each file, unpublished shards, and the content of the catalog. The exit code is 1 if
    anything is wrong; hta-sql repair then repairs what it can.
    """
    from hta_sql.store.maintenance.verify import verify_store  # noqa: PLC0415 - lazy, to start faster

    with logged(verbose=False):
        verified = verify_store(str(store), deep=deep)
    if format_name == "json":
        click.echo(json.dumps(verified.as_json(), indent=1))
    else:
        show_faults(verified.faults)
        _sum_up(verified)
    if verified.faults:
        note(f"To repair the store: hta-sql repair {store}")
        ctx.exit(1)


def show_faults(faults: Iterable[Fault]) -> None:
    """Print a line for each fault."""
    from hta_sql.text import printable, rank_spans  # noqa: PLC0415

    for fault in faults:
        noun = "ranks" if len(fault.ranks) > 1 else "rank"
        of = f" {noun} {rank_spans(fault.ranks)}" if fault.ranks else ""
        where = f" (run {fault.run}{of})" if fault.run else ""
        click.echo(printable(f"{fault.file}{where}: {fault.message}"))


def _sum_up(verified: Verified) -> None:
    from hta_sql.text import counted  # noqa: PLC0415

    well = "" if verified.faults else " No faults found."
    size = verified.bytes / 1e6
    note(f"Read {counted(verified.files, 'file')}, {size:,.1f} MB.{well}")
