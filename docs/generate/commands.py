"""Write the reference in docs/cli.md from the commands themselves.

``python -m docs.generate.commands docs/cli.md`` rewrites the text between the markers of the page.
A test checks that the file is current.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from docs.generate.page import with_reference
from hta_sql.cli import COMMANDS, command_of, program

BEGIN = "<!-- reference: made by python -m docs.generate.commands; do not edit below -->"


def main(paths: list[str]) -> None:
    """Rewrite the generated part of each file."""
    for path in map(Path, paths):
        path.write_text(updated(path.read_text(encoding="utf-8")), encoding="utf-8")


def updated(text: str) -> str:
    """Return a page with the text between its markers replaced by the current reference."""
    return with_reference(text, BEGIN, reference())


def reference() -> str:
    """Describe every command in Markdown."""
    root = click.Context(program, info_name="hta-sql", **program.context_settings)
    return "\n".join(line for name in COMMANDS for line in _section(command_of(name), root))


def _section(command: click.Command, root: click.Context) -> Iterator[str]:
    ctx = click.Context(command, info_name=command.name, parent=root)
    yield f"### {ctx.command_path}"
    yield ""
    yield "```"
    yield " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    yield "```"
    for paragraph in _paragraphs(command.help or ""):
        yield ""
        yield paragraph
    yield ""
    if isinstance(command, click.Group):
        for one in command.commands.values():
            yield from _section(one, ctx)
        return
    yield "| option | meaning |"
    yield "|---|---|"
    for param in command.get_params(ctx):
        is_own = isinstance(param, click.Option) and param is not command.get_help_option(ctx)
        record = param.get_help_record(ctx) if is_own else None
        if record:
            flags, words = (" ".join(part.replace("|", "\\|").split()) for part in record)
            words = re.sub(r"\[default: \((.*)\)", r"[default: \1", words)
            yield f"| `{flags}` | {words} |"
    yield ""


def _paragraphs(text: str) -> Iterator[str]:
    """Join the lines of each paragraph; a preformatted paragraph becomes a code block."""
    for paragraph in text.split("\n\n"):
        lines = [line.strip() for line in paragraph.strip().splitlines()]
        if lines[:1] == ["\b"]:
            yield "\n".join(["```", *lines[1:], "```"])
        elif lines:
            yield " ".join(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
