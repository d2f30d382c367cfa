"""The rows of all tiny traces in one file, each with the number of its place (a set of traces).

Setting a variable selects a place. The file is in the folder .hta_sql and survives the run. Only
new traces are read; a change to the reader makes it read all traces again.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

import hta_sql
from hta_sql import synthetic
from hta_sql.authoring.golden import read_traces
from hta_sql.library import sqltext
from hta_sql.library.creation import SCOPE_TABLES
from hta_sql.library.definitions import definitions
from hta_sql.library.objects import load_library
from hta_sql.library.sql_files import stored_columns
from hta_sql.store.catalog.build import put_tables
from hta_sql.store.catalog.columns import stored_files
from hta_sql.store.catalog.template import connected, template
from hta_sql.store.disk.folder import store_folder
from hta_sql.store.disk.manifest import Manifest
from hta_sql.store.disk.shard_files import read_shards
from hta_sql.traces.writing import replacing
from tests.golden_cases import TESTS, TRACES, all_cases, traces_of
from tests.mutants.uses import digest_of
from tests.pinned.answers import TINY, write_runs
from tests.pinned.jobs import SECOND_NS, read_jobs
from tests.properties.traces import random_job, write_job

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

KEPT = TESTS.parent / ".hta_sql" / "mutants"
"""Folder of the files that a run leaves for the next one."""

JOB = "job "
"""Prefix of the name of a synthetic job; all other names are ``traces`` lines of golden cases."""

PINNED = "pinned "
"""Prefix of the name of a place with answers in tests/pinned."""

PLACE = "place"
"""Name of the column, and of the variable, that has the number of a place."""


def stored_tables() -> dict[str, dict[str, str]]:
    """Return the stored tables that the views of a catalog read, with their column types."""
    stored = {table: {**kinds, "span": "INTEGER"} for table, kinds in stored_columns().items()}
    return {**stored, **SCOPE_TABLES}


def rows_file() -> Path:
    """Return the path of the file with the rows, which depends on the current table definitions."""
    return KEPT / f"rows-{digest_of(repr(stored_tables()))}.duckdb"


def keep_rows(wanted: Iterable[str]) -> None:
    """Read the rows of missing places into the file."""
    KEPT.mkdir(parents=True, exist_ok=True)
    is_new = not rows_file().exists()
    numbers = {} if is_new else dict(numbers_of_digests())
    missing = [traces for traces in wanted if place_digest(traces) not in numbers]
    if not missing:
        return
    # Written to a new file, because other processes may be reading this one.
    with (
        replacing(rows_file()) as part,
        tempfile.TemporaryDirectory() as top,
        _opened(part, None if is_new else rows_file()) as con,
    ):
        if is_new:
            con.execute("CREATE TABLE places (place INTEGER, digest VARCHAR)")
            for name, columns in stored_tables().items():
                empty = sqltext.values({PLACE: "INTEGER", **columns}, [])
                con.execute(sqltext.create_table(sqltext.identifier(name), empty))
        catalog = Path(top) / "catalog.duckdb"
        shutil.copyfile(template(load_library()), catalog)
        with connected(catalog) as source:
            for traces in missing:
                number = numbers[place_digest(traces)] = len(numbers)
                folder = Path(top) / f"{number}"
                folder.mkdir()
                con.execute("BEGIN")
                for name, rows in _rows_of(source, traces, folder):
                    con.register("new_rows", rows)
                    select = f"SELECT {number:d}, n.* FROM new_rows AS n"  # noqa: S608 - a number
                    con.execute(sqltext.insert(sqltext.identifier(name), select))
                con.execute("INSERT INTO places VALUES (?, ?)", [number, place_digest(traces)])
                con.execute("COMMIT")
    numbers_of_digests.cache_clear()


def _opened(part: Path, before: Path | None) -> duckdb.DuckDBPyConnection:
    if before:
        shutil.copyfile(before, part)
    return duckdb.connect(str(part))


def _rows_of(
    con: duckdb.DuckDBPyConnection, traces: str, folder: Path
) -> Iterator[tuple[str, pa.Table]]:
    """Read the traces of a place; yield its tables as the catalog ``con`` defines them."""
    if traces.startswith(JOB):
        runs = write_job(random_job(int(traces.removeprefix(JOB))), folder)
    elif traces.startswith(PINNED):
        runs = write_runs(traces.removeprefix(PINNED), folder / "traces")
    else:
        runs = traces_of(traces)
    (read_jobs if traces.startswith(PINNED) else read_traces)(runs, folder / "job.store")
    store = store_folder(folder / "job.store")
    entries = [entry for shard in read_shards(store) for entry in shard.entries]
    # Golden cases have no ingest time. The runs of a job are ingested one after the other.
    is_asked_when = traces.startswith((PINNED, JOB))
    read_at = {run: SECOND_NS * at if is_asked_when else None for at, run in enumerate(runs)}
    entries = [replace(one, ingested_ns=read_at[one.run]) for one in entries]
    con.execute("BEGIN")
    files = stored_files(Manifest().with_entries(entries), store)
    put_tables(con, store, files, load_library())
    for name in stored_tables():
        rows = con.sql(f"FROM stored.{sqltext.identifier(name)}").to_arrow_table()
        if rows.num_rows:
            yield name, rows
    con.execute("ROLLBACK")


def number_of(traces: str) -> int:
    """Return the number of an existing place."""
    return numbers_of_digests()[place_digest(traces)]


@cache
def numbers_of_digests() -> dict[str, int]:
    """Return the number of each existing place, by the digest of its traces."""
    with duckdb.connect(str(rows_file()), read_only=True) as con:
        return dict(con.execute("SELECT digest, place FROM places").fetchall())


@cache
def place_digest(traces: str) -> str:
    """Hash the traces of a place, and the code that reads them."""
    texts = [traces, _reader_digest()]
    if traces.startswith(JOB):
        texts.append("one run after the other")
    elif traces.startswith(PINNED):
        makers = [
            *(
                TESTS / "pinned" / name
                for name in ("jobs.py", "crowds.py", "words.py", "vocabulary.csv")
            ),
            *TESTS.glob("jobs/*.py"),
            *TESTS.glob("*advice*.py"),
        ]
        makers += Path(synthetic.__file__).parent.glob("*.py")
        texts += [path.read_text(encoding="utf-8") for path in sorted(makers)]
        traces_read = [path for path in TRACES.rglob("*") if path.is_file()]
        texts += [path.read_text(encoding="latin-1") for path in sorted(traces_read)]
        if traces.endswith(TINY):
            texts += sorted({case.traces for case in all_cases()})
    else:
        for ranks in traces_of(traces).values():
            for trace in map(Path, ranks.values()):
                # A CSV table is read together with those next to it.
                beside = trace.parent.glob("*.csv") if trace.suffix == ".csv" else [trace]
                texts += [path.read_text(encoding="latin-1") for path in sorted(beside)]
    return digest_of(*texts)


@cache
def _reader_digest() -> str:
    package = Path(hta_sql.__file__).parent
    readers = [*package.glob("ingestion/**/*.py"), *package.glob("traces/**/*.py")]
    paths = [*sorted(readers), TESTS / "properties" / "traces.py"]
    return digest_of(definitions(), *(path.read_text(encoding="utf-8") for path in paths))
