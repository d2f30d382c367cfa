"""HTA's small helpers: what a kernel is by its name, short names, paths, frames."""

from __future__ import annotations

import csv
import re
from enum import Enum
from functools import cache
from pathlib import Path

import pandas as pd

from hta_sql.errors import ParameterError
from hta_sql.hta.common.trace_filter import text_columns
from hta_sql.hta.methods.names import shorten_name
from hta_sql.library.files import sql_root
from hta_sql.machine import cpu_count, memory_bytes

__all__ = [
    "IdleTimeType",
    "KernelType",
    "flatten_column_names",
    "get_kernel_type",
    "get_memory_kernel_type",
    "get_mp_pool_size",
    "get_symbol_column_names",
    "is_comm_kernel",
    "is_compute_kernel",
    "is_computer_kernel",
    "is_memory_kernel",
    "merge_kernel_intervals",
    "normalize_gpu_stream_numbers",
    "normalize_path",
    "shorten_name",
]

_WAIT = re.compile(r"(Context|Stream|Event) Sync|Stream Wait Event")
_COPY = re.compile(r"(?:hip)?(Memset|Memcpy ?([A-Z]to[A-Z])?)")


class KernelType(Enum):
    """What device activity is for."""

    COMMUNICATION = 0
    MEMORY = 1
    COMPUTATION = 2
    OTHER = 3


class IdleTimeType(Enum):
    """Why a stream was idle."""

    HOST_WAIT = 0
    KERNEL_WAIT = 1
    OTHER = 2


_OF_CLASS = {
    "communication": KernelType.COMMUNICATION,
    "memory": KernelType.MEMORY,
    "computation": KernelType.COMPUTATION,
    "sync": KernelType.OTHER,
}


@cache
def _rules() -> list[tuple[re.Pattern[str], KernelType]]:
    """Return the rules that the tables were made with, the first to be tried first."""
    path = sql_root() / "ingest" / "kernel_classes.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["priority"]))
    return [(re.compile(row["regex"], re.IGNORECASE), _OF_CLASS[row["class"]]) for row in rows]


def get_kernel_type(name: str) -> str:
    """Say what device activity of a name is for, by the rules of ``kernel_classes.csv``.

    The tables know more than a name: ``gpu_ops.class`` goes by the recorded collective and the
    category first.

    Returns:
        ``COMMUNICATION``, ``MEMORY``, ``COMPUTATION``, or ``OTHER`` for a wait on the device.
    """
    found = next((kind for regex, kind in _rules() if regex.search(name)), None)
    if found is None:
        found = KernelType.OTHER if _WAIT.match(name) else KernelType.COMPUTATION
    return found.name


def is_comm_kernel(name: str) -> bool:
    """Say whether device activity of a name communicates."""
    return get_kernel_type(name) == KernelType.COMMUNICATION.name


def is_memory_kernel(name: str) -> bool:
    """Say whether device activity of a name copies or sets memory."""
    return get_kernel_type(name) == KernelType.MEMORY.name


def is_compute_kernel(name: str) -> bool:
    """Say whether device activity of a name computes."""
    return get_kernel_type(name) == KernelType.COMPUTATION.name


is_computer_kernel = is_compute_kernel


def get_memory_kernel_type(name: str) -> str:
    """Return ``Memset``, ``Memcpy DtoH`` and so on, or ``Memcpy Unknown``."""
    found = _COPY.match(name)
    if found and found[1] == "Memset":
        return "Memset"
    return f"Memcpy {found[2]}" if found and found[2] else "Memcpy Unknown"


def merge_kernel_intervals(kernel_df: pd.DataFrame) -> pd.DataFrame:
    """Merge events that touch or overlap; the frame stays as it is.

    Args:
        kernel_df: Events with ``ts`` and ``dur``.

    Returns:
        ``ts, end`` of each stretch without a gap, by start.
    """
    spans = pd.DataFrame({"ts": kernel_df["ts"], "end": kernel_df["ts"] + kernel_df["dur"]})
    spans = spans.sort_values("ts", kind="stable")
    stretch = (spans["ts"] > spans["end"].cummax().shift()).cumsum()
    return spans.groupby(stretch).agg(ts=("ts", "min"), end=("end", "max")).reset_index(drop=True)


def normalize_path(path: str) -> str:
    """Make a path that begins with ``./`` or ``~/`` absolute; others stay as they are."""
    if path.startswith("./"):
        return str(Path.cwd() / path[2:])
    return str(Path(path).expanduser()) if path.startswith("~/") else path


def flatten_column_names(df: pd.DataFrame) -> None:
    """Join the levels of column names by ``_``, in place."""
    if isinstance(df.columns, pd.MultiIndex):
        df.columns = pd.Index(["_".join(map(str, levels)).rstrip("_") for levels in df.columns])


def get_symbol_column_names(df: pd.DataFrame) -> tuple[str, str]:
    """Find the columns that hold names and categories as text; ``""`` where there is none."""
    return text_columns(df)


def normalize_gpu_stream_numbers(df: pd.DataFrame) -> None:
    """Make ``stream`` whole numbers, in place; -1 where it is none.

    Raises:
        ParameterError: There is no such column.
    """
    if "stream" not in df:
        raise ParameterError("The frame has no column stream.")
    numbers = pd.to_numeric(df["stream"], errors="coerce")
    df["stream"] = numbers.fillna(-1).astype("int64")


def get_mp_pool_size(obj_size: int, num_objs: int) -> int:
    """Return how many processes work on some objects at once: one a core, within the memory.

    Args:
        obj_size: Memory that one object needs [bytes].
        num_objs: Objects.
    """
    fitting = memory_bytes() * 4 // 5 // obj_size if obj_size > 0 else num_objs
    return max(1, min(fitting, num_objs, cpu_count()))
