"""Odd names are redacted: of compiled code, not UTF-8, very long, or with control characters."""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree as ET

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hta_sql.exports.exports import Selection, export, write_sheets
from hta_sql.exports.redaction.arguments import redacted_json
from hta_sql.exports.redaction.exporting import export_redacted
from hta_sql.exports.redaction.names import Redactor
from hta_sql.exports.redaction.stores import JSON_KINDS, KIND_OF_COLUMN, NAMES, STACK_NAMES
from hta_sql.exports.redaction.traces import name_kind
from hta_sql.results.result import Result
from hta_sql.results.writers import WRITERS
from hta_sql.store.query.trace_store import TraceStore
from tests.examples import examples
from tests.golden_cases import TESTS
from tests.shared_stores import ingest_only

MARKER = "Zqacme"

FRAMES = {
    "<string>(1): {}": "<string>(1): function_*",
    "<eval_with_key>.5(9): {}": "<eval_with_key>.5(9): function_*",
    "<eval_with_key>.{}(9): forward": "frame_*.py(9): forward",
    "<ipython-input-3-{}>(2): my_{}": "frame_*.py(2): function_*",
    "<frozen {}>(3): forward": "frame_*.py(3): forward",
    "<frozen importlib.{}>(3): load": "frame_*.py(3): function_*",
    "<attrs generated init {}>(1): __init__": "frame_*.py(1): __init__",
    "<string>(1): <lambda> of {}": "<string>(1): function_*",
    "datasets/{}.py(12): load_{}": "frame_*.py(12): function_*",
    "distributed/train.py(1): {}": "frame_*.py(1): function_*",
}
"""Frame ─▶ its redacted form; the braces stand for the secret."""

PUBLIC_FRAMES = (
    "<frozen importlib._bootstrap>(241): _call_with_frames_removed",
    "<frozen os>(675): __getitem__",
    "<string>(1): <module>",
    "<string>(2): __init__",
    "<eval_with_key>.12(4): forward",
    "<string>(1): <lambda>",
    "site-packages/datasets/arrow_dataset.py(3): map",
)

ODD = (
    *(
        "a\0{}",
        "\x1b[31m{}",
        "{}\x7f\x85",
        "\u202e{}",
        "{}\ufffe\uffff",
        "{}\ud800",
        "\U0001f600{}",
    ),
    *("=cmd|{}!A1", "+{}", "-{}", "@{}", "'{}", '"{}",', "{}\r\n;\t", "_x0041_{}", "]]>{}<a&b"),
    *("{}" * 7000, "mesh_\ud800{}", "aten::{}\n", "٣{}", "_Z{}_x", "_Z" + "9" * 5000 + "{}"),
    *(
        "<string>(1): {}",
        "<{}>.5(9): {}",
        "../{}",
        "{}/" * 300,
        "(" * 3000 + "{}",
        "nn.Module: {}²",
    ),
)
"""Strings that some file formats cannot represent; the braces stand for the secret."""

KIND = sorted({*KIND_OF_COLUMN.values(), *NAMES.values(), *STACK_NAMES.values(), "event"})


def odd(text: str) -> str:
    """Insert the secret into a string."""
    return text.replace("{}", MARKER)


@pytest.mark.parametrize("frame", FRAMES)
def test_a_function_of_compiled_text_is_private(frame: str) -> None:
    """Frames of code compiled by exec() or FX, or from a project's folder, are redacted."""
    new = Redactor("key")("frame", odd(frame))
    pattern = re.escape(FRAMES[frame]).replace(r"\*", "[0-9a-f]{12}")
    assert re.fullmatch(pattern, new), new


@pytest.mark.parametrize("frame", PUBLIC_FRAMES)
def test_frames_of_the_interpreter_stay(frame: str) -> None:
    """Frozen modules of the standard library and common function names are kept."""
    assert Redactor("key")("frame", frame) == frame


def recorded_names() -> list[tuple[str, str]]:
    """Return the (kind, name) pairs of all events in the test traces."""
    found = set()
    for path in sorted((TESTS / "traces").glob("*.json")):
        try:
            trace = json.loads(path.read_text(encoding="utf-8", errors="replace"))
        except ValueError:
            continue  # some traces are malformed on purpose
        events = trace.get("traceEvents", []) if isinstance(trace, dict) else trace
        for event in (event for event in events if isinstance(event, dict)):
            if isinstance(event.get("name"), str):
                found.add((name_kind(event.get("cat")), event["name"]))
    return sorted(found)


def test_no_public_name_shelters_a_secret() -> None:
    """A secret is hashed at any position in a recorded name.

    Names in a library's C++ namespace or module path are excluded, because all of their parts
    belong to the library by definition.
    """
    redact, leaks = Redactor("key"), []
    names = [(k, n) for k, n in recorded_names() if "::" not in n and not n.startswith("torch/")]
    assert len(names) > 100
    for kind, name in names:
        for place in {0, len(name), *(found.start() for found in re.finditer(r"\b|_", name))}:
            for secret in (MARKER, MARKER.lower()):
                spoiled = name[:place] + secret + name[place:]
                leaks += [spoiled] if secret in redact(kind, spoiled) else []
    assert leaks == []


@pytest.mark.parametrize("kind", KIND)
def test_odd_names_become_plain_text(kind: str) -> None:
    """A redacted name consists of printable ASCII, which every format can represent."""
    for text in ODD:
        new = Redactor("key")(kind, odd(text))
        assert MARKER not in new
        assert new.isascii(), (text[:20], new[:80])
        assert new.isprintable(), (text[:20], new[:80])


@pytest.mark.parametrize("kind", sorted(set(JSON_KINDS.values())))
def test_odd_json_is_redacted_or_hashed(kind: str) -> None:
    """JSON that is deeply nested, has huge numbers or is invalid does not leak a secret."""
    deep = "[" * 900 + f'"{MARKER}"' + "]" * 900
    for text in (deep, "9" * 5000, f'{{"{MARKER}', f'["\\ud800{MARKER}"]', f'{{"{MARKER}": 3}}'):
        new = redacted_json(Redactor("key"), kind, text)
        assert MARKER not in new
        assert new.isascii()


def odd_trace(rng: Random) -> dict[str, Any]:
    """Return a trace with an odd name in every text field."""

    def text() -> str:
        return odd(rng.choice(ODD))

    def event(cat: str, number: int, **more: Any) -> dict[str, Any]:
        args: dict[str, Any] = {
            text(): rng.choice((1, text())),
            "Call stack": text(),
            "dtype": text(),
        }
        args |= {"Input type": [text()], "Concrete Inputs": [text(), [[[text()]]]]}
        args |= {"Process Group Name": text(), "Process Group Description": text()}
        place = {"pid": 1, "tid": 1, "ts": 100.0 * number, "dur": 50}
        return {"ph": "X", "cat": cat, "name": text(), **place, "args": args} | more

    cats = ("cpu_op", "user_annotation", "python_function", "cuda_runtime", "kernel", "odd")
    deep = json.loads("[" * 200 + "]" * 200)
    events = [event(cat, number) for number, cat in enumerate(cats * 2)]
    events += [
        event("cpu_op", 20, args={"Concrete Inputs": deep}),
        event(text(), 21, pid=text(), tid=text()),
        {"ph": "C", "name": text(), "pid": 1, "ts": 1, "args": {text(): 5}},
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": text()}},
        {"ph": "X", "cat": "cpu_op", "name": text(), "ts": "soon", "dur": text()},
    ]
    group = {"pg_name": text(), "pg_desc": text(), "ranks": [0]}
    info = {"backend": "nccl", "rank": 0, "world_size": 1, "pg_config": [group]}
    return {"host_name": text(), text(): text(), "distributedInfo": info, "traceEvents": events}


def contents(path: Path) -> str:
    """Return the unpacked contents of a file as one string."""
    if path.suffix == ".parquet":
        return repr(pq.read_table(path).to_pylist())
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as book:
            parts = [book.read(name) for name in book.namelist()]
        for part in parts:
            ET.fromstring(part)  # noqa: S314 - our own; a character that XML forbids would raise
        return repr(parts)
    if path.suffix == ".duckdb":
        with duckdb.connect(str(path), read_only=True) as con:
            tables = con.sql("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
            rows = [con.sql(f'FROM "{schema}"."{name}"').fetchall() for schema, name in tables]
        return repr(rows) + repr(path.read_bytes())
    data = path.read_bytes()
    return repr(gzip.decompress(data) if path.suffix == ".gz" else data)


FORMATS = ("trace", "csv", "parquet", "xlsx", "speedscope", "duckdb")
SOME = (
    *("cpu_ops", "ranks", "event_args", "counters", "stacks", "process_groups", "python_calls"),
    *("other_events", "quarantine", "devices", "operator_table"),
)


def target_of(folder: Path, name: str) -> Path:
    """Return the folder or file to which the export in a given format is written."""
    return folder / name if name in ("trace", "csv", "parquet") else folder / name / f"job.{name}"


@pytest.mark.parametrize("seed", range(examples(2)))
def test_odd_names_are_given_away_in_no_format(seed: int, tmp_path: Path) -> None:
    """An export with odd names succeeds in each format and does not contain the secret."""
    trace = tmp_path / f"{MARKER}.json"
    trace.write_text(json.dumps(odd_trace(Random(seed))), encoding="ascii")
    ingest_only(trace, tmp_path / "job.store", run=MARKER)
    for name in FORMATS:
        target = target_of(tmp_path / "out", name)
        names = SOME if name in ("csv", "parquet", "xlsx") else ()
        export_redacted(tmp_path / "job.store", target, name, Redactor("key"), Selection(names))
        files = [path for path in (tmp_path / "out" / name).rglob("*") if path.is_file()]
        assert len(files) == (len(SOME) if name in ("csv", "parquet") else 1)
        for path in files:
            assert MARKER.lower() not in contents(path).lower(), path
            assert MARKER.lower() not in str(path.relative_to(tmp_path)).lower()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest a job of two ranks."""
    folder = tmp_path_factory.mktemp("job")
    paths = {rank: str(TESTS / "traces" / f"two_ranks_{rank}.json") for rank in (0, 1)}
    ingest_only(paths, folder / "job.store")
    return folder / "job.store"


class FullError(OSError):
    """Simulated error of a full disk."""


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("name", ["csv", "parquet", "xlsx", "trace", "speedscope", "duckdb"])
def test_an_export_that_fails_leaves_nothing(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_new: bool
) -> None:
    """A failed export creates no folder and leaves an existing folder unchanged."""
    done: list[object] = []

    def fail(*given: Any, **_named: Any) -> Any:
        done.append(given)
        raise FullError("full")

    def fail_second(*given: Any) -> None:
        if done:
            fail()
        done.append(given)
        given[1].write(b"half")

    monkeypatch.setitem(WRITERS, "csv", fail_second)
    monkeypatch.setitem(WRITERS, "parquet", fail_second)
    monkeypatch.setattr("hta_sql.exports.speedscope.json.dumps", fail)
    monkeypatch.setattr("hta_sql.exports.portable._fill", fail)
    monkeypatch.setattr("hta_sql.exports.exports._fill_sheets", fail)
    target = target_of(tmp_path / "new" / "er", name)
    if not is_new:
        target_of(tmp_path / "new" / "er", name).parent.mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    names = ("cpu_ops", "ranks") if name in ("csv", "parquet", "xlsx") else ()
    if name == "trace":
        rewrite = redact_first_only(done)
        monkeypatch.setattr("hta_sql.exports.redaction.exporting.redact_trace", rewrite)
        with pytest.raises(FullError):
            export_redacted(store, target, name, Redactor("key"))
    else:
        with TraceStore(store) as opened, pytest.raises(FullError):
            export(opened, target, name, Selection(names))
    assert done
    assert sorted(tmp_path.rglob("*")) == before


def redact_first_only(done: list[object]) -> Any:
    """Return a replacement for redact_trace that fails at the second trace."""

    def redact(_source: str, path: Path, _redact: Redactor) -> Any:
        if done:
            raise FullError("full")
        done.append(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
        return type("Rewritten", (), {"events": 1, "lost_count": 0})

    return redact


def test_a_sheet_holds_odd_texts(tmp_path: Path) -> None:
    """Spreadsheets are valid XML, with formulas written as strings and long cells truncated."""
    texts = ["a\0b", "\x1b", "\ufffe\uffff", "=1+1", "_x0041_", "]]><&", "x" * 40_000, "\U0001f600"]
    rows = Result.of_rows(pa.table({"=1+1": texts}))
    with (tmp_path / "a.xlsx").open("wb") as stream:
        write_sheets({"texts": lambda: rows}, stream)
    book = contents(tmp_path / "a.xlsx")
    assert "<f>" not in book
    assert f">{'x' * 32_767}<" in book
    assert "_x0000_" in book


def test_files_of_other_names_stay(store: Path, tmp_path: Path) -> None:
    """An export into an existing folder replaces only the files that it writes."""
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with TraceStore(store) as opened:
        for _ in range(2):
            export(opened, tmp_path, "csv", Selection(("ranks", "cpu_ops")))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("cpu_ops.csv", "notes.txt", "ranks.csv")
    ]
