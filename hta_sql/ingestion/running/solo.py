"""Runs one job in a separate process, and reports how that process ended.

A pool only reports that some process died. With a separate process, the job is known, and so are
the signal, the exit code and the last line of the output.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

from hta_sql.errors import TraceError
from hta_sql.ingestion.running.processes import SPAWN, end_with_parent
from hta_sql.machine import resident_bytes, temporary_folder

Job = TypeVar("Job")
Result = TypeVar("Result")


LOOK_S = 0.02
"""Time between two looks at the memory of a process [s]; it cannot take 100 MB meanwhile."""


def run_alone(
    task: Callable[[Job], Result], job: Job, about: str, most_bytes: int | None = None
) -> Result:
    """Run a task on a job in a new process.

    Args:
        task: A module-level function.
        job: Argument of the task.
        about: The trace, for the message.
        most_bytes: Resident memory above which the process is killed (on Linux); None for no limit.

    Raises:
        MemoryError: The process used more than ``most_bytes``.
        TraceError: The process died; the message describes how.
        Exception: The task raised this exception.
    """
    with temporary_folder() as folder:
        said = Path(folder, "stderr")
        receiver, sender = SPAWN.Pipe(duplex=False)
        process = SPAWN.Process(target=_child, args=(task, job, sender, str(said)), daemon=False)
        process.start()
        sender.close()
        try:
            while most_bytes is not None and not receiver.poll(LOOK_S):
                if resident_bytes(process.pid or 0) > most_bytes:
                    process.kill()
                    process.join()
                    raise MemoryError(about)
            outcome = receiver.recv()
        except EOFError:
            process.join()
            raise TraceError(
                f"{about}: the process that was reading it {_end(process.exitcode)}{_last_words(said)}"
            ) from None
        finally:
            receiver.close()
        process.join()
    if isinstance(outcome, BaseException):
        raise outcome
    result: Result = outcome
    return result


def _child(task: Callable[[Job], Result], job: Job, sender: Connection, said: str) -> None:
    end_with_parent()
    descriptor = os.open(said, os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(descriptor, 2)
    faulthandler.enable(2)
    try:
        outcome: object = task(job)
    except Exception as error:  # noqa: BLE001 - handled by the parent
        outcome = error
    try:
        sender.send(outcome)
    except Exception as error:  # noqa: BLE001 - an error that cannot be pickled is sent as text
        sender.send(TraceError(f"{type(outcome).__name__}: {outcome} ({error})"))


def _end(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return f"exited with code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    guess = " (out of memory?)" if name == "SIGKILL" else ""
    return f"was killed by {name}{guess}"


def _last_words(said: Path) -> str:
    text = said.read_text(errors="replace") if said.exists() else ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith("Fatal")]
    last = (fatal or lines)[-1:]
    return f": {last[0]}" if last else "."
