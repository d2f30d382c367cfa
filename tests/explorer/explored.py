"""Context manager that runs ``hta-sql explore`` in a subprocess."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def explored(
    store: Path, *options: str, stderr: int = subprocess.DEVNULL
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the explorer, yield its process and the URL that it prints, and stop it with SIGINT."""
    command = [sys.executable, "-m", "hta_sql", "explore", str(store), "--print", *options]
    with subprocess.Popen(  # noqa: S603 - our own program
        command, stdout=subprocess.PIPE, stderr=stderr, text=True
    ) as process:
        assert process.stdout
        yield process, process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
