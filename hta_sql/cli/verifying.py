"""The ``--verify`` option of commands that read a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_VERIFIES = "hta_sql.verifies"


def verify_option(command: Command) -> Command:
    """Add ``--verify``, whose value :func:`verifies` returns."""
    return click.option(
        "--verify",
        is_flag=True,
        expose_value=False,
        callback=lambda ctx, _param, value: ctx.meta.update({_VERIFIES: value}),
        help="Verify the checksums of all files of the store. [default: files up to 1 MB]",
    )(command)


def verifies() -> bool:
    """Return whether the running command was given ``--verify``."""
    ctx = click.get_current_context(silent=True)
    return bool(ctx and ctx.meta.get(_VERIFIES))
