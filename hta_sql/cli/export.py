"""``hta-sql export``: writes analyses and tables of a store to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hta_sql.cli.messages import note
from hta_sql.cli.options import INTEGERS, analyses_option, runs_option
from hta_sql.cli.selection import store_argument
from hta_sql.cli.verifying import verifies, verify_option
from hta_sql.errors import HtaSqlError
from hta_sql.store.disk.manifest import MANIFEST
from hta_sql.text import counted, printable

if TYPE_CHECKING:
    from hta_sql.exports.exports import Exported, Selection
    from hta_sql.exports.redaction.names import Redactor

EXPORT_FORMATS = ("parquet", "csv", "xlsx", "duckdb", "speedscope", "trace")
_SUFFIXES = {".xlsx": "xlsx", ".duckdb": "duckdb", ".json": "speedscope"}
_WIDTH = 60


@click.command(short_help="Write analyses and tables as files.")
@store_argument()
@click.argument("names", nargs=-1)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(EXPORT_FORMATS),
    show_default="by the suffix of --output, else parquet",
    help="parquet and csv: a folder with a file for each name; xlsx: a sheet for each; duckdb: one "
    "file with all data, views and macros inside; speedscope: flame graphs of device and host time; trace: with --redact, "
    "the trace of each rank, or of STORE, which may be a trace or a folder of traces then.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    show_default="required, except with --dry-run",
    help="Folder (parquet, csv, trace) or file (xlsx, duckdb, speedscope, one trace).",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="xlsx without NAMES: every analysis and all rows that fit, instead of the tables of a report "
    "with up to 10,000 rows each.",
)
@runs_option
@click.option("--ranks", type=INTEGERS, show_default="all", help="Ranks to export.")
@analyses_option
@verify_option
@click.option(
    "--redact",
    is_flag=True,
    help="Replace by hashes all names, paths, hosts and annotations that are not known to be public.",
)
@click.option(
    "--redact-key",
    metavar="TEXT",
    show_default="a new one each time",
    help="Key of the hashes: equal names are equal in all exports with the same key.",
)
@click.option(
    "--dry-run", is_flag=True, help="Only list the names that --redact would preserve and replace."
)
def export(
    *,
    store: Path,
    names: tuple[str, ...],
    format_name: str | None,
    output: Path | None,
    runs: list[str] | None,
    ranks: list[int] | None,
    everything: bool,
    analyses: tuple[Path, ...] | None,
    redact: bool,
    redact_key: str | None,
    dry_run: bool,
) -> None:
    """Write analyses and tables of a STORE as files.

    NAMES are analyses, with their default parameters, and tables; without any, every analysis, or in
    a workbook (xlsx) those that a report shows for every job.
    `run` and `sql` write one result with other parameters. If a result cannot be computed, the
    others are written, and the exit code is 1.

    \b
    hta-sql export job.store -o job.xlsx
    hta-sql export job.store temporal_breakdown gpu_ops --format csv -o folder
    hta-sql export job.store -o job.duckdb --ranks 0-3
    hta-sql export job.store -o job.speedscope.json
    hta-sql export job.store -o shared.duckdb --redact
    hta-sql export trace.json.gz -o shared.json.gz --redact
    """  # noqa: D301 - \b is click's marker for preformatted lines
    import hta_sql  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.exports.exports import Selection  # noqa: PLC0415
    from hta_sql.exports.exports import export as write  # noqa: PLC0415

    if not redact and (dry_run or redact_key is not None or format_name == "trace"):
        raise click.UsageError("--dry-run, --redact-key and --format trace require --redact")
    if redact and analyses:
        raise click.UsageError("--redact does not export your own analyses: omit --analyses")
    selection = Selection(names, runs or (), ranks or (), everything)
    if dry_run:
        _redacted(store, None, format_name, redact_key, selection)
        return
    if output is None:
        raise click.UsageError("Missing option '-o' / '--output'.")
    if output.suffix.lower() in (".csv", ".parquet") and not output.is_dir():
        raise click.UsageError(
            f"{output.suffix[1:]} is written to a folder, one file per name. To write a single file: "
            f"hta-sql sql {store} 'FROM NAME' -o {output}"
        )
    if redact:
        written = _redacted(store, output, format_name, redact_key, selection)
    else:
        chosen = format_name or _SUFFIXES.get(output.suffix.lower(), "parquet")
        with hta_sql.open(store, analyses=analyses, verify=verifies()) as opened:
            written = write(opened, output, chosen, selection)
    _summarize(written, store, output)


def _summarize(written: list[Exported], store: Path, output: Path) -> None:
    """Print what was written and what is missing.

    Raises:
        HtaSqlError: A result could not be computed.
    """
    for part in written:
        if part.left_out:
            note(
                f"warning: {part.name}: {part.left_out:,} of the {part.row_count + part.left_out:,} rows are "
                "not in its sheet; to export all rows, use --format parquet."
            )
    failed = [part for part in written if part.failure]
    for part in failed:
        note(f"warning: {part.name} could not be computed: {part.failure}")
    note(
        f"Wrote {counted(len(written) - len(failed), 'result')}, {counted(sum(p.row_count for p in written), 'row')} to {output}."
    )
    if failed:
        raise HtaSqlError(
            f"{counted(len(failed), 'result')} could not be computed: "
            f"{', '.join(part.name for part in failed)}. See the warnings above. To see whether files are "
            f"damaged: hta-sql verify {store}"
        )


def _redacted(
    store: Path,
    output: Path | None,
    format_name: str | None,
    key: str | None,
    selection: Selection,
) -> list[Exported]:
    """Write a redacted export; without an output, list what the export would contain."""
    from hta_sql.exports.redaction import names  # noqa: PLC0415
    from hta_sql.exports.redaction.exporting import TRACE, export_redacted, preview  # noqa: PLC0415

    redact = names.Redactor(key)
    is_store = (store / MANIFEST).exists()
    if format_name is None:
        by_suffix = _SUFFIXES.get(output.suffix.lower(), "parquet") if output else "parquet"
        format_name = by_suffix if is_store else TRACE
    if output is None:
        preview(store, format_name, redact, selection)
        show_preview(redact)
        return []
    written = export_redacted(store, output, format_name, redact, selection)
    print_redaction(redact, has_key=key is not None)
    return written


def show_preview(redact: Redactor) -> None:
    """List the names that an export would retain or replace, by kind, with examples."""
    for kind, seen in sorted(redact.seen.items()):
        click.echo(f"{kind}: {seen.kept:,} kept, {seen.replaced:,} replaced")
        for name in seen.kept_examples:
            click.echo(f"    kept      {_short(name)}")
        for name, new in seen.replaced_examples:
            click.echo(f"    replaced  {_short(name)} ─▶ {_short(new) or '(removed)'}")


def print_redaction(redact: Redactor, *, has_key: bool) -> None:
    """Print the counts of retained and replaced names, and a reminder to check the files."""
    kept = {kind: seen.kept for kind, seen in sorted(redact.seen.items()) if seen.kept}
    replaced = sum(seen.replaced for seen in redact.seen.values())
    listed = ", ".join(f"{kind} {count:,}" for kind, count in kept.items())
    note(f"Redacted: {counted(replaced, 'name')} replaced; kept as public: {listed or 'none'}.")
    if redact.strangers:
        note(
            f"warning: {counted(redact.strangers, 'name')} no longer show their kind of work: "
            "the categories of these operators and kernels differ from the original."
        )
    if has_key:
        note("Keep the key secret: whoever has it can check whether a guessed name is right.")
    note(
        "Times, sizes and shapes are unchanged. Check the result before you share it: docs/redacting.md"
    )


def _short(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
