"""A catalog that is open, and what is known of it."""

from __future__ import annotations

import logging
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb

from hta_sql.errors import StoreDamagedError, StoreError, StoreVersionError
from hta_sql.library.objects import Library
from hta_sql.store.catalog import Identity, identity_of, write_catalog
from hta_sql.store.contents import FileCheck
from hta_sql.store.files import StoreFolder
from hta_sql.store.limits import KNOWN_FILES, QUICKER_PLANS
from hta_sql.store.locks import store_lock
from hta_sql.store.parts import Size
from hta_sql.store.sandbox import Sandbox

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Opened:
    """A catalog that is open, and what is known of it."""

    con: duckdb.DuckDBPyConnection
    catalog: Path
    ranks: list[Size]
    """Run, rank and number of events of all that it holds."""
    changed: list[str]
    """Runs that were read by other definitions than today's."""
    kept: dict[str, set[str]]
    """Analysis ─▶ runs of which its view reads what is kept."""
    sandbox: Sandbox | None
    files: FileCheck

    @property
    def scope(self) -> list[tuple[str, int]]:
        """Run and rank of all that it holds."""
        return [(run, rank) for run, rank, _ in self.ranks]


def ranks_of(con: duckdb.DuckDBPyConnection) -> tuple[list[Size], list[str]]:
    """List the ranks of a catalog in order, and the runs that other definitions read."""
    rows = con.execute(
        "SELECT run, rank, event_count, definitions_changed FROM stored.rank_scope"
    ).fetchall()
    counts: dict[tuple[str, int], int] = defaultdict(int)  # spans of a rank are counted together
    for run, rank, events, _ in rows:
        counts[run, rank] += events or 0
    ranks = [(run, rank, counts[run, rank]) for run, rank in sorted(counts)]
    return ranks, sorted({run for run, *_, is_changed in rows if is_changed})


def kept_of(con: duckdb.DuckDBPyConnection) -> dict[str, set[str]]:
    """List the analyses whose answers a catalog keeps, each with the runs."""
    kept: dict[str, set[str]] = {}
    for name, run in con.execute("SELECT name, run FROM stored.kept_answers").fetchall():
        kept.setdefault(name, set()).add(run)
    return kept


def configure(con: duckdb.DuckDBPyConnection, folder: StoreFolder) -> None:
    """Set an engine up for the questions that are asked of a store."""
    with suppress(duckdb.Error):  # an engine that has no such step
        con.execute(QUICKER_PLANS)
    # A store that reads for others locks the settings of the engine, for all that open it.
    with suppress(duckdb.InvalidInputException):
        con.execute(KNOWN_FILES)
    if filesystem := folder.filesystem():
        # The engine of a process is one for all that open the same catalog.
        with suppress(duckdb.InvalidInputException):
            con.register_filesystem(filesystem)


def refreshed(folder: StoreFolder, library: Library, identity: Identity) -> bool:
    """Rebuild the store's own catalog, where it may be written and nobody else is at it."""
    try:
        with store_lock(folder, 0):
            if identity_of(folder, library) == identity:
                write_catalog(folder, library)
    except (OSError, duckdb.Error) as error:
        log.info("The catalog of %s cannot be rebuilt there: %s.", folder.root, error)
        return False
    except (StoreVersionError, StoreDamagedError):
        raise
    except StoreError:
        return False  # an ingest is at it, and will replace it
    log.info("Rebuilt the catalog of %s.", folder.root)
    return True
