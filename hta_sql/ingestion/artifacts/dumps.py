"""Reads Flight Recorder dumps into staged tables.

The meaning of their values is defined in sql/ingest/store/fr_*.sql.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from hta_sql.ingestion.artifacts.damage import report_damage
from hta_sql.ingestion.artifacts.frames import FRAMES
from hta_sql.ingestion.artifacts.values import Values
from hta_sql.ingestion.statements import run
from hta_sql.library.sql_files import ingest_sql
from hta_sql.library.sqltext import all_rows, create_table
from hta_sql.text import counted
from hta_sql.traces.flight_recorder import Dump, group_ranks, read_dump

DUMP_TABLES = ("fr_entries", "fr_groups", "fr_frames")
"""The tables that only dumps fill."""

MAX_SIZES = 1 << 16
"""Maximum length of the sizes of an operation [characters]; longer sizes are NULL.

The sizes of 2,000 tensors take half of this.
"""

MAX_RANKS = 16 << 20
"""Maximum length of the ranks of a group [characters]."""

ENTRY_BYTES = 200
"""What an operation counts as, next to its texts [bytes]."""

MAX_FRAMES = 512
"""Maximum number of stored frames of a stack, from the innermost.

Python's default recursion limit is 1,000.
"""

_INTEGERS = ("record_id", "pg_id", "collective_seq_id", "p2p_seq_id", "op_id")
_TIMES = ("time_created_ns", "time_discovered_started_ns", "time_discovered_completed_ns")
_TEXTS = ("profiling_name", "state", "thread_id", "thread_name")
_LISTS = ("input_sizes", "input_dtypes", "output_sizes", "output_dtypes")
_FLAGS = ("retired", "is_p2p")

_ENTRIES = pa.schema(
    [
        *((name, pa.int64()) for name in (*_INTEGERS, *_TIMES, "timeout_ms")),
        ("duration_ms", pa.float64()),
        *((name, pa.string()) for name in (*_TEXTS, *_LISTS, "pg_name", "pg_desc")),
        *((name, pa.bool_()) for name in _FLAGS),
        ("stack_id", pa.int64()),
    ]
)
_GROUPS = pa.schema(
    [
        ("pg_id", pa.int64()),
        *((name, pa.string()) for name in ("pg_name", "pg_desc", "member_ranks")),
        ("member_count", pa.int64()),
        *(
            (name, pa.int64())
            for name in ("last_enqueued_id", "last_started_id", "last_completed_id")
        ),
    ]
)


class DumpValues(NamedTuple):
    """Converts the values of a dump.

    Attributes:
        deciding: For values on which a verdict on a hang depends.
        describing: For all other values.
    """

    deciding: Values
    describing: Values


def stage_dump(
    con: duckdb.DuckDBPyConnection, path: str | None
) -> tuple[Counter[str], dict[str, Any]]:
    """Read a dump into staged tables.

    Args:
        con: The database of the rank.
        path: Path of the dump; None creates the tables without rows.

    Returns:
        Number of rows by table, and the metadata for the table ranks.

    Raises:
        TraceFormatError: The file is not a dump, is damaged, or has a pickle opcode that builds
            more than plain values.
    """
    dump = read_dump(path) if path else Dump("", [], {}, {}, None)
    rows: Counter[str] = Counter()
    values = DumpValues(Values(dump.size), Values(dump.size))
    for table, content in dump_tables(dump, values).items():
        con.register("dump_rows", content)
        run(con, create_table(f"staged_{table}", all_rows("dump_rows")))
        con.unregister("dump_rows")
        rows[table] = content.num_rows
    problem = "; ".join(_problems(dump, values.deciding))
    report_damage(con, rows, "Flight Recorder dump", path, problem, odd=values.describing.problem)
    return rows, _metadata(dump, path)


def _problems(dump: Dump, values: Values) -> Iterator[str]:
    """Yield what a dump lacks because it is damaged."""
    if dump.problem:
        yield dump.problem
    if dump.skipped:
        yield f"{counted(dump.skipped, 'operation')} skipped: no number or name"
    if dump.odd_keys:
        yield f"{counted(dump.odd_keys, 'item')} with a nested key skipped"
    if values.problem:
        yield values.problem


def dump_tables(dump: Dump, values: DumpValues) -> dict[str, pa.Table]:
    """Return the rows of the staged tables.

    Args:
        dump: The dump.
        values: Converts its values, and notes those that are left out.
    """
    stacks: dict[tuple[Any, ...], int] = {}
    entries = pa.Table.from_pydict(_columns(_entries(dump, stacks, values), _ENTRIES), _ENTRIES)
    return {
        "fr_entries": entries,
        "fr_groups": pa.Table.from_pydict(_columns(_groups(dump, values), _GROUPS), _GROUPS),
        "fr_frames": pa.Table.from_pydict(_columns(_frames(stacks), FRAMES), FRAMES),
    }


def place_dump(con: duckdb.DuckDBPyConnection, job: dict[str, Any]) -> None:
    """Create the tables that describe the rank of an artifact, which has no events and no clock.

    Args:
        con: The database of the rank.
        job: An item of the parameter ``jobs`` of sql/ingest/link/rank_frames.sql.
    """
    run(con, ingest_sql("link/rank_frames", "job"), {"jobs": [job]})
    for name in ("rank_frame", "described_devices"):
        run(con, ingest_sql("link/dump_frames", name))
    run(con, create_table("described_ranks", ingest_sql("store/ranks")))


def _metadata(dump: Dump, path: str | None) -> dict[str, Any]:
    backends = {str(entry["profiling_name"]).partition(":")[0] for entry in dump.entries}
    info = {
        "world_size": dump.world_size,
        "backend": ",".join(sorted(backends)) or None,
        "nccl_version": dump.library_version,
    }
    return {
        "flight_recorder": {
            "version": dump.version,
            "problem": dump.problem,
            "written_ns": _written_ns(path),
        },
        "distributedInfo": {key: value for key, value in info.items() if value is not None},
    }


def _written_ns(path: str | None) -> int | None:
    """Return the modification time of a file [ns]; None if the path is not a file of this system.

    A dump does not state when it was written.
    """
    try:
        return Path(path).stat().st_mtime_ns if path else None
    except (OSError, ValueError):
        return None


def _columns(rows: Iterator[tuple[Any, ...]], schema: pa.Schema) -> dict[str, list[Any]]:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return {name: list(values) for name, values in zip(schema.names, columns, strict=True)}


def _entries(
    dump: Dump, stacks: dict[tuple[Any, ...], int], both: DumpValues
) -> Iterator[tuple[Any, ...]]:
    """Yield the values of each entry, in the order of the columns, and number the stacks."""
    deciding, values = both
    # A pickle may reference one list, or one entry, many times.
    known: dict[tuple[int, str], Any] = {}

    def once(value: Any, what: str, convert: Callable[[Any], Any]) -> Any:
        if (id(value), what) not in known:
            known[id(value), what] = convert(value)
        return known[id(value), what]

    for entry in dump.entries:
        if not deciding.takes(ENTRY_BYTES):
            return
        get = entry.get
        name, description = _group_of(get("process_group"), deciding)
        yield (
            *(_whole(get(key), deciding) for key in _INTEGERS),
            *(_whole(get(key), values) for key in _TIMES),
            _whole(get("timeout_ms"), values),
            values.number(get("duration_ms")),
            *(_text(get(key), deciding) for key in _TEXTS),
            *(once(get(key), "list", lambda v: values.listed(v, MAX_SIZES)) for key in _LISTS),
            name,
            description,
            *(bool(get(key)) for key in _FLAGS),
            once(get("frames"), "stack", lambda v: _stack_id(v, stacks, values)),
        )


def _groups(dump: Dump, both: DumpValues) -> Iterator[tuple[Any, ...]]:
    """Yield the process groups that the dump declares, and those that only its entries name."""
    values = both.deciding
    named: dict[str, tuple[int | None, str | None]] = {}
    unnoted = Values(dump.size)
    for entry in dump.entries:
        name, description = _group_of(entry.get("process_group"), unnoted)
        if name is not None:
            named[name] = _whole(entry.get("pg_id"), unnoted), description
    # Gloo states a group without a name, whose ranks are numbered within the group.
    for name in [*named, *(name for name in dump.groups if name and name not in named)]:
        number, description = named.get(name, (None, None))
        stated = dump.groups.get(name, {})
        ranks = group_ranks(stated)
        status = dump.status.get(str(number), {}) if number is not None else {}
        yield (
            number,
            values.text(name),
            description or _text(stated.get("desc"), values),
            values.listed(ranks, MAX_RANKS),
            len(ranks) if ranks else None,
            *(
                _from_zero(status.get(f"last_{what}_collective"), values)
                for what in ("enqueued", "started", "completed")
            ),
        )


def _frames(stacks: dict[tuple[Any, ...], int]) -> Iterator[tuple[Any, ...]]:
    for stack, number in stacks.items():
        for depth, frame in enumerate(stack):
            yield number, depth, *frame


def _stack_id(frames: Any, stacks: dict[tuple[Any, ...], int], values: Values) -> int | None:
    if not isinstance(frames, list) or not frames:
        return None
    stack = tuple(
        (
            _text(f.get("name"), values),
            _text(f.get("filename"), values),
            _whole(f.get("line"), values),
        )
        for f in frames[:MAX_FRAMES]
        if isinstance(f, dict)
    )
    return stacks.setdefault(stack, len(stacks)) if stack else None


def _group_of(value: Any, values: Values) -> tuple[str | None, str | None]:
    """Return the name and description of a process group: ``("0", "default_pg")``."""
    if isinstance(value, (list, tuple)) and len(value) >= 2:
        return _text(value[0], values), _text(value[1], values)
    return (_text(value, values), None) if isinstance(value, str) else (None, None)


def _text(value: Any, values: Values) -> str | None:
    """Return a string, or an integer as a string; None for other values."""
    if type(value) is int:
        number = values.whole(value)
        return None if number is None else str(number)
    return values.text(value)


def _whole(value: Any, values: Values) -> int | None:
    """Return an integer, which may be written as a string; None for other values."""
    if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 20:
        value = int(value)
    return values.whole(value)


def _from_zero(value: Any, values: Values) -> int | None:
    """Return the number of a collective; None if the recorder wrote -1."""
    number = _whole(value, values)
    return number if number is not None and number >= 0 else None
