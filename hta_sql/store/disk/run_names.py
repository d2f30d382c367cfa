"""Names of runs: one capture of one job, usually one folder of per-rank traces."""

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
    """Say whether a text can name a run."""
    return _ALLOWED.fullmatch(run) is not None


def check_run_name(run: str) -> str:
    """Return the name, or say why it cannot be one; it becomes part of file names."""
    if not is_run_name(run):
        raise ParameterError(
            f"Run name {run!r}: use letters, digits, '.', '_' and '-', starting with a letter "
            "or digit, at most 200 of them."
        )
    return run


def default_run_name(traces: TraceNames) -> str:
    """Name a run after its folder, or after the file where one file is given."""
    paths = list(traces.values()) if isinstance(traces, Mapping) else traces
    if not isinstance(paths, str):
        items = [str(path) for path in paths]
        paths = items[0] if len(items) == 1 else _common_folder(items)
    # Imports are the start-up cost.
    from hta_sql.traces.source import located  # noqa: PLC0415
    from hta_sql.traces.unpack import uncompressed_name  # noqa: PLC0415

    fs, root = located(str(paths))
    parts = [part for part in root.replace("\\", "/").split("/") if part]
    while parts and any(c in parts[-1] for c in "*?["):
        parts.pop()
    last = parts[-1] if parts else ""
    if not fs.isdir(root):
        last = _TRACE_SUFFIX.sub("", uncompressed_name(last))
    return _FORBIDDEN.sub("_", last).strip("._-")[:200] or "run"


def _common_folder(paths: list[str]) -> str:
    folders = [path.rsplit("/", 1)[0] if "/" in path else "." for path in paths]
    return folders[0]


def run_of_capture(name: str, capture: int) -> str:
    """Name the run of the n-th capture: several captures of one rank are several runs."""
    return name if capture == 0 else f"{name}-capture{capture + 1}"


def first_capture(run: str) -> str:
    """Name the run whose first capture has the same traces: what :func:`run_of_capture` was given."""
    return _CAPTURE.sub("", run)


def is_unix_time(start_ns: int) -> bool:
    """Tell a time since 1970 from one since the start of a machine: fifteen years lie between."""
    return start_ns > 500_000_000_000_000_000
