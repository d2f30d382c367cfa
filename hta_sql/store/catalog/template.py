"""The template of catalogs: the part that is the same for every store, over empty tables.

The engine binds each view and macro when it is created, which takes half a second in total.
Therefore they are created once per version of the library, in a file in the user's cache. The
catalog of a store is a copy of this file in which the tables of the store replace the empty tables.

A checkpoint writes all definitions into free blocks before it frees the old blocks, and truncates
only the end of the file. A template therefore starts with free blocks. The definitions of a store
are written there, and the rest is truncated (3.0 MB instead of 6.0 MB).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import duckdb

from hta_sql._version import __version__
from hta_sql.library import sqltext
from hta_sql.library.arguments import argument_columns
from hta_sql.library.creation import add_objects, create_empty_tables, create_objects
from hta_sql.library.data_tables import data_tables
from hta_sql.library.objects import Library, SqlObject
from hta_sql.library.sql_files import query_sql, stored_columns
from hta_sql.machine import cache_folder
from hta_sql.store.disk.manifest import digest_of
from hta_sql.traces.writing import replacing

STORAGE_VERSION = "v1.4.0"
"""Storage version of catalogs, readable by BI tools that still bundle DuckDB 1.4."""

Config = dict[str, str | bool | int | float | list[str]]
CONFIG: Config = {"storage_compatibility_version": STORAGE_VERSION, "threads": 1}

_FORMAT = 18
"""Format version of a catalog.

Increment it when the code here, in build.py or in library/creation.py creates a different catalog
from the same library.
"""

_BLOCK_BYTES = 32768
"""Block size: an eighth of the default, to waste less of the last block; smaller is slower."""

_FREE_ROWS = 700_000
"""Rows of 8 bytes in the leading free blocks: 5.6 MB, more than the definitions of a store need."""

_OWN_FREE_ROWS = 1_400_000
"""The same in a template with user analyses, where the copied free blocks are fragmented."""

OUTDATED_S = 3600
"""Age [s] above which an older template with analyses from the same folders is deleted."""

BESIDE = "+"
"""Separates the digest of the shipped library from the digest of the user's additions."""


def library_digest(library: Library) -> str:
    """Return a digest of the library, the table definitions and the format of catalogs."""
    if not library.shipped:
        return _shipped_digest(library)
    own = library.user_library
    added = digest_of(_texts((*own.macros, *own.analyses)).encode())
    return f"{_shipped_digest(library.shipped)}{BESIDE}{added}"


@lru_cache(maxsize=4)
def _shipped_digest(library: Library) -> str:
    digest = hashlib.sha256(f"{_FORMAT} {STORAGE_VERSION} {__version__}".encode())
    digest.update(f"{stored_columns()} {argument_columns()} {data_tables(library.tables)}".encode())
    abouts = (*library.tables, *library.macros, *library.derived, *library.analyses)
    digest.update(_texts(abouts).encode())
    return digest.hexdigest()


def _texts(abouts: Iterable[SqlObject]) -> str:
    # Avoid pathlib properties, which take ten times as long.
    places = [(*os.fspath(about.path).rsplit(os.sep, 2)[1:], about.text) for about in abouts]
    return "".join(f"{topic}/{name}\0{text}\0" for topic, name, text in places)


def template(library: Library) -> Path:
    """Return the template of a library, from the cache or newly built.

    Raises:
        LibraryError: The engine rejects a file that is added to the shipped library.
    """
    folder = cache_folder("templates")
    name = f"{library_digest(library.base)[:24]}-duckdb{duckdb.__version__}.duckdb"
    if not (folder / name).exists():
        with replacing(folder / name) as partial, connected(partial, _BLOCK_BYTES) as con:
            create_empty_tables(con, library.base)
            con.checkpoint()  # the library's rows stay where they are: before the free blocks
            _free_start(con, _FREE_ROWS)
            create_objects(con, library.base)
    return _with_own(folder / name, library) if library.shipped else folder / name


def _with_own(shipped: Path, library: Library) -> Path:
    """Copy a template and add the user's objects."""
    paths = sorted({str(about.path.parent) for about in library.user_library.analyses})
    place = f"own-{digest_of(repr(paths).encode())[:16]}-"
    state = digest_of(f"{library_digest(library)} {shipped.name}".encode())
    target = shipped.with_name(f"{place}{state[:24]}.duckdb")
    if not target.exists():
        with replacing(target) as partial:
            shutil.copyfile(shipped, partial)
            with connected(partial) as con:
                _free_start(con, _OWN_FREE_ROWS)
                add_objects(con, library)
        for other in shipped.parent.glob(f"{place}*.duckdb"):
            with suppress(FileNotFoundError):
                if other.stat().st_mtime < time.time() - OUTDATED_S:
                    other.unlink()
    return target


def _free_start(con: duckdb.DuckDBPyConnection, rows: int) -> None:
    """Allocate leading blocks that the next checkpoint frees."""
    con.execute(query_sql("catalog", "free_start"), {"count": rows})
    con.checkpoint()
    con.execute(sqltext.drop_table("free_start"))


def connected(path: Path, block_bytes: int | None = None) -> duckdb.DuckDBPyConnection:
    """Open a catalog that is being built.

    Args:
        path: File; created if it does not exist.
        block_bytes: Block size of a new file; None for DuckDB's default.
    """
    blocks: Config = {"default_block_size": block_bytes} if block_bytes else {}
    return duckdb.connect(str(path), config=CONFIG | blocks)
