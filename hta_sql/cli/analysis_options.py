"""Converts the parameters of a SQL file to click options."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from hta_sql.cli.completion_candidates import complete_runs
from hta_sql.cli.options import INTEGERS
from hta_sql.library.declared import Parameter
from hta_sql.library.objects import Library, SqlObject

VALUELESS = frozenset({"-h", "--help"})
"""Options of the command ``run`` itself that take no value."""

_TRUTHS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}

_SCALARS: dict[str, Any] = {
    "BIGINT": click.INT,
    "INTEGER": click.INT,
    "DOUBLE": click.FLOAT,
    "VARCHAR": click.STRING,
}


def analysis_options(analysis: SqlObject) -> list[click.Parameter]:
    """Create an option for each parameter: name and default from the DDL, help from its comment."""
    return [_option(parameter) for parameter in analysis.parameters]


def option_name(parameter: Parameter) -> str:
    """Return the option of a parameter: ``--num-kernels`` for num_kernels."""
    return f"--{parameter.name.replace('_', '-')}"


def _option(parameter: Parameter) -> click.Option:
    flag, kind = option_name(parameter), parameter.type or "VARCHAR"
    shown = parameter.default not in (None, "NULL")
    words = f"{parameter.doc} [default: {parameter.default}]" if shown else parameter.doc
    if kind == "BOOLEAN":
        both = f"{flag}/--no-{flag[2:]}"
        return click.Option([both, parameter.name], default=None, help=words)
    if kind in ("INTEGER[]", "BIGINT[]"):
        return click.Option([flag, parameter.name], type=INTEGERS, help=words)
    if kind.endswith("[]"):
        inner = _SCALARS[kind[:-2]]
        return click.Option(
            [flag, parameter.name],
            type=inner,
            multiple=True,
            help=f"{words} May be repeated.",
            callback=_split_names if parameter.name == "runs" else _as_list,
            shell_complete=complete_runs if parameter.name == "runs" else None,
        )
    from_file = _or_file if kind == "VARCHAR" else None
    return click.Option([flag, parameter.name], type=_SCALARS[kind], help=words, callback=from_file)


def _or_file(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Return the content of a (compressed) file if the value is ``@FILE``, otherwise the value."""
    if value is None or not value.startswith("@"):
        return value
    from hta_sql.traces.side_files import text_of  # noqa: PLC0415 - lazy, because it imports the engine

    return text_of(value[1:])


def _as_list(
    _ctx: click.Context, _param: click.Parameter, values: Sequence[Any]
) -> list[Any] | None:
    """Return the values as a list, or None if there are none, so that the default applies."""
    return list(values) or None


def _split_names(
    _ctx: click.Context, _param: click.Parameter, values: Sequence[str]
) -> list[str] | None:
    """Split run names at commas, which run names cannot contain (but kernel names can)."""
    return [name for value in values for name in value.split(",") if name] or None


def scan(args: Sequence[str], library: Library) -> tuple[list[str], int | None]:
    """Return the positional arguments and ``--version`` before the analysis's options are known.

    An unknown option is assumed to take a value.
    """
    positionals: list[str] = []
    version: str | None = None
    waiting: str | None = None
    for index, arg in enumerate(args):
        if waiting is not None:
            version = arg if waiting == "--version" else version
            waiting = None
        elif arg == "--":
            return positionals + list(args[index + 1 :]), _integer(version)
        elif not arg.startswith("-") or arg == "-":
            positionals.append(arg)
        elif arg.startswith("--version="):
            version = arg.partition("=")[2]
        elif "=" not in arg and arg not in _flags(library) and not _has_value_attached(arg):
            waiting = arg
    return positionals, _integer(version)


def refuse_values_of_switches(args: Sequence[str], analysis: SqlObject, ctx: click.Context) -> None:
    """Raise if an option that is a switch has a value, as in ``--use-gpu-annotation false``.

    Raises:
        click.UsageError: The message names the switch to use.
    """
    switches = {option_name(p) for p in analysis.parameters if p.type == "BOOLEAN"}
    joined = [(option, value) for option, _, value in (arg.partition("=") for arg in args)]
    for option, value in (*pairwise(args), *joined):
        if option in switches and value.lower() in _TRUTHS:
            wanted = option if _TRUTHS[value.lower()] else f"--no-{option[2:]}"
            raise click.UsageError(f"{option} takes no value: use {wanted}", ctx)


def analyses_with(option: str, library: Library) -> list[str]:
    """Return the analyses that have an option."""
    return [a.base_name for a in library.newest() if option in map(option_name, a.parameters)]


def folders_in(args: Sequence[str]) -> list[str] | None:
    """Return the values of ``--analyses``, which affect the other options, or None if not given."""
    apart = [value for option, value in pairwise(args) if option == "--analyses"]
    joined = [arg.partition("=")[2] for arg in args if arg.startswith("--analyses=")]
    # A value that is not a folder is reported when the option is parsed.
    return [folder for folder in (*apart, *joined) if Path(folder).is_dir()] or None


def _flags(library: Library) -> frozenset[str]:
    names = {
        option_name(parameter)
        for analysis in library.analyses
        for parameter in analysis.parameters
        if parameter.type == "BOOLEAN"
    }
    return VALUELESS | names | {f"--no-{name[2:]}" for name in names}


def _has_value_attached(arg: str) -> bool:
    """Return whether an option has its value attached, as in ``-ofile``."""
    return not arg.startswith("--") and len(arg) > 2


def _integer(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
