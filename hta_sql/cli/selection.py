"""The argument ``STORE[:RUN]`` of commands that select runs: one notation for all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from hta_sql.cli.options import STORE_RUN, TEXT_RUN


def store_argument(
    name: str = "store", metavar: str = "STORE[:RUN]"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Create the argument ``STORE[:RUN]``; the command gets the store, and the run as its option.

    The command must have an option ``run`` or ``runs``, to which ``RUN`` is equivalent.

    Args:
        name: Name of the argument: ``store`` is passed as a path, ``traces`` as the string itself.
        metavar: Form of the argument in the help.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_run(*args: Any, **given: Any) -> Any:
            given[name], run = given[name]
            if run is not None:
                select_run(given, run)
            return command(*args, **given)

        kind = TEXT_RUN if name == "traces" else STORE_RUN
        return click.argument(name, type=kind, metavar=metavar)(with_run)

    return add


def select_run(given: dict[str, Any], run: str) -> None:
    """Set the option ``run`` or ``runs`` to a run.

    Raises:
        UsageError: The option is given as well, or the analysis has no such parameter.
    """
    option = next((key for key in ("runs", "run") if key in given), None)
    if option is None:
        raise click.UsageError(
            f"This analysis has no parameter runs: omit :{run}; --help lists its parameters"
        )
    if given[option]:
        raise click.UsageError(f"Specify the run only once: STORE:{run} or --{option}, not both")
    # An option that may be repeated is a tuple.
    several: list[str] | tuple[str, ...] = (run,) if isinstance(given[option], tuple) else [run]
    given[option] = run if option == "run" else several


def label(store: object, runs: list[str] | None) -> str:
    """Return the name of a store in printed commands: ``STORE:RUN`` if one run is selected."""
    return f"{store}:{runs[0]}" if runs and len(runs) == 1 else str(store)
