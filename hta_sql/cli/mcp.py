"""``hta-sql mcp``: serves stores as tools of an agent."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click

from hta_sql.cli.options import STORE, analyses_option, memory_options
from hta_sql.cli.verifying import verifies, verify_option
from hta_sql.serve.mcp.limits import Limits as LimitsOfAnswers


@click.command(short_help="Serve stores to an agent (Model Context Protocol).")
@click.argument("stores", type=STORE, nargs=-1, required=True, metavar="STORE...")
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=LimitsOfAnswers.rows,
    help="Maximum rows of a result.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=LimitsOfAnswers.seconds,
    help="Interrupt a query after this time.",
)
@memory_options
@analyses_option
@verify_option
def mcp(
    *,
    stores: tuple[Path, ...],
    rows: int,
    seconds: float,
    memory_limit: str | None,
    spill_limit: str,
    analyses: tuple[Path, ...] | None,
) -> None:
    """Serve STOREs on stdin and stdout to a client of the Model Context Protocol.

    Its tools list, describe and run analyses, run read-only SQL queries, return the findings of
    doctor and advice, and compare runs. Needs pip install 'hta_sql[mcp]'.
    """
    from hta_sql.serve.mcp.server import make_server  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.store.catalog.materialize import materialize_if_free  # noqa: PLC0415
    from hta_sql.store.query.limits import Limits  # noqa: PLC0415
    from hta_sql.store.query.trace_store import TraceStore  # noqa: PLC0415

    for store in stores:
        materialize_if_free(store)
    open_safely = partial(
        TraceStore,
        memory_limit=memory_limit,
        safe=True,
        limits=Limits(seconds, spill=spill_limit),
        analyses=analyses,
        verify=verifies(),
    )
    with ExitStack() as opened:
        found = {n: opened.enter_context(open_safely(p)) for n, p in _named(stores).items()}
        make_server(found, LimitsOfAnswers(rows, seconds)).run()


def _named(stores: tuple[Path, ...]) -> dict[str, Path]:
    """Name each store by its folder, or by its path if two folders have the same name."""
    names = [path.name for path in stores]
    return {path.name if names.count(path.name) == 1 else str(path): path for path in stores}
