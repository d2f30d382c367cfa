"""The compiled reader and the SQL statements read the same rows from each trace."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hta_sql.errors import TraceError
from hta_sql.ingestion import native
from hta_sql.ingestion.call_tree import call_tree
from hta_sql.ingestion.native import best_build, native_batch, native_call_tree
from hta_sql.traces import compiled
from hta_sql.traces.chunks import Chunk, TraceReader
from hta_sql.traces.source import open_trace
from tests.fuzz.events import changed_event
from tests.ingestion.corpus import event, faults
from tests.ingestion.readers import ANY, check_readers_agree, needs_native, read
from tests.ingestion.ways import Way, staged

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
TRACES = sorted(
    path
    for path in (ROOT / "tests" / "traces").rglob("*.json*")
    if not {"hangs", "snapshots"} & set(path.parts)  # Flight Recorder dumps, memory snapshots
)
SHARED = ROOT.parent / "shared" / "traces"


def chunks_of(path: Path, size: int) -> Iterator[bytes]:
    """Cut a trace into chunks as an ingest does; yield nothing if the file is not a trace."""
    with suppress(TraceError), open_trace(str(path)) as stream:
        reader = TraceReader(stream, str(path), size)
        yield from (chunk.text for chunk in reader)


@needs_native
def test_small_traces() -> None:
    """Both readers agree on every test trace, and the compiled reader reads most chunks."""
    texts = list(chain.from_iterable(chunks_of(path, 2000) for path in TRACES))
    assert len(check_readers_agree(texts)) > 0.9 * len(texts)


@needs_native
def test_every_fault_of_the_corpus() -> None:
    """The compiled reader leaves all faults that need a repair to the SQL statements."""
    known = faults()
    read_natively = check_readers_agree([fault.text for fault in known])
    assert len(read_natively) > 20
    fates = [fate for n in read_natively for fate in known[n].fates]
    assert all(fate.is_kept and not fate.reason for fate in fates)


@needs_native
@pytest.mark.parametrize("seed", range(3))
def test_changed_events(seed: int) -> None:
    """Both readers agree on events with random changes; ``make fuzz`` tests more of them."""
    random = Random(seed)
    assert check_readers_agree([changed_event(random) for _ in range(300)])


@needs_native
def test_ids_go_on_behind_a_refused_chunk() -> None:
    """Event ids continue correctly after a chunk that the compiled reader refuses."""
    odd = event(pid="7.5")
    texts = [event() + b"," + event(), odd + b", " + odd, event(name='"last"')]
    tables, read_natively = read(texts, by_native=True)
    assert read_natively == {0: 2, 2: 1}
    assert [(row[0], row[5]) for row in tables["cpu_ops"][1]] == [
        *((n, "bad") for n in range(4)),
        (4, "last"),
    ]


@needs_native
def test_a_refused_chunk_leaves_nothing_behind() -> None:
    """A refused chunk leaves no partial rows, even if its rows end within a byte of a bitmap."""
    plain = [event(args='{"Seq": 1, "dtype": "a", "Input Dims": [[1]], "y": 2}'), event()]
    odd = event(args='{"External id": 5, "dtype": "half", "Input type": [1], "Seq": 1.5}')
    texts = [b",".join(plain * n + [odd] * (n % 3 == 2)) for n in range(1, 12)]
    assert len(check_readers_agree(texts)) == 7


@needs_native
def test_of_arguments_with_one_name_the_first_counts() -> None:
    """If an argument is repeated, its first value is used, even if it is null.

    The compiled reader leaves such events to the SQL statements.
    """
    texts = [event(args='{"Seq": null, "Seq": 7}'), event(args='{"Seq": 7, "Seq": null}')]
    assert not check_readers_agree(texts)


@needs_native
def test_batches_end_where_enough_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch ends when enough rows are buffered, and the result does not depend on its size."""
    path = tmp_path / "trace.json"
    texts = [event(args='{"x": 1}'), event(pid="7.5"), event(name='"c"')] * 4
    path.write_bytes(b'{"traceEvents": [' + b", ".join(texts) + b"]}")
    whole = staged(path, Way(is_native=False))
    monkeypatch.setattr(native, "MOST_HELD", 1)
    for most_held in (0, 1 << 10, ANY):
        assert staged(path, Way(chunk_bytes=200, most_held=most_held)) == whole


@needs_native
@pytest.mark.parametrize("most_held", [0, 500, ANY])
def test_what_was_read_is_copied_where_it_cannot_be_shown(most_held: int, tmp_path: Path) -> None:
    """The result is the same whether rows are copied into the engine or read in place."""
    plain = [event(name=f'"{n}"') for n in range(100)]
    named = (
        b'{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 1, '
        b'"args": {"name": "Ascend Hardware"}}'
    )
    for n, texts in enumerate((plain, [*plain, event(pid="7.5")], [*plain, named])):
        path = tmp_path / f"{n}.json"
        path.write_bytes(b'{"traceEvents": [' + b", ".join(texts) + b"]}")
        whole = staged(path, Way(is_native=False))
        assert staged(path, Way(chunk_bytes=1000, most_held=most_held)) == whole


@needs_native
def test_what_grows_beyond_its_text_is_refused() -> None:
    """The compiled reader refuses a counter whose rows would be much larger than its JSON."""
    long = b'"' + b"n" * (5 << 20) + b'"'
    series = b", ".join(b'"%d": %d' % (n, n) for n in range(64))
    text = b'{"ph": "C", "ts": 1, "name": %s, "args": {%s}}' % (long, series)
    batch = native_batch()
    assert batch
    assert list(batch.left([Chunk(0, 0, text)]))
    assert batch.refused == {"size": 1}


def test_it_may_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQL statements are used if the compiled reader is disabled or missing."""
    monkeypatch.setenv(compiled.SWITCH, "0")
    assert compiled.reader_at_work() == "SQL"
    assert native_batch() is None
    monkeypatch.delenv(compiled.SWITCH)
    monkeypatch.setattr(compiled, "LIBRARY", Path("nowhere.so"))
    assert compiled.reader_at_work() == "SQL"
    assert compiled.load.__wrapped__() is None


@needs_native
def test_one_of_another_version_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiled reader of a different version is not used: its memory layout may differ."""
    assert compiled.load.__wrapped__()
    monkeypatch.setattr(compiled, "VERSION", compiled.VERSION + 1)
    assert compiled.load.__wrapped__() is None


def test_versions_are_the_same() -> None:
    """The version in the Rust source equals the version that Python expects."""
    source = (ROOT / "native" / "src" / "lib.rs").read_text(encoding="utf-8")
    assert re.findall(r"VERSION: u32 = (\d+);", source) == [str(compiled.VERSION)]


@needs_native
@pytest.mark.slow(reason="large")
@pytest.mark.skipif(not SHARED.is_dir(), reason="the public traces are not here")
@pytest.mark.parametrize("job", sorted(path.name for path in SHARED.glob("*")))
def test_public_traces(job: str) -> None:
    """Both readers agree on public traces, including malformed ones."""
    for path in sorted((SHARED / job).rglob("*.json*")):
        check_readers_agree(list(_some(path)))


def _some(path: Path) -> Iterator[bytes]:
    """Yield the first 40 MB of a trace in chunks; later events rarely add coverage."""
    for n, text in zip(count(), chunks_of(path, 1 << 16)):
        if n == 600:
            return
        yield text


def test_what_builds_the_call_tree_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disabling the compiled reader also selects the SQL builder for the call tree."""
    assert best_build() == (call_tree if native_batch() is None else native_call_tree)
    monkeypatch.setenv(compiled.SWITCH, "0")
    assert best_build() == call_tree


@needs_native
def test_columns_of_another_type_are_refused() -> None:
    """The compiled call tree builder refuses columns of the wrong type."""
    columns_of = {
        "thread": pa.int64(),
        "ts": pa.int64(),
        "end_ts": pa.int64(),
        "event_id": pa.int64(),
    }
    kinds = {"kind": pa.int8(), "is_backward": pa.int8(), "name_hash": pa.uint64()}
    batch = pa.record_batch(
        {name: pa.array([0], kind) for name, kind in (columns_of | kinds).items()}
    )
    with pytest.raises(TypeError, match="Column thread must be int32 without NULLs, but is int64"):
        list(native_call_tree([batch]))
