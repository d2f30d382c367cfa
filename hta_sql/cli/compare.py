"""``hta-sql compare``: compares two runs, two ranks or two steps."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hta_sql.cli.options import INTEGERS, STORE_RUN, chart_option
from hta_sql.cli.verifying import verify_option

if TYPE_CHECKING:
    from hta_sql.comparison.changes import Comparison
    from hta_sql.store.query.trace_store import TraceStore

FORMATS = ("text", "json", "markdown")


@click.command(short_help="Show what changed between two runs.")
@click.argument("control", type=STORE_RUN, metavar="STORE:RUN")
@click.argument("tests", type=STORE_RUN, metavar="STORE:RUN...", nargs=-1)
@click.option("--ranks", type=INTEGERS, help="Ranks of the control; default: all.")
@click.option(
    "--test-ranks", type=INTEGERS, help="Ranks of the test; default: those of the control."
)
@click.option("--steps", type=INTEGERS, help="Profiler steps of the control; default: all.")
@click.option(
    "--test-steps", type=INTEGERS, help="Profiler steps of the test; default: those of the control."
)
@click.option(
    "--include-last-profiler-step",
    is_flag=True,
    help="Include the last profiler step, which is often incomplete.",
)
@click.option(
    "--renamed",
    multiple=True,
    metavar="NEW=OLD",
    help="Operator or kernel that has a different name in the test. May be repeated.",
)
@click.option(
    "--predicted",
    is_flag=True,
    help="Also compare the step of the test with the prediction of what_if for the control.",
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    default="text",
    help="markdown is for pull requests; json has exact values and all changes.",
)
@chart_option
@verify_option
def compare(
    *,
    control: tuple[Path, str | None],
    tests: tuple[tuple[Path, str | None], ...],
    ranks: list[int] | None,
    test_ranks: list[int] | None,
    steps: list[int] | None,
    test_steps: list[int] | None,
    include_last_profiler_step: bool,
    renamed: tuple[str, ...],
    predicted: bool,
    format_name: str,
    chart: Path | None,
) -> None:
    """Compare the first run with every other run: the step, its parts, and their contents.

    Times are per step, the mean over all steps and ranks. Parts sum to the step; changes in them
    are listed with their noise. Runs may be in one store or in several. Without a second run, a run
    is compared with itself, for other ranks or steps. Instead of a store, a folder of traces or a
    trace can be given, which is ingested into a temporary store.

    \b
    hta-sql compare job.store:base job.store:tuned
    hta-sql compare job.store:base --ranks 0 --test-ranks 3
    hta-sql compare job.store:base --steps 3 --test-steps 4
    hta-sql compare job.store:base job.store:fixed --predicted
    hta-sql compare traces/base traces/tuned --format markdown
    """  # noqa: D301 - \b is click's marker for preformatted lines
    from hta_sql.cli.interrupts import interruptible  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.cli.output import send_chart  # noqa: PLC0415
    from hta_sql.cli.reading import chosen_run  # noqa: PLC0415
    from hta_sql.comparison.changes import compare_steps  # noqa: PLC0415
    from hta_sql.comparison.sides import Side  # noqa: PLC0415

    if not tests and test_ranks is None and test_steps is None:
        raise click.UsageError(
            "pass a second run, or select other ranks or steps of this run with --test-ranks or --test-steps"
        )
    if predicted and any(given is not None for given in (ranks, test_ranks, steps, test_steps)):
        raise click.UsageError("--predicted compares whole runs: omit ranks and steps")
    options: dict[str, Any] = {
        "renamed": renamed,
        "predicted": predicted,
        "include_last_profiler_step": include_last_profiler_step,
    }
    with ExitStack() as opened:
        stores: dict[Path, TraceStore] = {}
        first, *others = (
            chosen_run(opened, stores, given) for given in (control, *(tests or (control,)))
        )
        base = Side(*first, ranks, steps)
        test_ranks = ranks if test_ranks is None else test_ranks
        test_steps = steps if test_steps is None else test_steps
        compared = []
        for other in others:
            question = partial(compare_steps, base, Side(*other, test_ranks, test_steps), **options)
            compared.append(interruptible(base.store, question))
        if chart:
            send_chart(compared[0].rows, chart)
            return
        _print_comparison(compared, format_name)


def _print_comparison(compared: list[Comparison], format_name: str) -> None:
    if format_name == "json":
        objects = [comparison.as_json() for comparison in compared]
        output: Any = objects[0] if len(objects) == 1 else {"comparisons": objects}
        click.echo(json.dumps(output, indent=2, ensure_ascii=False))
        return
    from hta_sql.cli.comparison import markdown_lines, text_lines  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.text import PLAIN_WIDTH  # noqa: PLC0415

    lines = markdown_lines
    if format_name == "text":
        width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
        lines = partial(text_lines, width=width)
    click.echo("\n\n".join("\n".join(lines(comparison)) for comparison in compared))
