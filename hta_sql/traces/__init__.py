"""Traces as files, local or not: read whole, rescued where broken, written anew."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

Traces = str | os.PathLike[str] | Iterable[str] | Mapping[int, str]
"""A file, a folder, a glob, a list of these, or {rank: path}."""

TraceNames = str | list[str] | Mapping[int, str]
"""The same, to be looked at several times."""
