"""The processes that ingest the traces of this process: started here, and waited for at exit."""

from __future__ import annotations

import atexit
import logging
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

log = logging.getLogger(__name__)

NICENESS = 10
"""Priority of an ingest, below that of the training."""

SILENT_S = 5.0
"""Time that the exit of Python waits without a message [s]."""


@dataclass
class _Ingests:
    """The ingests of this process that have not ended yet: process ─▶ command to repeat it."""

    running: dict[subprocess.Popen[bytes], str] = field(default_factory=dict)
    is_exiting: bool = False


_ingests = _Ingests()


def start_ingest(arguments: Sequence[str]) -> None:
    """Start ``hta-sql`` in a new process, and warn of earlier ingests that failed.

    The process has its own session: the signals that end a training job, such as those of torchrun
    when another rank fails, must not end an ingest.

    Args:
        arguments: The arguments of ``hta-sql``.
    """
    command = shlex.join(["hta-sql", *arguments])
    try:
        process = subprocess.Popen(  # noqa: S603 - our own command
            # -P: do not import modules from the working directory.
            [sys.executable, "-P", "-m", "hta_sql", *arguments],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        log.warning("The ingest of a trace was not started (%s). Run: %s", error, command)
        return
    with suppress(OSError, AttributeError):  # not on Windows
        os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
    _ingests.running[process] = command
    for earlier in list(_ingests.running):
        if earlier.poll() is not None:
            _end(earlier)
    if _ingests.is_exiting:
        wait()


@cache
def temporary_folder() -> Path:
    """Return a folder of this process for traces that their ingest moves or deletes."""
    return Path(tempfile.mkdtemp(prefix="hta_sql_traces_"))


@cache
def wait_at_exit() -> None:
    """Wait for the ingests when Python exits; a container or a Slurm step ends with its job."""
    atexit.register(_exit)


def _exit() -> None:
    _ingests.is_exiting = True
    wait()
    if temporary_folder.cache_info().currsize:
        with suppress(OSError):  # not empty: the traces could not be moved
            temporary_folder().rmdir()


def wait() -> None:
    """Wait for all ingests, and log a warning for each that failed."""
    is_reported = False
    try:
        for process in list(_ingests.running):
            with suppress(subprocess.TimeoutExpired):
                process.wait(0 if is_reported else SILENT_S)
            if process.poll() is None and not is_reported:
                log.warning(
                    "Waiting until the recorded traces are ingested and the run is published. "
                    "Ctrl-C exits; the ingest continues."
                )
                is_reported = True
            process.wait()
            _end(process)
    except KeyboardInterrupt:
        log.warning("Not waiting for the ingest of the recorded traces.")


def _end(process: subprocess.Popen[bytes]) -> None:
    command = _ingests.running.pop(process)
    if process.returncode:
        log.warning(
            "The ingest of a trace failed with exit code %d. Run it again: %s",
            process.returncode,
            command,
        )
