"""``hta-sql export``: analyses and tables of a store as files."""

from __future__ import annotations

from pathlib import Path

import click

from hta_sql.cli.messages import note
from hta_sql.cli.options import INTEGERS, STORE, analyses_option
from hta_sql.words import counted

EXPORT_FORMATS = ("parquet", "csv", "xlsx", "duckdb", "speedscope")
_SUFFIXES = {".xlsx": "xlsx", ".duckdb": "duckdb", ".json": "speedscope"}


@click.command(short_help="Write analyses and tables as files.")
@click.argument("store", type=STORE)
@click.argument("names", nargs=-1)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(EXPORT_FORMATS),
    show_default="by the suffix of --output, else parquet",
    help="parquet and csv: a folder with a file for each name; xlsx: a sheet for each; duckdb: one "
    "file with all data, views and macros inside; speedscope: flame graphs of device and host time.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder (parquet, csv) or file (xlsx, duckdb, speedscope).",
)
@click.option("--runs", multiple=True, metavar="RUN", help="Runs. May be repeated. [default: all]")
@click.option("--ranks", type=INTEGERS, show_default="all", help="Ranks.")
@analyses_option
def export(
    *,
    store: Path,
    names: tuple[str, ...],
    format_name: str | None,
    output: Path,
    runs: tuple[str, ...],
    ranks: list[int] | None,
    analyses: tuple[Path, ...] | None,
) -> None:
    """Write analyses and tables of a STORE as files.

    NAMES are analyses, with their default parameters, and tables; without any, every analysis.
    `run` and `sql` write one result with other parameters.

    \b
    hta-sql export job.store -o job.xlsx
    hta-sql export job.store temporal_breakdown gpu_ops --format csv -o folder
    hta-sql export job.store -o job.duckdb --ranks 0-3
    hta-sql export job.store -o job.speedscope.json
    """  # noqa: D301 - click's mark for lines that stay as they are
    import hta_sql  # noqa: PLC0415 - imports are the start-up cost
    from hta_sql.exports.exports import Selection  # noqa: PLC0415
    from hta_sql.exports.exports import export as write  # noqa: PLC0415

    if output.suffix.lower() in (".csv", ".parquet") and not output.is_dir():
        raise click.UsageError(
            f"{output.suffix[1:]} goes into a folder, a file for each name. One file: "
            f"hta-sql sql {store} 'FROM NAME' -o {output}"
        )
    chosen = format_name or _SUFFIXES.get(output.suffix.lower(), "parquet")
    with hta_sql.open(store, analyses=analyses) as opened:
        written = write(opened, output, chosen, Selection(names, runs, ranks or ()))
    for part in written:
        if part.left_out:
            note(
                f"warning: {part.name}: a sheet has no room for {part.left_out:,} of its "
                f"{part.row_count + part.left_out:,} rows; --format parquet holds all."
            )
    note(
        f"Wrote {counted(len(written), 'name')}, {sum(p.row_count for p in written):,} rows to {output}."
    )
