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
from hta_sql.store.catalog.build import Identity, identity_of, write_catalog
from hta_sql.store.catalog.shared_engine import QUICKER_PLANS
from hta_sql.store.disk.content_check import FileCheck
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.locks import store_lock
from hta_sql.store.disk.manifest import digest_of, manifest_bytes
from hta_sql.store.query.limits import KNOWN_FILES
from hta_sql.store.query.partitions import Size
from hta_sql.store.query.sandbox import Sandbox

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
    materialized: dict[str, set[str]]
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


def lacks_replaced_runs(
    con: duckdb.DuckDBPyConnection, folder: StoreFolder, identity: Identity
) -> bool:
    """Return whether a catalog leaves out runs whose files were replaced while it was built."""
    if not folder.local:
        return False
    ((lost,),) = con.execute("SELECT lost FROM stored.store_info").fetchall()
    return bool(lost) and digest_of(manifest_bytes(folder)) != identity.manifest


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


def warn_of_runs_left_out(con: duckdb.DuckDBPyConnection, root: str) -> None:
    """Say which runs a catalog leaves out, and what brings them back."""
    ((outdated, lost),) = con.execute("SELECT left_out, lost FROM stored.store_info").fetchall()
    if outdated:
        log.warning(
            "%s: left out runs that were written with other table definitions; upgrade hta_sql "
            "if a newer one wrote them, else ingest their traces again: %s.",
            root,
            outdated,
        )
    if lost:
        log.warning(
            "%s: left out runs whose Parquet is missing or broken; ingest their traces again, "
            "or bring the files back; hta-sql repair %s does what can be done: %s.",
            root,
            root,
            lost,
        )


def warn_of_other_definitions(changed: list[str], root: str) -> None:
    """Say which runs another version read, in other ways perhaps."""
    if changed:
        log.warning(
            "%s: runs that were ingested by other definitions than this hta_sql's, so that "
            "some numbers may differ; ingest the same traces again, into it: %s.",
            root,
            ", ".join(changed),
        )
