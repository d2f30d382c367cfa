"""``hta-sql sql``: runs one SQL query on a store."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from hta_sql.cli.options import (
    STORE,
    FromText,
    Output,
    analyses_option,
    limit_options,
    output_options,
)
from hta_sql.cli.verifying import verifies, verify_option

if TYPE_CHECKING:
    from hta_sql.cli.query_watch import QueryWatch

SCRIPTS = str(Path(sys.executable).parent)
"""Folder of commands installed in this Python environment, where harlequin may be."""


def _assignment(text: str) -> tuple[str, Any]:
    """Split ``name=value``; the value is an integer, a number, a Boolean, or else a string."""
    name, separator, value = text.partition("=")
    if not separator or not name.isidentifier():
        raise ValueError(f"{text!r} is not of the form name=value")
    return name, _typed(value)


def _typed(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@click.command(short_help="Run one SQL query on a store.")
@click.argument("store", type=STORE)
@click.argument("query", required=False)
@click.option(
    "-f",
    "--file",
    type=click.File(encoding="utf-8"),
    help="Read the query from this file; - is stdin.",
)
@click.option(
    "-p",
    "--parameter",
    "parameters",
    type=FromText("NAME=VALUE", _assignment),
    multiple=True,
    help="Value for $name in the query, bound as a parameter. May be repeated.",
)
@click.option(
    "--unsafe",
    is_flag=True,
    help="Also allow other files, ATTACH, COPY, extensions, settings, several statements, and set "
    "no limits but the memory.",
)
@limit_options
@analyses_option
@verify_option
@output_options
def sql(
    *,
    store: Path,
    query: str | None,
    file: IO[str] | None,
    parameters: tuple[tuple[str, Any], ...],
    unsafe: bool,
    timeout: float,
    max_rows: int,
    memory_limit: str | None,
    spill_limit: str,
    analyses: tuple[Path, ...] | None,
    out: Output,
) -> None:
    """Run one SQL query on a STORE's tables, analyses and macros.

    QUERY is DuckDB's SQL; - reads it from stdin. It can read the store and nothing else, unless
    --unsafe is given. Without a query on a terminal, it starts harlequin: an editor with the list
    of tables and columns (pip install 'hta_sql[tui]').

    \b
    hta-sql sql job.store "SELECT class, sum(dur) AS dur_ns FROM gpu_ops GROUP BY ALL"
    hta-sql sql job.store "FROM temporal_breakdown(ranks := [0])" --format csv
    """  # noqa: D301 - \b is click's marker for preformatted lines
    if query is None and file is None and sys.stdin.isatty() and sys.stdout.isatty():
        _start_terminal_client(store, analyses)
        return
    _check_order(store, query)
    text = _query_text(query, file)
    from hta_sql.cli.interrupts import interruptible  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.cli.output import send  # noqa: PLC0415
    from hta_sql.library.user_analyses import library_with  # noqa: PLC0415
    from hta_sql.replay.watch import Watch  # noqa: PLC0415
    from hta_sql.store.catalog.materialize import materialize_for  # noqa: PLC0415
    from hta_sql.store.query.limits import Limits, bounded_process  # noqa: PLC0415
    from hta_sql.store.query.worker import HostedStore  # noqa: PLC0415

    watch = Watch(None if unsafe else timeout, memory_limit)
    materialize_for(store, text, library_with(analyses), watch)
    limits = None if unsafe else Limits(timeout, max_rows, spill_limit)
    watched: QueryWatch | None = click.get_current_context().obj
    with (
        nullcontext() if unsafe else bounded_process(memory_limit),
        HostedStore(  # this process runs nothing else, so it runs the query itself
            store,
            memory_limit=memory_limit,
            safe=not unsafe,
            limits=limits,
            analyses=analyses,
            verify=verifies(),
        ) as opened,
        watched.during(text, timeout) if watched and not unsafe else nullcontext(),
    ):
        result = interruptible(opened, lambda: opened.sql(text, dict(parameters)))
    send(result, out)


def _start_terminal_client(store: Path, analyses: tuple[Path, ...] | None) -> None:
    """Start harlequin on the catalog, read-only."""
    import hta_sql  # noqa: PLC0415 - lazy, to start faster

    program = shutil.which("harlequin", path=os.pathsep.join((SCRIPTS, os.environ.get("PATH", ""))))
    if program is None:
        raise click.UsageError(
            'Pass a query: hta-sql sql STORE "FROM analyses". For an editor in the terminal: '
            "pip install 'hta_sql[tui]', then hta-sql sql STORE"
        )
    with hta_sql.open(
        store, analyses=analyses
    ) as opened:  # reports problems, and refreshes the catalog
        catalog = opened.catalog_path
    ended = subprocess.run(  # noqa: S603 - a program installed by the user, no shell
        [program, "--read-only", catalog], check=False
    )
    if ended.returncode:
        raise click.exceptions.Exit(1)


def _check_order(store: Path, query: str | None) -> None:
    # os.path, because a query is not a path, and may be too long for one.
    if query and not store.exists() and os.path.isdir(query):  # noqa: PTH112 - see above
        raise click.UsageError(
            f"{str(store)!r} is the query; pass the store first: "
            f"hta-sql sql {query} {shlex.quote(str(store))}"
        )


def _query_text(query: str | None, file: IO[str] | None) -> str:
    if (query is None) == (file is None):
        raise click.UsageError(
            "Pass exactly one query: as an argument, with -f FILE, or with - for stdin"
        )
    stream = sys.stdin if query == "-" else file
    text = stream.read() if stream else str(query)
    if not text.strip():
        raise click.UsageError("The query is empty")
    return text
