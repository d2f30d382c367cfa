"""The handler that ``torch.profiler.profile`` calls with each recording: export it, start its ingest."""

from __future__ import annotations

import logging
import os
import shlex
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hta_sql.store import TRACES
from hta_sql.store.disk.run_names import check_run_name, run_of_capture
from hta_sql.torch.children import start_ingest, temporary_folder, wait_at_exit
from hta_sql.torch.job import Job, current_job

log = logging.getLogger(__name__)

_captures: Counter[tuple[str, str]] = Counter()
"""Store and run ─▶ number of recordings of this process so far."""


class Profile(Protocol):
    """What the handler needs of a ``torch.profiler.profile``."""

    def export_chrome_trace(self, path: str) -> object:
        """Write the recording into a file."""


@dataclass(frozen=True)
class _Options:
    store: str
    worker_name: str | None
    use_gzip: bool
    run: str | None
    keep_trace: bool
    role: str | None
    advise: bool

    @property
    def is_remote(self) -> bool:
        """Whether the store is at a URL."""
        return "://" in self.store


def trace_handler(
    store: str | os.PathLike[str],
    worker_name: str | None = None,
    use_gzip: bool = False,
    *,
    run: str | None = None,
    keep_trace: bool = True,
    role: str | None = None,
    advise: bool = False,
) -> Callable[[Profile], None]:
    """Return a handler for ``on_trace_ready`` that records into a store.

    The arguments start like those of ``torch.profiler.tensorboard_trace_handler``. The handler
    exports the trace and starts a process that ingests it; training continues meanwhile. Each rank
    writes its own part of the run. The last one publishes the run, or after 60 s the available
    ranks. Repeated recordings (``schedule(repeat=2)``) are the runs ``NAME``, ``NAME-capture2``, ...

    A failure never stops the training: a warning shows the command that ingests the trace. When
    Python exits, it waits for the ingests.

    Args:
        store: Folder of the store, or its fsspec URL; the same for all ranks.
        worker_name: First part of the file name of a trace; default: host and process, after the
            rank if there are several.
        use_gzip: Compress the trace, in the training process as torch does.
        run: Name of the run, the same for all ranks. Default: the id that the user gave to the
            torchrun job, or the time. Recording again under a name replaces the ranks of the run.
        keep_trace: Keep the trace, in the folder ``traces`` of the store. Commands that show the
            original events, such as ``hta-sql open``, need it.
        role: Role of the process in a job with several roles.
        advise: Print the advice for the run once it is published.

    Returns:
        The handler, to be called with the profile.

    Raises:
        ParameterError: The run name is not valid.

    Example::

        with torch.profiler.profile(on_trace_ready=trace_handler("job.store")):
            train()
    """
    text = os.fspath(store)
    options = _Options(
        store=text if "://" in text else os.path.abspath(text),  # noqa: PTH100 - keeps symbolic links
        worker_name=worker_name,
        use_gzip=use_gzip,
        run=None if run is None else check_run_name(run),
        keep_trace=keep_trace,
        role=role,
        advise=advise,
    )
    wait_at_exit()

    def handler(profile: Profile) -> None:
        try:
            _record(profile, options)
        except Exception:  # training must continue
            log.warning("A trace was not recorded into %s.", options.store, exc_info=True)

    return handler


def _record(profile: Profile, options: _Options) -> None:
    """Export a recording, and start its ingest."""
    job = current_job(options.run)
    capture = _captures[options.store, job.run]
    _captures[options.store, job.run] += 1
    run = run_of_capture(job.run, capture)
    folder, problem = _trace_folder(options, run)
    path = folder / _file_name(options, job)
    profile.export_chrome_trace(str(path))
    arguments = _arguments(options, job, run, path)
    if problem:
        log.warning(
            "The store %s is not writable (%s). The trace of rank %d is %s; to ingest it, run: %s",
            options.store,
            problem,
            job.rank,
            path,
            shlex.join(["hta-sql", *arguments]),
        )
    else:
        start_ingest(arguments)


def _trace_folder(options: _Options, run: str) -> tuple[Path, OSError | None]:
    """Return the folder for a trace, and why it cannot be in the store, if so."""
    if options.is_remote:
        return temporary_folder(), None
    folder = Path(options.store, TRACES, run)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):  # torch does not report that it cannot write
            return folder, None
    except OSError as error:
        return temporary_folder(), error


def _file_name(options: _Options, job: Job) -> str:
    """Return a unique name in the form of torch's own handler, from which a rank can be read."""
    process = f"{socket.gethostname()}_{os.getpid()}"
    default = f"rank{job.rank}_{process}" if job.world_size > 1 else process
    suffix = ".gz" if options.use_gzip else ""
    return f"{options.worker_name or default}.{time.time_ns()}.pt.trace.json{suffix}"


def _arguments(options: _Options, job: Job, run: str, path: Path) -> list[str]:
    """Return the arguments of ``hta-sql`` that ingest a trace."""
    arguments = ["ingest-rank", str(path), "-o", options.store, "--run", run]
    arguments += ["--rank", str(job.rank), "--world-size", str(job.world_size)]
    if not options.keep_trace:
        arguments += ["--afterwards", "delete"]
    elif options.is_remote:
        arguments += ["--afterwards", "move"]
    if options.role is not None:
        arguments += ["--role", options.role]
    if options.advise:
        arguments.append("--advice")
    return arguments
