"""Read, salvage, rewrite and write trace files, local or remote."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

Traces = (
    str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Mapping[int, str | os.PathLike[str]]
)
"""A file, a folder, a glob, a list of these, or {rank: path}."""

TraceNames = str | list[str] | Mapping[int, str]
"""Names of traces, which can be iterated repeatedly."""
