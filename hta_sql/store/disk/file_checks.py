"""Checks of single Parquet files against the manifest: size, checksum, footer, rows, origin."""

from __future__ import annotations

import errno
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hta_sql.errors import StoreError
from hta_sql.machine import cpu_count
from hta_sql.store.disk.folder import StoreFolder
from hta_sql.store.disk.manifest import FROM_PATH, MaterializedTable, RankEntry
from hta_sql.store.disk.origins import ORIGIN, origin_of
from hta_sql.text import rank_spans

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_OURS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Errors caused by this process (out of memory or file descriptors), not by the file."""


@dataclass(frozen=True)
class Fault:
    """A defect of a file."""

    file: str
    """Path relative to the store."""
    kind: str
    """Kind of fault.

    One of manifest, catalog, analyses, shard, missing, size, content, footer, rows, pages, origin
    and links.
    """
    message: str
    run: str | None = None
    ranks: tuple[int, ...] = ()
    """Affected ranks; empty if all ranks of the run are affected."""


@dataclass(frozen=True)
class Expected:
    """A Parquet file as the manifest describes it."""

    path: str
    rows: int
    bytes: int
    sha256: str
    run: str
    ranks: tuple[int, ...] = ()
    """The ranks that reference the file; empty for a materialized file, which covers its run."""
    rank_rows: int = 0
    """Number of rows of these ranks.

    The file may also contain stale rows of ranks that have been ingested again into other files.
    """
    origin: str | None = None
    """Origin that a materialized file must name; see store/disk/origins.py."""


def of_entries(entries: Iterable[RankEntry]) -> list[Expected]:
    """List the expected files of rank entries; a shared file is listed only once."""
    found: dict[str, Expected] = {}
    for entry in entries:
        for file in entry.files.values():
            path, rows = file["path"], file["file_rows"]
            made = Expected(path, rows, file["bytes"], file["sha256"], entry.run)
            other = found.get(path, made)
            ranks, rank_rows = (*other.ranks, entry.rank), other.rank_rows + file["rows"]
            found[path] = replace(made, ranks=ranks, rank_rows=rank_rows)
    return list(found.values())


def of_materialized(kept: Iterable[MaterializedTable]) -> list[Expected]:
    """List the expected files of derived tables and materialized answers."""
    return [
        Expected(
            one.path,
            one.rows,
            one.bytes,
            one.sha256 or "",
            one.run,
            origin=origin_of(one.table, one.run, one.key),
        )
        for one in kept
        if one.path
    ]


def faults_of(folder: StoreFolder, files: list[Expected]) -> list[Fault]:
    """Check files in parallel; return the first fault found in each.

    Args:
        folder: The store.
        files: The files as the manifest describes them.

    Raises:
        StoreError: Object storage does not respond.
    """
    sizes = folder.sizes([file.path for file in files])
    look = partial(_look, folder, sizes)
    with ThreadPoolExecutor(cpu_count()) as pool:
        looked = list(zip(files, pool.map(look, files), strict=True))
    found = [found for _, found in looked if isinstance(found, Fault)]
    strangers = _strangers([(file, run) for file, run in looked if isinstance(run, str)])
    return [*found, *strangers]


def _look(folder: StoreFolder, sizes: Mapping[str, int], file: Expected) -> Fault | str | None:
    """Check one file. Return its fault, or the run that is recorded inside the file."""
    fault = partial(_fault, file)

    if file.path not in sizes:
        return fault("missing", "it is missing")
    if file.bytes and sizes[file.path] != file.bytes:
        return fault("size", f"it has {sizes[file.path]:,} bytes, but {file.bytes:,} were written")
    try:
        if folder.digest(file.path) != file.sha256:
            return fault("content", "its checksum does not match the manifest")
        return _inside(folder, file)
    except FileNotFoundError:
        return fault("missing", "it is missing")
    except OSError as error:
        if error.errno in _OURS:
            raise
        if not folder.local:  # unresponsive object storage is not a fault of the file
            raise StoreError(
                f"{folder.path(file.path)!r} currently cannot be read: {error}"
            ) from error
        return fault("content", f"it cannot be read: {error}")


def _fault(file: Expected, kind: str, message: str) -> Fault:
    return Fault(file.path, kind, message, file.run, file.ranks)


def _inside(folder: StoreFolder, file: Expected) -> Fault | str | None:
    """Compare the footer of a Parquet file (rows, origin, statistics) with the manifest."""
    import pyarrow as pa  # noqa: PLC0415 - imported only when needed
    import pyarrow.parquet as pq  # noqa: PLC0415

    source = folder.local / file.path if folder.local else io.BytesIO(folder.read(file.path))
    kind, fault = "footer", partial(_fault, file)
    try:
        with pq.ParquetFile(source) as parquet:
            if parquet.metadata.num_rows != file.rows:
                rows = parquet.metadata.num_rows
                return fault("rows", f"it has {rows:,} rows, but {file.rows:,} were written")
            kind = "pages"
            named = (parquet.metadata.metadata or {}).get(ORIGIN.encode())
            if file.origin and named and named != file.origin.encode():
                return fault("origin", f"its metadata names {named.decode(errors='replace')}")
            origin = {name: values_of(parquet, name) for name in FROM_PATH}
    except (pa.ArrowException, OSError) as error:
        return fault(kind, f"its {kind} cannot be read: {error}")
    if file.ranks and not _may_have(origin["rank"], file):
        return fault("origin", f"it contains rank {rank_spans(origin['rank'])}")
    return ", ".join(sorted(map(str, origin["run"]))) if file.ranks else None


def _may_have(found: set[int], file: Expected) -> bool:
    """Return whether the rank statistics of a file match the ranks that reference it.

    Args:
        found: Minimum and maximum ranks of the row groups; empty if they are not recorded.
        file: The file as the manifest describes it.
    """
    if not found:
        return True
    first, last = min(file.ranks), max(file.ranks)
    if file.rank_rows == file.rows:
        return (min(found), max(found)) == (first, last)
    return min(found) <= first and last <= max(found)


def values_of(parquet: pq.ParquetFile, column: str) -> set[Any]:
    """Return the minimum and maximum of a column in each row group, from the Parquet statistics."""
    names = parquet.schema_arrow.names
    if column not in names:
        return set()
    found: set[Any] = set()
    for group in range(parquet.num_row_groups):
        statistics = parquet.metadata.row_group(group).column(names.index(column)).statistics
        if statistics and statistics.has_min_max:
            found |= {statistics.min, statistics.max}
    return found


def _strangers(looked: list[tuple[Expected, str]]) -> Iterator[Fault]:
    """Find files that contain a different run than the other files of the same rank.

    The run in the manifest may differ from the one in the files, because runs can be renamed.
    """
    inside: dict[tuple[str, int], Counter[str]] = {}
    for file, run in looked:
        for rank in file.ranks:
            inside.setdefault((file.run, rank), Counter())[run] += 1
    for file, run in looked:
        runs = inside[file.run, file.ranks[0]]
        usual = file.run if file.run in runs else max(sorted(runs), key=runs.__getitem__)
        if run != usual:
            yield Fault(file.path, "origin", f"it contains run {run}", file.run, file.ranks)
