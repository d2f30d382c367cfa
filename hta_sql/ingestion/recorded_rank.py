"""Ingests the trace of one rank as soon as it is recorded, and publishes the run with its last rank."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hta_sql.errors import ParameterError, TraceError, TraceNotFoundError
from hta_sql.ingestion.ingest import ingest_shard
from hta_sql.ingestion.options import ShardOptions
from hta_sql.machine import memory_bytes
from hta_sql.store import TRACES
from hta_sql.store.catalog.last_shard import publish_last
from hta_sql.store.disk.folder import StoreFolder, store_folder
from hta_sql.store.disk.location import absolute
from hta_sql.store.disk.locks import RANK_TIMEOUT_S
from hta_sql.store.disk.manifest import read_manifest
from hta_sql.store.disk.reports import PublishReport
from hta_sql.store.disk.run_names import check_run_name
from hta_sql.store.disk.shard_files import number_of_shard

MEMORY_SHARE = 0.25
"""Share of the machine's memory for the ingests of its ranks, because training uses the rest."""

LEAST_MEMORY = 512 << 20

Afterwards = Literal["keep", "move", "delete"]
"""What to do with the file of the trace: keep it, move it into the store, or delete it."""


@dataclass(frozen=True)
class RecordedRank:
    """The trace of one rank of a run.

    Attributes:
        trace: Path of the trace.
        store: Folder of the store, or its fsspec URL.
        run: Name of the run.
        rank: Rank of the process.
        world_size: Number of ranks that record a trace for the run.
        role: Role of the process in a job with several roles.
        afterwards: What to do with the file of the trace.
        wait_s: Time to wait for ranks that have no trace yet [s].
    """

    trace: str
    store: str
    run: str
    rank: int
    world_size: int
    role: str | None = None
    afterwards: Afterwards = "keep"
    wait_s: float = RANK_TIMEOUT_S


@dataclass(frozen=True)
class PublishedRanks:
    """A run after its publication.

    Attributes:
        ranks: Ranks of the run in the store.
        missing: Ranks that have no trace yet.
        failures: Messages about traces that could not be read.
    """

    ranks: list[int]
    missing: list[int]
    failures: list[str]


def ingest_recorded(recorded: RecordedRank) -> PublishedRanks | None:
    """Ingest the trace of a rank as a shard of the run; publish the run if it is the last rank.

    Returns:
        The run if this rank has published it; None if another rank has.

    Raises:
        ParameterError: The rank is not below the world size, or the run name is not valid.
        TraceNotFoundError: There is no trace at the path.
        TraceError: The trace cannot be read; the other ranks are published.
        StoreError: Another process is writing to the store, or the disk is full.
    """
    check_run_name(recorded.run)
    if not 0 <= recorded.rank < recorded.world_size:
        raise ParameterError(
            f"Rank {recorded.rank} of {recorded.world_size}: ranks are numbered from 0 to "
            "world size - 1."
        )
    folder = store_folder(recorded.store)
    shard = recorded.rank + 1, recorded.world_size
    failure = _ingest(recorded, folder, shard)
    report = publish_last(folder, recorded.run, shard, wait_s=recorded.wait_s)
    if failure:
        raise failure
    return _published(report, recorded, folder) if report else None


def _ingest(
    recorded: RecordedRank, folder: StoreFolder, shard: tuple[int, int]
) -> TraceError | None:
    """Ingest the trace; return the error if it cannot be read, because the run goes on without it.

    The file is deleted last, so that a failed ingest can be repeated.
    """
    trace = absolute(recorded.trace)
    if recorded.afterwards == "move":
        trace = _copied(Path(trace), folder, recorded.run)
    options = ShardOptions(
        {recorded.rank: trace},
        recorded.store,
        run=recorded.run,
        role=recorded.role,
        jobs=1,
        memory_limit=_memory_limit(),
        shard=shard,
    )
    try:
        ingest_shard(options, is_whole=True)
    except TraceNotFoundError:
        raise  # there is no shard to publish
    except TraceError as error:
        return error
    if recorded.afterwards != "keep":
        Path(recorded.trace).unlink()
    return None


def _copied(trace: Path, folder: StoreFolder, run: str) -> str:
    """Copy a trace into the store, and return the location of the copy."""
    name = f"{TRACES}/{run}/{trace.name}"
    folder.put(trace, name)
    return folder.path(name)


def _memory_limit() -> str:
    """Return the memory limit of this process; torchrun states how many ranks a machine has."""
    stated = os.environ.get("LOCAL_WORLD_SIZE", "")
    ranks = max(int(stated), 1) if stated.isdecimal() else 1
    share = int(memory_bytes() * MEMORY_SHARE / ranks)
    return f"{max(share, LEAST_MEMORY) >> 20}MiB"


def _published(
    report: PublishReport, recorded: RecordedRank, folder: StoreFolder
) -> PublishedRanks:
    """Return the ranks of the run; shards of an earlier world size are not missing."""
    missing = [name.partition(" ")[0] for name in report.missing]
    of = f"-of-{recorded.world_size}"
    entries = read_manifest(folder).entries
    return PublishedRanks(
        ranks=sorted({entry.rank for entry in entries if entry.run == recorded.run}),
        missing=[number_of_shard(name) - 1 for name in missing if name.endswith(of)],
        failures=report.failures,
    )
