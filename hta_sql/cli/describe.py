"""``hta-sql describe``: documentation of an analysis, a table or a shared macro."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from hta_sql.cli.options import analyses_option
from hta_sql.cli.terminal import Heading, show
from hta_sql.errors import AnalysisNotFoundError, nearest
from hta_sql.library.declared import Column, Parameter
from hta_sql.library.header import CHART
from hta_sql.library.objects import Library, SqlObject
from hta_sql.library.user_analyses import library_with

_LABEL = 11
_WIDEST = 110


@click.command(short_help="Describe an analysis, a table or a macro.")
@click.argument("name")
@click.option(
    "--version",
    type=int,
    metavar="N",
    show_default="newest stable",
    help="Version of the analysis.",
)
@analyses_option
@click.option("--sql", "shows_sql", is_flag=True, help="Print the SQL file instead.")
def describe(
    *, name: str, version: int | None, analyses: tuple[Path, ...] | None, shows_sql: bool
) -> None:
    """Describe an analysis, a table or a lib macro: parameters, columns, units.

    NAME is a name as in `hta-sql list`, with or without version, a table such as gpu_ops, or a
    macro such as lib.merged_intervals.
    """
    found = find_object(name, library_with(analyses), version)
    if shows_sql:
        click.echo(found.text, nl=False)
        return
    show(_lines(found))


def find_object(name: str, library: Library, version: int | None = None) -> SqlObject:
    """Return an analysis, table or macro by name; the prefix ``lib.`` selects a macro.

    Raises:
        AnalysisNotFoundError: There is no object of that name; the message suggests the nearest.
    """
    shared = {found.name: found for found in (*library.tables, *library.macros)}
    found = shared.get(name.removeprefix("lib."))
    if found and version is None and not library.versions(name):
        return found
    try:
        return library.find(name, version)
    except AnalysisNotFoundError:
        names = {analysis.base_name for analysis in library.analyses} | set(shared)
        if name in names or library.versions(name):
            raise
        raise AnalysisNotFoundError(
            f"No analysis, table or macro {name!r}.{nearest(name, names)} "
            "See all analyses: hta-sql list"
        ) from None


def _lines(found: SqlObject) -> Iterator[str]:
    is_macro = found.is_macro
    yield Heading(f"lib.{found.name}" if is_macro else found.name)
    yield from _wrapped(found.full_description)
    yield ""
    own = {"Title": found.title, "Status": found.status}
    facts = {**own, **found.facts} if found.version else found.facts
    facts = {label: text for label, text in facts.items() if label != CHART}
    for label, text in {**facts, "SQL": str(found.path)}.items():
        yield f"{label + ':':<{_LABEL}}{text}"
    if found.parameters:
        yield from ("", Heading("Parameters"))
        yield from _entries([(p.name, _parameter_type(p), p.doc) for p in found.parameters])
    if found.columns:
        title = "Returns" if found.is_scalar else "Columns"
        yield from ("", Heading(title))
        yield from _entries([(c.name, _column_type(c), c.doc) for c in found.columns])
    if found.version:
        yield from ("", f"Run it: hta-sql run STORE {found.base_name}")
        yield f"In SQL: FROM {found.name}({_example(found)})"


def _parameter_type(parameter: Parameter) -> str:
    kind = parameter.type or "any"
    return f"{kind} = {parameter.default}" if parameter.default else kind


def _column_type(column: Column) -> str:
    return f"{column.type} [{column.unit}]" if column.unit else column.type


def _example(analysis: SqlObject) -> str:
    names = [parameter.name for parameter in analysis.parameters]
    return "ranks := [0]" if "ranks" in names else ""


def _entries(entries: list[tuple[str, str, str]]) -> Iterator[str]:
    """Yield lines with three aligned columns; the text in the last column is wrapped."""
    names = max(len(name) for name, _, _ in entries)
    kinds = max(len(kind) for _, kind, _ in entries)
    for name, kind, doc in entries:
        head = f"  {name:<{names}}  {kind:<{kinds}}  "
        first, *rest = textwrap.wrap(
            doc, max(30, _width() - len(head)), break_on_hyphens=False
        ) or [""]
        yield head + first
        yield from (" " * len(head) + line for line in rest)


def _wrapped(text: str) -> Iterator[str]:
    """Yield an empty line and the wrapped lines of each paragraph; each list item is a new line."""
    for paragraph in text.split("\n\n"):
        yield ""
        for item in re.split(r"\n(?=- )", paragraph):
            indent = "  " if item.startswith("- ") else ""
            plain = " ".join(item.split())
            yield from textwrap.wrap(
                plain, _width(), subsequent_indent=indent, break_on_hyphens=False
            )


def _width() -> int:
    return min(shutil.get_terminal_size((_WIDEST, 24)).columns, _WIDEST)
