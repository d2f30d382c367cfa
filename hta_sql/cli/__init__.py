"""The command ``hta-sql``: writes data to stdout and messages to stderr, and sets an exit code.

Exit codes are 0, 1, 2 and 130 (Ctrl-C). ``gate`` also returns 3, and ``hang`` returns 4.

A command is a module with one click command of the same name. The list below registers the
commands; a module is imported when its command is called. Modules import slow dependencies (the
engine, pandas, pyarrow) only where they are used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

from hta_sql._version import __version__
from hta_sql.cli.failures import INTERRUPTED, failure_of
from hta_sql.cli.interrupts import Interrupts
from hta_sql.cli.messages import note, show_error
from hta_sql.cli.questions import QUESTIONS
from hta_sql.cli.streams import streams_there
from hta_sql.cli.terminal import escaping_terminals
from hta_sql.exhausted import tight_address_space
from hta_sql.traces.compiled import reader_at_work

if TYPE_CHECKING:
    from hta_sql.cli.query_watch import QueryWatch

__all__ = ["COMMANDS", "command_of", "main", "program"]

COMMANDS = (
    "ingest",
    "list",
    "describe",
    "run",
    "advice",
    "hang",
    "critical-path",
    "sql",
    "report",
    "open",
    "explore",
    "serving",
    "compare",
    "gate",
    "baseline",
    "doctor",
    "runs",
    "export",
    "counters",
    "publish",
    "ingest-rank",
    "catalog",
    "verify",
    "repair",
    "materialize",
    "new",
    "check",
    "mcp",
    "completion",
    "demo",
)
"""Every command, in the order in which a new user needs them."""

_WORDS_OF_PYTHON = {"list": ("listing", "list_"), "open": ("open", "open_")}
"""Module and function of commands whose names would shadow Python's builtins."""


def command_of(name: str) -> click.Command:
    """Import a command."""
    plain = name.replace("-", "_")
    module, function = _WORDS_OF_PYTHON.get(name, (plain, plain))
    command: click.Command = getattr(import_module(f"hta_sql.cli.{module}"), function)
    return command


class InOrder(click.Group):
    """Lists commands in the order of :data:`COMMANDS`; a closed output pipe ends them quietly."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - signature of click
        """Return the names of the commands, in the order of :data:`COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import only the called command."""
        return command_of(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the questions before the commands."""
        with formatter.section("Questions about a JOB: a store, a trace or a folder of traces"):
            formatter.write_dl(QUESTIONS)
        super().format_commands(ctx, formatter)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; a closed pipe (``| head``) ends it without a message."""
        if warning := tight_address_space():
            note(f"warning: {warning}")
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _discard_output()
            ctx.exit(1)
        return result


@click.group(
    cls=InOrder,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
    epilog="Start with: hta-sql demo",
    invoke_without_command=True,
)
@click.version_option(
    __version__, prog_name="hta-sql", message=f"%(prog)s %(version)s (reader: {reader_at_work()})"
)
@click.pass_context
def program(ctx: click.Context) -> None:
    """Analyse PyTorch Profiler traces with versioned SQL.

    Traces are ingested once, into Parquet; every analysis is a DuckDB SQL file that runs on it.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    with streams_there():
        for stream in (sys.stdout, sys.stderr):
            # A name that the terminal's encoding cannot represent must not abort a command.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        with escaping_terminals():
            try:
                watch = _query_watch() if args is None and sys.argv[1:2] == ["sql"] else None
            except OSError as error:  # no process can be started
                return _exit_code(error)
            return _main(args, watch)


def _query_watch() -> QueryWatch:
    from hta_sql.cli.query_watch import QueryWatch  # noqa: PLC0415 - lazy, to start faster

    return QueryWatch()


def _main(args: Sequence[str] | None, watch: QueryWatch | None) -> int:
    # NumPy's linear algebra is not used here, but starts a spinning thread per core: 0.1 s of CPU
    # in each process. Child processes inherit the setting.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    interrupts = Interrupts(is_process=args is None)
    try:
        with interrupts.watched():
            code = program.main(args, prog_name="hta-sql", standalone_mode=False, obj=watch)
    except Exception as error:  # noqa: BLE001 - bugs are raised again
        return _exit_code(error, is_interrupted=interrupts.seen)
    return code if isinstance(code, int) else 0


def _exit_code(error: Exception, *, is_interrupted: bool = False) -> int:
    """Show the message of an error, and return its exit code; raise an error that is a bug."""
    failure = INTERRUPTED if is_interrupted else failure_of(error)
    if failure is None:
        raise error
    show_error(failure.message)
    return failure.exit_code


def _discard_output() -> None:
    """Redirect stdout to the null device, so that the final flush does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
