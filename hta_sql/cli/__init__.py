"""The command ``hta-sql``: data on stdout, messages on stderr, exit codes 0, 1, 2 and 130; 3 of gate.

A command is a module with one click command; the list below is all that registers it. Modules
import what costs time (the engine, pandas, pyarrow) where they use it, so that ``--help`` is
instant.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from hta_sql._version import __version__
from hta_sql.cli.advice import advice
from hta_sql.cli.baseline import baseline
from hta_sql.cli.catalog import catalog
from hta_sql.cli.check import check
from hta_sql.cli.compare import compare
from hta_sql.cli.completion import completion
from hta_sql.cli.counters import counters
from hta_sql.cli.critical_path import critical_path
from hta_sql.cli.demo import demo
from hta_sql.cli.describe import describe
from hta_sql.cli.doctor import doctor
from hta_sql.cli.export import export
from hta_sql.cli.failures import INTERRUPTED, failure_of
from hta_sql.cli.gate import gate
from hta_sql.cli.ingest import ingest
from hta_sql.cli.interrupts import Interrupts
from hta_sql.cli.listing import list_
from hta_sql.cli.materialize import materialize
from hta_sql.cli.mcp import mcp
from hta_sql.cli.messages import show_error
from hta_sql.cli.new import new
from hta_sql.cli.open import open_
from hta_sql.cli.publish import publish
from hta_sql.cli.repair import repair
from hta_sql.cli.report import report
from hta_sql.cli.run import run
from hta_sql.cli.runs import runs
from hta_sql.cli.sql import sql
from hta_sql.cli.streams import streams_there
from hta_sql.cli.verify import verify

__all__ = ["COMMANDS", "main", "program"]

COMMANDS: list[click.Command] = [
    ingest,
    list_,
    describe,
    run,
    advice,
    critical_path,
    sql,
    report,
    open_,
    compare,
    gate,
    baseline,
    doctor,
    runs,
    export,
    counters,
    publish,
    catalog,
    verify,
    repair,
    materialize,
    new,
    check,
    mcp,
    completion,
    demo,
]
"""Every command, in the order in which a new user meets them."""


class InOrder(click.Group):
    """Commands in the order of the list, and a quiet end when the reader of the output leaves."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Name the commands in the order of registration."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; a closed pipe (``| head``) ends it without a word."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _discard_output()
            ctx.exit(1)
        return result


@click.group(
    cls=InOrder,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: hta-sql demo",
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="hta-sql", message="%(prog)s %(version)s")
@click.pass_context
def program(ctx: click.Context) -> None:
    """Analyse PyTorch Profiler traces with versioned SQL.

    Traces go in once, as Parquet; every analysis is a DuckDB SQL file that runs on them.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for command in COMMANDS:
    program.add_command(command)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    with streams_there():
        return _main(args)


def _main(args: Sequence[str] | None) -> int:
    # NumPy's linear algebra, which nothing here calls, starts a thread a core that spins for a while:
    # a tenth of a second of CPU in each process. Those that are started from here inherit it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding lacks must not end a command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    interrupts = Interrupts()
    try:
        with interrupts.watched():
            code = program.main(args, prog_name="hta-sql", standalone_mode=False)
    except Exception as error:
        failure = INTERRUPTED if interrupts.seen else failure_of(error)
        if failure is None:
            raise
        show_error(failure.message)
        return failure.exit_code
    return code if isinstance(code, int) else 0


def _discard_output() -> None:
    """Let the interpreter flush what is left into nothing: the reader has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
