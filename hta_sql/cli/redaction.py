"""Messages of ``hta-sql export --redact``: the names that are retained and replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hta_sql.cli.messages import note
from hta_sql.text import counted, printable

if TYPE_CHECKING:
    from hta_sql.exports.redaction.names import Redactor

_WIDTH = 60


def show_preview(redact: Redactor) -> None:
    """List the names that an export would retain or replace, by kind, with examples."""
    for kind, seen in sorted(redact.seen.items()):
        click.echo(f"{kind}: {seen.kept:,} kept, {seen.replaced:,} replaced")
        for name in seen.kept_examples:
            click.echo(f"    kept      {_short(name)}")
        for name, new in seen.replaced_examples:
            click.echo(f"    replaced  {_short(name)} ─▶ {_short(new) or '(removed)'}")


def print_redaction(redact: Redactor, *, has_key: bool) -> None:
    """Print the counts of retained and replaced names, and a reminder to check the files."""
    kept = {kind: seen.kept for kind, seen in sorted(redact.seen.items()) if seen.kept}
    replaced = sum(seen.replaced for seen in redact.seen.values())
    listed = ", ".join(f"{kind} {count:,}" for kind, count in kept.items())
    note(f"Redacted: {counted(replaced, 'name')} replaced; kept as public: {listed or 'none'}.")
    if redact.strangers:
        note(
            f"warning: {counted(redact.strangers, 'name')} no longer show their kind of work: "
            "the categories of these operators and kernels differ from the original."
        )
    if has_key:
        note("Keep the key secret: whoever has it can check whether a guessed name is right.")
    note(
        "Times, sizes and shapes are unchanged. Check the result before you share it: docs/redacting.md"
    )


def _short(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
