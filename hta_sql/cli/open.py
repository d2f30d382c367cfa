"""``hta-sql open``: opens a job, or a part of it, in the Perfetto UI."""

from __future__ import annotations

import re
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hta_sql.cli.messages import logged, note
from hta_sql.cli.options import INTEGERS, run_option
from hta_sql.cli.selection import store_argument
from hta_sql.cli.verifying import verifies, verify_option
from hta_sql.machine import temporary_folder

if TYPE_CHECKING:
    from hta_sql.overlay.looks import Look
    from hta_sql.overlay.slices import Slice

ORIGIN, PORT = "https://ui.perfetto.dev", 9001


@click.command("open", short_help="Open a job, or a part of it, in Perfetto.")
@store_argument()
@run_option
@click.option(
    "--ranks",
    "--rank",
    "ranks",
    type=INTEGERS,
    show_default="the first",
    help="Ranks to show, on a common clock.",
)
@click.option("--steps", "--step", "steps", type=INTEGERS, help="Profiler steps to show.")
@click.option(
    "--iterations",
    "--iteration",
    "iterations",
    type=INTEGERS,
    help="Iterations of a serving engine to show, from 1.",
)
@click.option(
    "--finding", metavar="ID", help="Show the events of a recommendation: its finding_id or rule."
)
@click.option("--event", type=int, metavar="ID", help="Show the event with this event_id.")
@click.option(
    "--category",
    "categories",
    metavar="NAME",
    multiple=True,
    help="Only events of this category: kernel, cpu_op, user_annotation … May be repeated.",
)
@click.option("--critical-path", is_flag=True, help="Mark the critical path.")
@click.option("--counters", is_flag=True, help="Add queue length and bandwidth of copies.")
@click.option(
    "--align/--no-align",
    default=True,
    help="Correct the clock offsets between ranks.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Only write the trace: .json or .json.gz.",
)
@click.option("--print", "only_prints", is_flag=True, help="Print the URL; open no browser.")
@click.option(
    "--origin",
    default=ORIGIN,
    metavar="URL",
    help="URL of the Perfetto UI, for example your own.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    help="Port on 127.0.0.1; Perfetto's page reads from 9001 only.",
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    metavar="S",
    help="Seconds to wait for the browser to read the trace.",
)
@verify_option
def open_(*, store: Path, output: Path | None, only_prints: bool, **options: Any) -> None:
    """Open a rank of a STORE in the Perfetto UI, or some ranks, steps, iterations or categories.

    The trace is served once, from 127.0.0.1 to the browser only. It is read from the original trace
    files.

    \b
    hta-sql open job.store --rank 3 --step 12
    hta-sql open job.store --finding launch_bound
    hta-sql open job.store --iteration 40
    hta-sql open job.store --ranks 0-7 --step 12 --category kernel
    """  # noqa: D301 - \b is click's marker for preformatted lines
    import hta_sql  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.overlay.looks import look_at  # noqa: PLC0415
    from hta_sql.overlay.slices import write_slice  # noqa: PLC0415

    keys = ("run", "ranks", "steps", "iterations", "finding", "event")
    more = ("align", "critical_path", "counters")
    with logged(verbose=False), hta_sql.open(store, verify=verifies()) as opened:
        look = look_at(
            opened,
            **{key: options[key] for key in keys},
            categories=options["categories"] or None,
            **{key: options[key] for key in more},
        )
        if output:
            _print_slice(write_slice(opened, look.wanted, output), look)
            click.echo(output)
            return
        with temporary_folder() as folder:
            target = Path(folder, f"{_file_name(look)}.json.gz")
            written = write_slice(opened, look.wanted, target)
            _print_slice(written, look)
            _serve(target, look.view(written), options, only_prints=only_prints)


def _file_name(look: Look) -> str:
    """Return the file name that the Perfetto UI shows."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", look.title)[:80]


def _print_slice(written: Slice, look: Look) -> None:
    size = Path(written.path).stat().st_size / 1e6
    note(f"{look.title}: {written.events:,} events, {size:,.1f} MB.")


def _serve(path: Path, view: dict[str, int], options: dict[str, Any], *, only_prints: bool) -> None:
    from hta_sql.serve.perfetto import TraceServer  # noqa: PLC0415 - lazy, to start faster

    with TraceServer(path, options["origin"], options["port"]) as server:
        url = server.link(view)
        if only_prints or not webbrowser.open(url):
            click.echo(url)
        note("Serving the trace until the browser has read it; press Ctrl-C to stop.")
        if not server.serve(options["wait"]):
            raise click.ClickException(
                f"No browser read the trace within {options['wait']:g} s. Open the URL while this command is running."
            )
