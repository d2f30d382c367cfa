"""Options and parameter types shared by several commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from hta_sql.cli.completion_candidates import complete_runs, store_at
from hta_sql.machine import QUERY_ROWS, QUERY_SECONDS, QUERY_SPILL
from hta_sql.text import TABLE_ROWS

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
"""A decorator that adds options to a command."""

Value = TypeVar("Value")

FORMATS = ("table", "csv", "json", "parquet", "arrow", "markdown")
SUFFIXES = {
    ".csv": "csv",
    ".json": "json",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".md": "markdown",
    ".txt": "table",
}
CHART_SUFFIXES = (".html", ".png", ".svg", ".json")

_SPAN = re.compile(r"^(-?\d+)(?:-(\d+))?$")
_SHARD = re.compile(r"^(\d{1,9})/(\d{1,9})$")
_MEMORY = re.compile(r"^\d+(\.\d+)?\s*([KMGT]i?)?B$", re.IGNORECASE)


class FromText(click.ParamType[Value]):
    """A parameter type parsed by a function.

    Args:
        name: Name in the help.
        made: Function that parses the string; its ValueError describes the expected form.
        completed: Shell completion type, such as ``dir``.
    """

    def __init__(
        self, name: str, made: Callable[[str], Value], completed: str | None = None
    ) -> None:
        self.name = name
        self._made = made
        self._completed = completed

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Value:
        """Parse the value, unless it has already been parsed."""
        if not isinstance(value, str):
            made: Value = value
            return made
        try:
            return self._made(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the value according to its shell completion type."""
        if self._completed is None:
            return super().shell_complete(ctx, param, incomplete)
        return [CompletionItem(incomplete, type=self._completed)]


def _integers(text: str) -> list[int]:
    """Parse ``0,1-3`` to ``[0, 1, 2, 3]``."""
    numbers: list[int] = []
    for part in text.split(","):
        match = _SPAN.match(part.strip())
        if not match:
            raise ValueError(f"{text!r} is not a list of integers such as 0,1-3")
        first = int(match.group(1))
        last = int(match.group(2)) if match.group(2) else first
        if not first <= last < first + 1_000_000:
            raise ValueError(f"{part.strip()!r} is not an ascending range")
        numbers.extend(range(first, last + 1))
    return numbers


def _memory_size(text: str) -> str:
    """Validate a size in the engine's notation, such as ``512MiB`` or ``2GB``."""
    if not _MEMORY.match(text):
        raise ValueError(f"{text!r} is not a size such as 512MiB or 2GB")
    return text


def _shard(text: str) -> tuple[int, int]:
    """Parse a shard: ``3/16`` is the third of sixteen shards."""
    match = _SHARD.match(text)
    if not match or not 1 <= int(match.group(1)) <= int(match.group(2)):
        raise ValueError(f"{text!r} is not a shard such as 1/16 or 16/16")
    return int(match.group(1)), int(match.group(2))


def _text_run(text: str) -> tuple[str, str | None]:
    """Split ``STORE:RUN`` at the last colon; an existing path or a URL is a store without a run.

    Raises:
        ValueError: There is nothing before or after the colon.
    """
    store, colon, run = text.rpartition(":")
    if not colon or run.startswith("//") or Path(text).exists():
        return text, None
    if not run or not store:
        raise ValueError(f"{text!r} is not of the form STORE:RUN, such as job.store:base")
    return store, run


def _store_run(text: str) -> tuple[Path, str | None]:
    """Split ``STORE:RUN`` as :func:`_text_run` does, and locate the store."""
    store, run = _text_run(text)
    return store_at(store), run


INTEGERS = FromText("N,N-M", _integers)
SHARD = FromText("I/N", _shard)
MEMORY_SIZE = FromText("SIZE", _memory_size)
STORE = FromText("store", store_at, "dir")
"""A store, or a folder of traces with a store inside; validated when it is opened."""
STORE_RUN = FromText("STORE:RUN", _store_run, "dir")
TEXT_RUN = FromText("STORE:RUN", _text_run, "dir")
"""Like :data:`STORE_RUN`, but the text before the colon may also be a path of traces."""


def tags_of(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Split ``key=value`` at the first equals sign."""
    tags = {}
    for value in values:
        tag, equals, text = value.partition("=")
        if not equals:
            raise click.BadParameter(f"{value!r} is not of the form key=value")
        tags[tag] = text
    return tags


def tag_option(words: str) -> Option:
    """Create ``--tag KEY=VALUE``, which may be repeated."""
    return click.option(
        "--tag", "tags", multiple=True, metavar="KEY=VALUE", callback=tags_of, help=words
    )


materialize_option = click.option(
    "--materialize",
    is_flag=True,
    help="Materialize the small answers, as hta-sql materialize does.",
)


def all_of(*options: Option) -> Option:
    """Combine options into one decorator; the help lists them in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def _names(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    return [name for part in (value or "").split(",") if (name := part.strip())] or None


run_option = click.option(
    "--runs",
    "run",
    metavar="RUN",
    shell_complete=complete_runs,
    show_default="the first",
    help="The run to use; only one.",
)
"""``--runs`` for one run: a name, or None for the first run."""

runs_option = click.option(
    "--runs",
    metavar="RUN,RUN",
    callback=_names,
    shell_complete=complete_runs,
    show_default="all",
    help="Runs to include.",
)
"""``--runs``: a list, or None for all runs."""

scope_options = all_of(
    runs_option,
    click.option("--ranks", type=INTEGERS, help="Ranks to include, for example 0,1-3."),
)
"""``--runs`` and ``--ranks``: lists, or None for all."""

steps_option = click.option(
    "--steps", type=INTEGERS, show_default="all", help="Profiler steps to include, for example 5-8."
)

roles_option = click.option(
    "--roles",
    metavar="ROLE,ROLE",
    callback=_names,
    show_default="all",
    help="Only ranks with these roles (trainer, rollout, ...), as if no other rank was ingested.",
)


def _of_known_suffix(ctx: click.Context, _: click.Parameter, value: Path | None) -> Path | None:
    """Raise if a file's suffix does not belong to a known format, unless --format is given."""
    suffix = value.suffix.lower() if value else ""
    if not suffix or suffix in SUFFIXES or ctx.params.get("format_name"):
        return value
    sheets = "; for spreadsheets, use hta-sql export" if suffix.startswith(".xls") else ""
    raise click.UsageError(
        f"-o needs a file name that ends in {', '.join(SUFFIXES)}; otherwise, specify --format{sheets}",
        ctx,
    )


@dataclass(frozen=True)
class Output:
    """Format and destination of rows.

    Attributes:
        format_name: One of :data:`FORMATS`; None: by the path's suffix, otherwise a table.
        path: File; None: stdout.
        limit: Maximum number of rows; 0: all; None: the default of the format.
        columns: Columns to write, in this order; None: all.
    """

    format_name: str | None = None
    path: Path | None = None
    limit: int | None = None
    columns: Sequence[str] | None = None


_output_options = all_of(
    click.option(
        "--format",
        "format_name",
        type=click.Choice(FORMATS),
        is_eager=True,
        show_default="by the suffix of --output, else table",
        help="table and markdown are for people (134.511 ms); csv, json, parquet and arrow have exact values.",
    ),
    click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=_of_known_suffix,
        help="Write the data to this file instead of stdout.",
    ),
    click.option(
        "--limit",
        type=click.IntRange(min=0),
        metavar="N",
        show_default=f"{TABLE_ROWS} in a table on stdout, else all",
        help="Show the first N rows; 0 shows all.",
    ),
    click.option(
        "--columns",
        metavar="NAME,NAME",
        callback=_names,
        show_default="all",
        help="Columns to show, in this order.",
    ),
)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--format``, ``--output``, ``--limit``, ``--columns``, passed as ``out``."""

    @wraps(command)
    def with_output(
        *,
        format_name: str | None,
        output: Path | None,
        limit: int | None,
        columns: list[str] | None,
        **rest: Any,
    ) -> Any:
        return command(out=Output(format_name, output, limit, columns), **rest)

    return _output_options(with_output)


memory_options = all_of(
    click.option(
        "--memory-limit",
        type=MEMORY_SIZE,
        show_default="60 % of the memory",
        help="Memory of the engine; this process may use half as much in addition.",
    ),
    click.option(
        "--spill-limit",
        type=MEMORY_SIZE,
        default=QUERY_SPILL,
        help="Maximum size of the data that spills to the temporary folder.",
    ),
)

limit_options = all_of(
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=QUERY_SECONDS,
        metavar="SECONDS",
        help="Interrupt the query after this time.",
    ),
    click.option(
        "--max-rows",
        type=click.IntRange(min=1),
        default=QUERY_ROWS,
        metavar="N",
        help="Fail if the result has more rows.",
    ),
    memory_options,
)

memory_limit_option = click.option(
    "--memory-limit",
    type=MEMORY_SIZE,
    show_default="60 % of the memory",
    help="Memory of the engine; data that does not fit spills to the temporary folder.",
)
"""``--memory-limit`` of a command that only runs queries."""

analyses_option = click.option(
    "--analyses",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    callback=lambda _ctx, _param, folders: folders or None,
    metavar="DIR",
    show_default="$HTA_SQL_ANALYSES",
    help="Folder with your own analyses, in addition to the shipped ones. May be repeated.",
)
"""``--analyses``: folders, or None if none is given."""


def audience_option(as_json: str) -> Option:
    """Create ``--format text|json`` for commands that print messages.

    Args:
        as_json: Description of the JSON, for the help.
    """
    return click.option(
        "--format",
        "format_name",
        type=click.Choice(["text", "json"]),
        default="text",
        help=f"text for people, {as_json} for programs.",
    )


def _drawable(ctx: click.Context, _: click.Parameter, value: Path | None) -> Path | None:
    """Raise before any computation if a file's suffix is not a chart format."""
    if value and value.suffix.lower() not in CHART_SUFFIXES:
        raise click.UsageError(
            f"--chart needs a file name that ends in {', '.join(CHART_SUFFIXES)}", ctx
        )
    return value


chart_option = click.option(
    "--chart",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_drawable,
    help="Draw the result into this .html, .png, .svg or .json (Vega-Lite) file instead.",
)
