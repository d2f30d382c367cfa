"""``hta-sql compare``: what changed between two runs, two ranks or two steps."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hta_sql.cli.messages import note
from hta_sql.cli.options import INTEGERS, STORE, chart_option, output_options

if TYPE_CHECKING:
    from hta_sql.exports.comparison import Side
    from hta_sql.store.trace_store import TraceStore

SIDES = ("host", "device")


class StoreRun(click.ParamType[tuple[Path, str | None]]):
    """``STORE:RUN``, or ``STORE`` where it has one run only."""

    name = "STORE:RUN"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Path, str | None]:
        """Split at the last colon, unless all of it is a folder or a URL."""
        if isinstance(value, tuple):
            return value
        store, colon, run = value.rpartition(":")
        if not colon or run.startswith("//") or Path(value).exists():
            return STORE.convert(value, param, ctx), None
        if not run or not store:
            self.fail(f"{value!r} is not STORE:RUN, such as job.store:base", param, ctx)
        return STORE.convert(store, param, ctx), run


STORE_RUN = StoreRun()


@click.command(short_help="What changed between two runs.")
@click.argument("control", type=STORE_RUN, metavar="STORE:RUN")
@click.argument("test", type=STORE_RUN, metavar="STORE:RUN")
@click.option("--ranks", type=INTEGERS, help="Ranks of the control; default: all.")
@click.option("--test-ranks", type=INTEGERS, help="Ranks of the test; default: as of the control.")
@click.option("--steps", type=INTEGERS, help="Profiler steps of the control; default: all.")
@click.option("--test-steps", type=INTEGERS, help="Profiler steps of the test; default: likewise.")
@click.option(
    "--include-last-profiler-step",
    is_flag=True,
    help="Include the last profiler step, in the middle of which profilers stop.",
)
@click.option("--only-side", type=click.Choice(SIDES), help="Only what runs there.")
@click.option(
    "--by-short-name",
    is_flag=True,
    help="Names without template arguments, parameters and return types.",
)
@click.option(
    "--by-shapes", is_flag=True, help="Operators with other input shapes are another operation."
)
@click.option(
    "--by-step-number",
    is_flag=True,
    help="ProfilerStep#3 and ProfilerStep#8 are two operations; else all steps are one.",
)
@output_options
@chart_option
def compare(
    *,
    control: tuple[Path, str | None],
    test: tuple[Path, str | None],
    ranks: list[int] | None,
    test_ranks: list[int] | None,
    steps: list[int] | None,
    test_steps: list[int] | None,
    format_name: str | None,
    output: Path | None,
    limit: int | None,
    chart: Path | None,
    **parameters: Any,
) -> None:
    """Say what changed from the first run to the second, what changed most first.

    Operators, calls and kernels are compared by name: how often and how long they run. Both runs
    may be in one store or in two; with other ranks or steps a run may stand against itself. In
    place of a store a folder of traces or a trace may be given, which is read into a temporary one.

    \b
    hta-sql compare job.store:base job.store:tuned --only-side device --by-short-name
    hta-sql compare job.store:base job.store:base --steps 3 --test-steps 4
    hta-sql compare traces/base traces/tuned
    """  # noqa: D301 - click's mark for lines that stay as they are
    from hta_sql.cli.interrupts import interruptible  # noqa: PLC0415
    from hta_sql.cli.output import send, send_chart  # noqa: PLC0415
    from hta_sql.cli.reading import asked  # noqa: PLC0415
    from hta_sql.exports import comparison  # noqa: PLC0415 - imports are the start-up cost

    with ExitStack() as opened:
        first = opened.enter_context(asked(control[0]))
        second = first if test[0] == control[0] else opened.enter_context(asked(test[0]))
        sides = (
            comparison.Side(first, _run(first, *control), ranks, steps),
            comparison.Side(
                second,
                _run(second, *test),
                ranks if test_ranks is None else test_ranks,
                steps if test_steps is None else test_steps,
            ),
        )
        result = interruptible(first, lambda: comparison.compare(*sides, **parameters))
        _note_unlike_sides(*sides)
    if chart:
        send_chart(result, chart)
    if output or not chart:
        send(result, format_name, output, limit)
        if len(result) and output is None and format_name in (None, "table"):
            note("change is by counts alone, diff_pct by duration.")


def _run(store: TraceStore, path: Path, run: str | None) -> str:
    runs: list[str] = store.runs()
    if run is None and len(runs) == 1:
        return runs[0]
    if run not in runs:
        wanted = f"has no run {run!r}" if run else "has several runs"
        raise click.UsageError(f"{path} {wanted}; name one: {', '.join(runs)}")
    return run


def _note_unlike_sides(control: Side, test: Side) -> None:
    """Totals of unequally many ranks or steps differ for that alone."""
    counts = {
        "ranks": [len(side.ranks or side.store.ranks(side.run)) for side in (control, test)],
        "steps": [len(side.steps or side.known_steps()) for side in (control, test)],
    }
    for what, (of_control, of_test) in counts.items():
        if of_control != of_test:
            note(
                f"note: {of_control} {what} of {control.run} against {of_test} of {test.run}; "
                f"--{what} and --test-{what} choose as many of both."
            )
