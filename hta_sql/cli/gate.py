"""``hta-sql gate``: decides whether a run passes (exit code 0), fails (1) or is inconclusive (3)."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hta_sql.cli.messages import note
from hta_sql.cli.options import STORE, STORE_RUN
from hta_sql.cli.verifying import verify_option

if TYPE_CHECKING:
    from hta_sql.comparison.gate import Outcome, Rules
    from hta_sql.comparison.sides import Side
    from hta_sql.store.query.trace_store import TraceStore

FORMATS = ("text", "json", "junit", "markdown")
SUFFIXES = {".txt": "text", ".json": "json", ".xml": "junit", ".md": "markdown"}
EXIT_CODES = {"passed": 0, "failed": 1, "inconclusive": 3}


def _show_rules(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        from hta_sql.comparison.gate import DEFAULT_RULES  # noqa: PLC0415 - lazy, to start faster

        click.echo(DEFAULT_RULES.read_text(encoding="utf-8"), nl=False)
        ctx.exit()


@click.command(short_help="Check a run by rules against a baseline, for CI.")
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    required=True,
    metavar="STORE:RUN|TRACES|NAME",
    help="Run to compare with. May be repeated: the spread of three or more runs is the noise.",
)
@click.option(
    "--candidate",
    type=STORE_RUN,
    required=True,
    metavar="STORE:RUN|TRACES",
    help="The run to check.",
)
@click.option(
    "--rules",
    "rules_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    show_default="those of --show-rules",
    help="TOML file of [[rule]] tables.",
)
@click.option(
    "--baselines",
    "names",
    type=click.Path(path_type=Path),
    metavar="STORE|FILE",
    show_default="the candidate's store",
    help="Where the NAME of a baseline is defined.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="FACT",
    help="A difference between the runs to allow, such as 'world size'. May be repeated.",
)
@click.option(
    "--allow-not-comparable", is_flag=True, help="Allow every difference between the runs."
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    show_default="text; of --output by its suffix",
    help="text and markdown are for people, json has exact values, junit is for CI systems.",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    type=click.Path(dir_okay=False, path_type=Path),
    multiple=True,
    help="Also write the result to this file: .txt, .json, .xml (JUnit) or .md. May be repeated.",
)
@click.option(
    "--show-rules",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_rules,
    help="Print the default rules, as a starting point for your own file.",
)
@verify_option
@click.pass_context
def gate(
    ctx: click.Context,
    *,
    baselines: tuple[str, ...],
    candidate: tuple[Path, str | None],
    rules_file: Path | None,
    names: Path | None,
    allow: tuple[str, ...],
    allow_not_comparable: bool,
    format_name: str | None,
    outputs: tuple[Path, ...],
) -> None:
    """Decide whether a run passes: rules on any column of any analysis, against a baseline.

    A limit that is broken within the noise, or with too few steps, is inconclusive. A missing
    number fails, and so do runs that cannot be compared. Exit codes: 0 passed, 1 failed, 2 usage, 3
    inconclusive.

    \b
    hta-sql gate --baseline job.store:main --candidate job.store:change
    hta-sql gate --baseline traces/main --candidate traces/change --rules gate.toml -o gate.xml
    """  # noqa: D301 - \b is click's marker for preformatted lines
    from hta_sql.cli.interrupts import interruptible  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.cli.reading import chosen_run  # noqa: PLC0415
    from hta_sql.comparison.gate import gate as judged  # noqa: PLC0415
    from hta_sql.comparison.sides import Side  # noqa: PLC0415
    from hta_sql.errors import ParameterError  # noqa: PLC0415

    formats = [format_name or _format_of(path, ctx) for path in outputs]
    rules = _rules(rules_file, ctx)
    with ExitStack() as opened:
        stores: dict[Path, TraceStore] = {}
        run = Side(*chosen_run(opened, stores, candidate))
        where = names or candidate[0]
        sides = [_baseline(opened, stores, text, where) for text in baselines]

        def ask() -> Outcome:
            return judged(
                sides,
                run,
                rules.rules,
                allow=(*rules.allow, *allow),
                allow_not_comparable=allow_not_comparable,
            )

        try:
            outcome = interruptible(run.store, ask)
        except ParameterError as error:
            raise click.UsageError(_of_file(rules_file, str(error)), ctx) from error
        _print_outcome(outcome, format_name, dict(zip(outputs, formats, strict=True)))
    ctx.exit(EXIT_CODES[outcome.verdict])


def _format_of(path: Path, ctx: click.Context) -> str:
    if path.suffix.lower() not in SUFFIXES:
        raise click.UsageError(f"-o needs a file name that ends in {', '.join(SUFFIXES)}", ctx)
    return SUFFIXES[path.suffix.lower()]


def _rules(path: Path | None, ctx: click.Context) -> Rules:
    from hta_sql.comparison.gate import DEFAULT_RULES, read_rules  # noqa: PLC0415
    from hta_sql.errors import AnalysisError  # noqa: PLC0415 - lazy, to start faster

    try:
        return read_rules(path or DEFAULT_RULES)
    except AnalysisError as error:
        raise click.UsageError(str(error), ctx) from error


def _of_file(path: Path | None, message: str) -> str:
    return f"{path}: {message}" if path else message


def _baseline(opened: ExitStack, stores: dict[Path, TraceStore], text: str, names: Path) -> Side:
    """Open a baseline given as a store or by name; the digest of a named baseline is verified."""
    from hta_sql.cli.reading import chosen_run, opened_once  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.comparison.baselines import BaselineFile, check_unchanged, is_name  # noqa: PLC0415
    from hta_sql.comparison.sides import Side  # noqa: PLC0415

    if not is_name(text) or Path(text).exists():
        return Side(*chosen_run(opened, stores, STORE_RUN.convert(text, None, None)))
    file = BaselineFile(STORE.convert(names, None, None))
    baseline = file.find(text)
    store = opened_once(opened, stores, Path(baseline.store))
    check_unchanged(baseline, store, file.path)
    return Side(store, baseline.run)


def _print_outcome(outcome: Outcome, format_name: str | None, outputs: dict[Path, str]) -> None:
    from hta_sql.cli.gate_output import FORMATS as WRITERS  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.traces.writing import replacing  # noqa: PLC0415

    for path, name in outputs.items():
        with replacing(path) as partial:
            partial.write_text(WRITERS[name](outcome), encoding="utf-8")
        note(f"Wrote {path}.")
    click.echo(WRITERS["text" if outputs else format_name or "text"](outcome), nl=False)
