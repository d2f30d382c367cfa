"""``hta-sql demo``: ingests and analyzes a synthetic job, and opens its report."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hta_sql.cli.advice import print_advice
from hta_sql.cli.messages import name_progress, note, rank_progress

if TYPE_CHECKING:
    from hta_sql.store.query.trace_store import TraceStore

STRAGGLER_DELAY_NS = 3_000_000


@click.command(short_help="Try it on a synthetic job.")
@click.option(
    "--ranks",
    type=click.IntRange(2, 512),
    metavar="N",
    default=8,
    help="Number of ranks of the job.",
)
@click.option(
    "--steps",
    type=click.IntRange(2, 1000),
    metavar="N",
    default=4,
    help="Number of profiler steps.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default="hta_sql_demo",
    help="Folder for the traces, the store and the report.",
)
@click.option(
    "--open/--no-open",
    "opens",
    default=None,
    show_default="if there is a screen",
    help="Open the report in the browser.",
)
def demo(ranks: int, steps: int, folder: Path, opens: bool | None) -> None:
    """Write the traces of a synthetic training job, ingest them and analyze them.

    One rank loads its data too slowly; the analyses identify it. The report is written, and opened
    if there is a screen. Works offline.
    """
    import hta_sql  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.synthetic import JobSpec, write_job  # noqa: PLC0415

    run = f"{ranks}ranks-{steps}steps"
    slow = (5 * ranks) // 8
    traces, store = folder / "traces" / run, folder / "demo.store"
    spec = JobSpec(ranks=ranks, steps=steps, stragglers={slow: STRAGGLER_DELAY_NS})
    job = write_job(traces, spec)
    note(f"Wrote {len(job.files)} traces, {sum(job.events):,} events: {traces}")
    with rank_progress() as progress:
        opened = hta_sql.ingest(traces, store, run=run, progress=progress)
    with opened:
        _show(opened, store, run)
        report = _report(opened, folder / "report.html", run)
    click.echo(f"\nThe report: {report}")
    if is_at_a_screen() if opens is None else opens:
        click.launch(str(report))


def is_at_a_screen() -> bool:
    """Return whether a user would see a browser: at a terminal with a display, and not in CI."""
    if not sys.stdout.isatty() or os.environ.get("CI"):
        return False
    has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.platform in {"darwin", "win32"} or bool(has_display)


def _report(opened: TraceStore, path: Path, run: str) -> Path:
    from hta_sql.report import write_report  # noqa: PLC0415 - lazy, to start faster

    with name_progress("Writing the report") as progress:
        return write_report(opened, path, runs=[run], progress=progress)


def _show(opened: TraceStore, store: Path, run: str) -> None:
    result = opened.run("stragglers", runs=[run])
    judged = result.arrow().to_pylist()
    late = [row for row in judged if row["is_straggler"]]
    two = sorted({opened.ranks(run)[0], *(row["rank"] for row in late)})
    click.echo(f"\nWhere the step time of ranks {two} goes (step_accounting):\n")
    opened.run("step_accounting", runs=[run], ranks=two).show()
    click.echo("\nSlow ranks (stragglers):\n")
    messages = [row["message"] for row in judged if row["message"]]
    for message in dict.fromkeys(messages) or ["No straggler."]:
        click.echo(message)
    click.echo("\nHow long a step would take under other conditions (what_if):\n")
    opened.run("what_if", runs=[run]).show()
    click.echo("\nWhat to do (advice):\n")
    print_advice(opened, str(store), {"runs": [run]})
    click.echo("\nTry next:")
    program, activation = program_name()
    of = shlex.quote(str(store))
    if activation:
        click.echo(f"  {activation}  # puts hta-sql on the PATH")
    for line in (
        "list",
        f"advice {of}",
        f"run {of} idle_causes",
        f"run {of} gpu_kernels_by_name --ranks 0 --num-kernels 5",
        f"run {of} collective_waits --ranks 0",
        f'sql {of} "FROM steps ORDER BY rank, step"',
    ):
        click.echo(f"  {program} {line}")


def program_name() -> tuple[str, str]:
    """Return how to call hta-sql in a shell, and the command that this requires first, if any."""
    if shutil.which("hta-sql"):
        return "hta-sql", ""
    script, activate = (Path(sys.executable).with_name(name) for name in ("hta-sql", "activate"))
    if script.is_file() and activate.is_file():
        here = Path.cwd()
        shown = activate.relative_to(here) if activate.is_relative_to(here) else activate
        return "hta-sql", f". {shlex.quote(str(shown))}"
    return f"{shlex.quote(sys.executable)} -m hta_sql", ""
