"""``hta-sql run``: runs one analysis, with options from the parameters in its SQL file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hta_sql.cli.analysis_options import (
    analyses_with,
    analysis_options,
    folders_in,
    refuse_values_of_switches,
    scan,
)
from hta_sql.cli.completion_candidates import complete_analyses
from hta_sql.cli.failures import HELP_COMMAND
from hta_sql.cli.options import (
    Output,
    analyses_option,
    chart_option,
    memory_limit_option,
    output_options,
    roles_option,
)
from hta_sql.cli.selection import store_argument
from hta_sql.cli.verifying import verify_option
from hta_sql.library.objects import SqlObject
from hta_sql.library.user_analyses import library_with
from hta_sql.text import first_of

_ANALYSIS = "hta_sql.analysis"
_PARAMS = "hta_sql.params"


class AnalysisCommand(click.Command):
    """A command with its own options plus those of the analysis named in its arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the analysis first, then parse with its options."""
        library = library_with(folders_in(args))
        positionals, version = scan(args, library)
        known = {name for a in library.analyses for name in (a.name, a.base_name)}
        name = next(iter(positionals[1:2]), None)
        if name is None and positionals and positionals[0] in known:
            name = positionals[0]
            if not Path(name).exists() and not {"-h", "--help"} & set(args):
                raise click.UsageError(f"No store given: hta-sql run STORE {name}", ctx)
        elif (
            name is not None
            and name not in known
            and positionals[0] in known
            and not Path(positionals[0]).exists()
        ):
            raise click.UsageError(
                f"{positionals[0]!r} is an analysis; pass the store first: "
                f"hta-sql run {name} {positionals[0]}",
                ctx,
            )
        if name is not None:
            ctx.meta[_ANALYSIS] = library.find(name, version)
            ctx.meta[HELP_COMMAND] = f"{ctx.command_path} STORE {name}"
            refuse_values_of_switches(args, ctx.meta[_ANALYSIS], ctx)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if found := analyses_with(error.option_name, library):
                raise click.UsageError(
                    f"{name} has no option {error.option_name}, an option of {first_of(found, 3)}",
                    ctx,
                ) from error
            raise

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """List the command's own parameters and those of the analysis."""
        if _PARAMS not in ctx.meta:
            analysis = ctx.meta.get(_ANALYSIS)
            extra = analysis_options(analysis) if analysis else []
            ctx.meta[_PARAMS] = [*super().get_params(ctx), *extra]
        params: list[click.Parameter] = ctx.meta[_PARAMS]
        return params

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description of the analysis instead of the command's."""
        analysis: SqlObject | None = ctx.meta.get(_ANALYSIS)
        if analysis is None:
            super().format_help_text(ctx, formatter)
            return
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(f"{analysis.name}: {analysis.full_description}")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the analysis and of the command in two sections."""
        own: set[click.Parameter | None] = {*self.params, self.get_help_option(ctx)}
        params = self.get_params(ctx)
        sections: dict[str, list[click.Parameter]] = {
            "Parameters": [p for p in params if p not in own],
            "Options": [p for p in params if p in own and isinstance(p, click.Option)],
        }
        for title, members in sections.items():
            records = [record for p in members if (record := p.get_help_record(ctx))]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


@click.command(cls=AnalysisCommand, short_help="Run an analysis on a store.")
@store_argument(metavar="STORE[:RUN]|TRACES")
@click.argument("name", shell_complete=complete_analyses)
@click.option(
    "--version",
    type=int,
    metavar="N",
    show_default="newest stable",
    help="Version of the analysis.",
)
@roles_option
@analyses_option
@memory_limit_option
@verify_option
@click.option(
    "--executor",
    metavar="NAME",
    show_default="this machine",
    help="Compute it on a Dask cluster, dask://HOST:PORT, whose workers see the store.",
)
@output_options
@chart_option
def run(
    *,
    store: Path,
    name: str,
    version: int | None,
    analyses: tuple[Path, ...] | None,
    memory_limit: str | None,
    executor: str | None,
    out: Output,
    chart: Path | None,
    **parameters: Any,
) -> None:
    """Run an analysis on a STORE, or on TRACES (these are ingested into a temporary store).

    Its parameters are options: `hta-sql run STORE NAME --help` lists them. NAME may end in a
    version, as in temporal_breakdown_v1.
    """
    from hta_sql.cli.interrupts import interruptible  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.cli.output import send, send_chart, send_head, shown_rows  # noqa: PLC0415
    from hta_sql.cli.reading import open_to_query  # noqa: PLC0415
    from hta_sql.ingestion.running.executors import PROCESSES, executor_for  # noqa: PLC0415
    from hta_sql.results.without_device import without_device  # noqa: PLC0415

    given = {key: value for key, value in parameters.items() if value is not None}
    rows = None if chart or executor else shown_rows(out)
    with (
        executor_for(executor or PROCESSES) as pool,
        open_to_query(store, analyses, memory_limit) as opened,
    ):
        given |= {"version": version}
        if rows:
            head = interruptible(opened, lambda: opened.head(name, rows, **given))
            send_head(
                head, rows, "" if len(head) else without_device(opened.run, head.analysis, given)
            )
            return
        given |= {"executor": pool}
        result = interruptible(opened, lambda: opened.run(name, **given))
        if chart:
            send_chart(result, chart)
        no_rows = "" if len(result) else without_device(opened.run, result.analysis, given)
    if out.path or not chart:
        send(result, out, no_rows)
