r"""Escapes control characters in everything that a command prints to a terminal.

A name in a trace can contain escape sequences, 8-bit control characters or text direction marks.
Files and pipes get such names byte for byte. A terminal would interpret the characters, so it gets
escapes such as ``\x1b``.
"""

from __future__ import annotations

import codecs
import io
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from textwrap import wrap
from typing import IO, TYPE_CHECKING, TextIO

import click

from hta_sql.text import printable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def escaped(text: str) -> str:
    """Return a string with control characters escaped, except newlines and tabs."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    if character < "\x7f":
        return printable(character)
    # Escaped as in JSON, so that JSON output stays valid on a terminal.
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


class _Escaping(io.RawIOBase):
    """Byte stream that decodes UTF-8, escapes the text and writes it to a terminal's stream."""

    def __init__(self, terminal: TextIO) -> None:
        self.terminal = terminal
        # A write may end inside a character; bytes that are not UTF-8 are escaped, too.
        self._decode = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode

    @property
    def name(self) -> str:
        """The name of the stream, ``<stdout>``."""
        return self.terminal.name

    def write(self, data: ReadableBuffer) -> int:
        """Write all of the data."""
        self.terminal.write(escaped(self._decode(bytes(data))))
        return memoryview(data).nbytes

    def flush(self) -> None:
        """Flush the terminal."""
        self.terminal.flush()

    def writable(self) -> bool:
        """Return True."""
        return True

    def isatty(self) -> bool:
        """Return True: only streams of terminals are escaped."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the terminal."""
        return self.terminal.fileno()


@contextmanager
def escaping_terminals() -> Iterator[None]:
    """Escape what is printed to stdout and stderr, if they are terminals.

    After an exception the streams remain escaped, because the traceback may contain names, too.
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_if_terminal, before)
    yield
    sys.stdout.flush()
    sys.stdout, sys.stderr = before


def _if_terminal(stream: TextIO) -> TextIO:
    if not stream.isatty() or isinstance(stream.buffer, _Escaping):
        return stream
    return io.TextIOWrapper(
        _Escaping(stream),
        encoding="utf-8",
        errors="backslashreplace",
        newline="",
        write_through=True,
    )


def terminal_of(stream: TextIO) -> IO[str]:
    """Return the stream below the escaping stream, for a progress bar that moves the cursor."""
    below = getattr(stream, "buffer", None)
    return below.terminal if isinstance(below, _Escaping) else stream


class Heading(str):
    """A line printed in bold on a terminal."""

    __slots__ = ()


_COMMAND = re.compile(r"hta-sql \w+(?: (?:--\S+|\S*[/.:\d]\S*|[a-z]+_\w+))+")
"""A command inside a sentence: its arguments are options, paths, numbers and names with underscores."""

_NO_BREAK = "\0"
"""Stands for the spaces of a command while lines are wrapped."""


def wrapped(text: str) -> str:
    """Wrap lines to the terminal width, keeping their indentation; commands are not wrapped.

    Output to a pipe is not wrapped.
    """
    if not sys.stdout.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(part for line in text.split("\n") for part in _parts(line, width))


def _parts(line: str, width: int) -> list[str]:
    if len(line) <= width or line.lstrip().startswith("See: "):
        return [line]
    start = line[: len(line) - len(line.lstrip())]
    whole = _COMMAND.sub(lambda command: command.group().replace(" ", _NO_BREAK), line)
    parts = wrap(
        whole, width, subsequent_indent=start, break_long_words=False, break_on_hyphens=False
    )
    return [part.replace(_NO_BREAK, " ") for part in parts]


def show(lines: Iterable[str]) -> None:
    """Print lines; headings are escaped before their style is added."""
    for line in lines:
        if isinstance(line, Heading):
            click.echo(click.style(escaped(line), bold=True), file=terminal_of(sys.stdout))
        else:
            click.echo(line)
