r"""Escapes control characters in everything that a command prints to a terminal.

A name in a trace can hold escape sequences, 8-bit control characters or marks of text direction. Files
and pipes get it byte for byte; a terminal, which would act on it, gets the characters as ``\x1b``.
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, TextIO

import click

from hta_sql.text import printable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def escaped(text: str) -> str:
    """Return a text as a terminal can show it; newlines and tabs, which lay it out, stay."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    if character < "\x7f":
        return printable(character)
    # As in JSON, which escapes only what is below by itself: on a terminal, it must stay JSON.
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


class _Escaping(io.RawIOBase):
    """Bytes for a terminal: decoded as UTF-8, escaped, and written to the text stream of the terminal."""

    def __init__(self, terminal: TextIO) -> None:
        self.terminal = terminal
        # A character may be cut by the end of a write; bytes that are no UTF-8 are escaped too.
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
        """Let writers begin."""
        return True

    def isatty(self) -> bool:
        """Return True: only streams of terminals are escaped."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the terminal."""
        return self.terminal.fileno()


@contextmanager
def escaping_terminals() -> Iterator[None]:
    """Escape what is printed to stdout and stderr, each if it is a terminal.

    After an exception the streams stay as they are: the traceback that follows can hold names, too.
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
    """Return the stream below the escaping one: for a progress bar, which moves the cursor itself."""
    below = getattr(stream, "buffer", None)
    return below.terminal if isinstance(below, _Escaping) else stream


class Heading(str):
    """A line that a terminal shows in bold."""

    __slots__ = ()


def show(lines: Iterable[str]) -> None:
    """Print lines; headings are escaped before they get the escape sequences of their style."""
    for line in lines:
        if isinstance(line, Heading):
            click.echo(click.style(escaped(line), bold=True), file=terminal_of(sys.stdout))
        else:
            click.echo(line)
