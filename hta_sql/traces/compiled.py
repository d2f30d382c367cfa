"""Locates and loads the compiled reader. Has no slow imports, because --version uses it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ctypes

SWITCH = "HTA_SQL_NATIVE"
"""Environment variable: 0 disables the compiled reader."""

LIBRARY = Path(__file__).with_name("_reader.so")
VERSION = 4
"""Version of the interface and of the parsing rules; must match native/src/lib.rs."""


def reader_at_work() -> str:
    """Return which reader is used for traces; looks for the library without loading it."""
    return "compiled" if os.environ.get(SWITCH) != "0" and LIBRARY.is_file() else "SQL"


@cache
def load() -> ctypes.CDLL | None:
    """Load the library; return None if it is unavailable or has a different version."""
    import ctypes  # noqa: PLC0415 - needed only to read traces

    try:
        library = ctypes.CDLL(str(LIBRARY))
        is_ours = library.hta_sql_reader_version() == VERSION
    except (OSError, AttributeError):
        return None
    return library if is_ours else None


def load_functions(functions: Iterable[tuple[Any, ...]]) -> ctypes.CDLL | None:
    """Load the library and declare the types of its functions; return None if it is unavailable.

    Args:
        functions: For each function: its name without ``hta_sql_``, its result type, its argument
            types.
    """
    library = load()
    if library is None:
        return None
    for name, result, *arguments in functions:
        function = getattr(library, f"hta_sql_{name}")
        function.restype, function.argtypes = result, arguments
    return library
