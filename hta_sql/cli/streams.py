"""Replaces standard streams that were closed before the command started: ``hta-sql list >&-``."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def streams_there() -> Iterator[None]:
    """Provide three standard streams; writing to a closed output raises an error, like a full disk.

    The descriptors 0 to 2 are occupied first. Otherwise the next file to be opened, perhaps in a
    store, would get one of them, and printed text would be written into that file.
    """
    for descriptor in range(3):
        with suppress(OSError):
            _fill(descriptor)
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = sys.stdin or io.StringIO()
    sys.stdout = sys.stdout or io.TextIOWrapper(_Closed(), write_through=True)
    sys.stderr = sys.stderr or io.StringIO()
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def _fill(descriptor: int) -> None:
    try:
        os.fstat(descriptor)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor


class _Closed(io.RawIOBase):
    """A stream that cannot be written."""

    def writable(self) -> bool:
        """Return True, so that the error is raised by write."""
        return True

    def write(self, data: object) -> int:  # noqa: ARG002 - signature of io
        """Raise an error."""
        raise OSError(errno.EBADF, "stdout is closed; write to a file with -o FILE")
