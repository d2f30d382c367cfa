"""Define all errors that hta_sql raises on purpose, as one tree.

::

    HtaSqlError
    ├── TraceError                 something is wrong with the input
    │   ├── TraceNotFoundError     no such file or folder, or no trace inside; FileNotFoundError,
    │   │                          ValueError
    │   ├── TraceFormatError       not a Kineto trace, or unreadable as one
    │   └── RankError              ranks collide, are unknown or are missing; ValueError
    ├── StoreError                 something is wrong with a store
    │   ├── StoreDamagedError      a file was modified or damaged after it was written
    │   ├── StoreNotFoundError     no store at that path
    │   └── StoreVersionError      written by an incompatible version
    ├── AnalysisError              something is wrong with a call
    │   ├── AnalysisNotFoundError  no analysis, version or table of that name; LookupError
    │   └── ParameterError         unknown parameter, or a value of the wrong type; ValueError,
    │                              TypeError
    ├── QueryError                 the engine rejected a query, or the query failed
    ├── LibraryError               a file under sql/ breaks the rules of the library
    └── ExtraNotInstalledError     an optional dependency is needed but not installed

A message says what is wrong, where, and what to do. Catch ``HtaSqlError`` to
catch them all; any other exception is a bug. Four of them also derive from the
builtin errors named in the tree: Python and HTA raise these in such cases, so
``except ValueError`` in an existing script still works.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "AnalysisError",
    "AnalysisNotFoundError",
    "ExtraNotInstalledError",
    "HtaSqlError",
    "LibraryError",
    "ParameterError",
    "QueryError",
    "RankError",
    "StoreDamagedError",
    "StoreError",
    "StoreNotFoundError",
    "StoreVersionError",
    "TraceError",
    "TraceFormatError",
    "TraceNotFoundError",
]


class HtaSqlError(Exception):
    """Base of every error that hta_sql raises on purpose."""


class TraceError(HtaSqlError):
    """Something is wrong with the input traces."""


class TraceNotFoundError(TraceError, FileNotFoundError, ValueError):
    """No such file or folder, or no trace inside it."""


class TraceFormatError(TraceError):
    """A file is not a Kineto trace, or cannot be read as one."""


class RankError(TraceError, ValueError):
    """Ranks collide, are unknown or are missing."""


class StoreError(HtaSqlError):
    """Something is wrong with a store."""


class StoreDamagedError(StoreError):
    """A file of the store was modified or damaged; the message names it, its run and the remedy."""


class StoreNotFoundError(StoreError):
    """No store at that path."""


class StoreVersionError(StoreError):
    """The store was written by an incompatible version of hta_sql."""


class AnalysisError(HtaSqlError):
    """Something is wrong with a call to an analysis."""


class AnalysisNotFoundError(AnalysisError, LookupError):
    """No analysis of that name or version."""


class ParameterError(AnalysisError, ValueError, TypeError):
    """An unknown parameter, or a value of the wrong type."""


class QueryError(HtaSqlError):
    """The engine rejected a query, or the query failed."""


class LibraryError(HtaSqlError):
    """A file under sql/ breaks the rules of the library."""


class ExtraNotInstalledError(HtaSqlError):
    """An optional dependency is needed but not installed."""


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the closest candidate, or an empty string."""
    found = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.5)
    return f" Did you mean {found[0]!r}?" if found else ""
