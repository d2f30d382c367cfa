"""Names of runs. A run is one capture of one job, usually one folder of per-rank traces."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hta_sql.errors import ParameterError
from hta_sql.traces import TraceNames

_ALLOWED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_FORBIDDEN = re.compile(r"[^A-Za-z0-9._-]+")
_CAPTURE = re.compile(r"-capture\d+$")
_TRACE_SUFFIX = re.compile(r"(\.pt)?(\.trace)?(\.json)?$")


def is_run_name(run: str) -> bool:
    """Return whether a string is a valid run name."""
    return _ALLOWED.fullmatch(run) is not None


def check_run_name(run: str) -> str:
    """Return a run name if it is valid. File paths contain the name.

    Raises:
        ParameterError: The name is not valid.
    """
    if not is_run_name(run):
        raise ParameterError(
            f"Run name {run!r}: use letters, digits, '.', '_' and '-', starting with a letter "
            "or digit, at most 200 characters."
        )
    return run


def default_run_name(traces: TraceNames) -> str:
    """Return the name of the folder of the traces, or of the trace if there is only one file."""
    paths = list(traces.values()) if isinstance(traces, Mapping) else traces
    if not isinstance(paths, str):
        items = [str(path) for path in paths]
        paths = items[0] if len(items) == 1 else _common_folder(items)
    # Lazy imports reduce the start-up time.
    from hta_sql.traces.source import located  # noqa: PLC0415
    from hta_sql.traces.unpack import uncompressed_name  # noqa: PLC0415

    fs, root = located(str(paths))
    parts = [part for part in root.replace("\\", "/").split("/") if part]
    while parts and any(c in parts[-1] for c in "*?["):
        parts.pop()
    last = parts[-1] if parts else ""
    if not fs.isdir(root):
        last = _TRACE_SUFFIX.sub("", uncompressed_name(last))
    return as_run_name(last) or "run"


def as_run_name(text: str, longest: int = 200) -> str:
    """Return a text as a run name, at most ``longest`` characters; empty if nothing is left of it."""
    return _FORBIDDEN.sub("_", text).strip("._-")[:longest]


def _common_folder(paths: list[str]) -> str:
    folders = [path.rsplit("/", 1)[0] if "/" in path else "." for path in paths]
    return folders[0]


def run_of_capture(name: str, capture: int) -> str:
    """Return the run name of the n-th capture; several captures of one rank are separate runs."""
    return name if capture == 0 else f"{name}-capture{capture + 1}"


def first_capture(run: str) -> str:
    """Return the run name of the first capture; the inverse of :func:`run_of_capture`."""
    return _CAPTURE.sub("", run)


def is_unix_time(start_ns: int) -> bool:
    """Return whether a timestamp [ns] counts from 1970 instead of from machine boot.

    The threshold is fifteen years: no machine runs that long, and all Unix times of traces are
    later.
    """
    return start_ns > 500_000_000_000_000_000
