"""The part of a catalog that is the same for every store: views and macros over empty tables.

The engine binds each macro as it is created, which takes half a second for all of them. So they
are created once for each state of the library, in a file of the user's cache; the catalog of a
store is a copy of it with other tables below.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

import duckdb

from hta_sql._version import __version__
from hta_sql.library.arguments import argument_columns
from hta_sql.library.creation import create_objects
from hta_sql.library.data_tables import data_views
from hta_sql.library.files import stored_columns
from hta_sql.library.objects import Library
from hta_sql.machine import cache_folder
from hta_sql.traces.writing import replacing

STORAGE_VERSION = "v1.4.0"
"""What BI tools that still bundle DuckDB 1.4 can open."""

Config = dict[str, str | bool | int | float | list[str]]
CONFIG: Config = {"storage_compatibility_version": STORAGE_VERSION, "threads": 1}

_FORMAT = 9
"""Raised when the code here, in catalog.py or in library/creation.py writes something else from the same library."""


@lru_cache(maxsize=4)
def library_digest(library: Library) -> str:
    """Name a state of the library, of the table definitions and of what writes catalogs."""
    digest = hashlib.sha256(f"{_FORMAT} {STORAGE_VERSION} {__version__}".encode())
    digest.update(f"{stored_columns()} {argument_columns()} {data_views(library.tables)}".encode())
    for about in (*library.tables, *library.macros, *library.derived, *library.analyses):
        digest.update(f"{about.path.name}\0{about.text}\0".encode())
    return digest.hexdigest()


def template(library: Library) -> Path:
    """Return the template of a library, from the cache or built now."""
    name = f"{library_digest(library)[:24]}-duckdb{duckdb.__version__}.duckdb"
    target = cache_folder("templates") / name
    if not target.exists():
        with replacing(target) as partial, duckdb.connect(str(partial), config=CONFIG) as con:
            create_objects(con, library)
    return target
