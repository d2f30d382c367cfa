"""``hta-sql report``: writes a report of a store as one HTML file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from hta_sql.cli.messages import name_progress, note
from hta_sql.cli.options import (
    analyses_option,
    memory_limit_option,
    roles_option,
    scope_options,
)
from hta_sql.cli.selection import store_argument
from hta_sql.cli.verifying import verify_option
from hta_sql.errors import HtaSqlError


def _refuse_steps(ctx: click.Context, _: click.Parameter, steps: str | None) -> None:
    """Explain how to select steps, because the report always covers all of them."""
    if steps is not None:
        raise click.UsageError(
            f"a report covers all steps; choose one on its page, or use hta-sql run STORE NAME --steps {steps}",
            ctx,
        )


@click.command(short_help="Write charts, tables and SQL into one HTML file.")
@store_argument(metavar="STORE[:RUN]|TRACES")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The HTML file.",
)
@scope_options
@click.option("--steps", hidden=True, expose_value=False, callback=_refuse_steps)
@roles_option
@analyses_option
@memory_limit_option
@verify_option
@click.option("--title", help="Title of the page.", show_default="names of the runs")
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=200,
    help="Maximum rows of a table; a note below it counts the others.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Write all sections, also those that nothing on the page points to.",
)
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
def report(
    *,
    store: Path,
    output: Path,
    analyses: tuple[Path, ...] | None,
    memory_limit: str | None,
    opens: bool,
    **wanted: Any,
) -> None:
    """Write one HTML file about what costs most in a STORE, with charts, tables and their SQL.

    Each topic has its main sections, and those that the recommendations and findings about this job
    name; --all adds the others.

    TRACES that are not ingested are read into a temporary store.

    The file works offline: it contains its scripts and all of its data. If an analysis cannot be
    computed, its section shows the error, and the exit code is 1.
    """
    from hta_sql.cli.output import check_folder_of  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.cli.reading import open_to_query  # noqa: PLC0415
    from hta_sql.report import write_report  # noqa: PLC0415

    check_folder_of(output)
    started = time.perf_counter()
    failures: dict[str, str] = {}
    with (
        open_to_query(store, analyses, memory_limit) as opened,
        name_progress("Writing the report") as progress,
    ):
        write_report(opened, output, progress=progress, failures=failures, **wanted)
    size = output.stat().st_size / 1e6
    note(f"Wrote {output} ({size:.1f} MB) in {time.perf_counter() - started:.1f} s.")
    if opens:
        click.launch(str(output))
    if failures:
        raise HtaSqlError(
            f"The report shows errors instead of {', '.join(sorted(failures))}, which could not be computed. "
            "The rest of the report is complete."
        )
