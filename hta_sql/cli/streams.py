"""Standard streams that were closed before the command began: ``hta-sql list >&-``."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def streams_there() -> Iterator[None]:
    """Have three standard streams; who writes to a closed output gets an error, as a full disk gives.

    Their places are taken first: the next file that is opened, perhaps of a store, would be one of
    them, and be written to by whatever prints.
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
        os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free


class _Closed(io.RawIOBase):
    """Where nothing can be written."""

    def writable(self) -> bool:
        """Let writers begin."""
        return True

    def write(self, data: object) -> int:  # noqa: ARG002 - io's signature
        """Refuse."""
        raise OSError(errno.EBADF, "stdout is closed; write to a file with -o FILE")
