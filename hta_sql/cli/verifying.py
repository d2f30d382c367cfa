"""The ``--verify`` option of commands that read a store."""

from __future__ import annotations

import click

_VERIFIES = "hta_sql.verifies"


verify_option = click.option(
    "--verify",
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, _param, value: ctx.meta.update({_VERIFIES: value}),
    help="Verify the checksums of all files of the store. [default: files up to 1 MB]",
)
"""``--verify``, whose value :func:`verifies` returns."""


def verifies() -> bool:
    """Return whether the running command was given ``--verify``."""
    ctx = click.get_current_context(silent=True)
    return bool(ctx and ctx.meta.get(_VERIFIES))
