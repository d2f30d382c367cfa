"""Shell completion of analyses, and of runs in the store given on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from hta_sql.store import STORE_NAME
from hta_sql.store.disk.manifest import MANIFEST


def store_at(value: Any) -> Path:
    """Return the store for a path: the path itself, or the store inside a folder of traces."""
    folder = Path(value)
    inside = folder / STORE_NAME
    is_inside = not (folder / MANIFEST).exists() and (inside / MANIFEST).exists()
    return inside if is_inside else folder


def complete_runs(
    ctx: click.Context,
    _: click.Parameter,
    incomplete: str,
) -> list[CompletionItem]:
    """Complete a run of the store given earlier; in a comma-separated list, complete the last."""
    from hta_sql.errors import HtaSqlError  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.store.disk.manifest import read_manifest  # noqa: PLC0415

    before, comma, start = incomplete.rpartition(",")
    # While the last option has no value yet, click provides arguments but no parameters.
    given = ctx.params.get("store") or next(iter(ctx.args), None)
    if isinstance(given, tuple):
        given = given[0]  # STORE:RUN is parsed already
    if given is None:
        return []
    try:
        names = {entry.run for entry in read_manifest(store_at(given)).entries}
    except (HtaSqlError, OSError):
        return []
    return [
        CompletionItem(before + comma + name) for name in sorted(names) if name.startswith(start)
    ]


def complete_analyses(
    _: click.Context, __: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a shipped analysis."""
    from hta_sql.library.objects import load_library  # noqa: PLC0415 - lazy, to start faster

    return [
        CompletionItem(analysis.base_name, help=analysis.summary)
        for analysis in load_library().newest()
        if analysis.base_name.startswith(incomplete)
    ]
