"""The version of this package, as numbers."""

from __future__ import annotations

from hta_sql._version import __version__

__all__ = ["__version__", "__version_tuple__"]

__version_tuple__ = tuple(int(part) for part in __version__.split(".") if part.isdecimal())
