"""Where the compiled reader is, and whether it is at work. Imports nothing slow: --version asks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ctypes

SWITCH = "HTA_SQL_NATIVE"
"""Environment variable: 0 leaves the reader out."""

LIBRARY = Path(__file__).with_name("_reader.so")
VERSION = 4
"""Of what crosses the boundary and of what is read; that of native/src/lib.rs."""


def reader_at_work() -> str:
    """Say who reads traces. The library is looked for, not loaded."""
    return "compiled" if os.environ.get(SWITCH) != "0" and LIBRARY.is_file() else "SQL"


@cache
def load() -> ctypes.CDLL | None:
    """Load the library; None where it cannot be, or is of another version."""
    import ctypes  # noqa: PLC0415 - only where traces are read

    try:
        library = ctypes.CDLL(str(LIBRARY))
        is_ours = library.hta_sql_reader_version() == VERSION
    except (OSError, AttributeError):
        return None
    return library if is_ours else None


def load_functions(functions: Iterable[tuple[Any, ...]]) -> ctypes.CDLL | None:
    """Load the library and say what functions of it take; None where it cannot be loaded.

    Args:
        functions: Of each the name behind ``hta_sql_``, the type of its result and those of its arguments.
    """
    library = load()
    if library is None:
        return None
    for name, result, *arguments in functions:
        function = getattr(library, f"hta_sql_{name}")
        function.restype, function.argtypes = result, arguments
    return library
