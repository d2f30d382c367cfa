"""Tests of ``hta-sql export`` in every format."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import openpyxl
import pyarrow.parquet as pq
import pytest

import hta_sql
from hta_sql.exports import exports
from hta_sql.exports.exports import Selection
from hta_sql.library.objects import load_library
from tests.shared_stores import ingest_only

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def csv_rows(path: Path) -> list[dict[str, str]]:
    """Read a CSV file with Python's CSV reader."""
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_every_analysis_is_a_parquet_file(cli: Cli, store: Path, tmp_path: Path) -> None:
    """Without names, every analysis is exported to a Parquet file with exact values."""
    done = cli("export", store, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    with hta_sql.open(store) as opened:
        names = opened.sql("SELECT name FROM analyses WHERE is_default").rows()
        assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted(
            f"{name}.parquet" for (name,) in names
        )
        expected = opened.run("temporal_breakdown").rows()
    table = pq.read_table(tmp_path / "out" / "temporal_breakdown.parquet")
    assert [tuple(row.values()) for row in table.to_pylist()] == expected


def test_names_and_ranks_choose(cli: Cli, store: Path, tmp_path: Path) -> None:
    """Analyses and tables can be selected by name, and rows by rank."""
    done = cli(
        *("export", store, "gpu_ops", "runs", "temporal_breakdown_v1"),
        *("--format", "csv", "-o", tmp_path / "out", "--ranks", "1"),
    )
    assert done.code == 0, done.err
    rows = csv_rows(tmp_path / "out" / "gpu_ops.csv")
    assert [row["rank"] for row in rows] == ["1", "1", "1"]
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        *("gpu_ops.csv", "runs.csv", "temporal_breakdown_v1.csv")
    }


def test_sheets_hold_texts_as_texts(cli: Cli, ingest_hostile: Path, tmp_path: Path) -> None:
    """In a spreadsheet, a kernel named like a formula is a string, and numbers are numbers."""
    done = cli("export", ingest_hostile, "gpu_ops", "ranks", "-o", tmp_path / "out.xlsx")
    assert done.code == 0, done.err
    book = openpyxl.load_workbook(tmp_path / "out.xlsx")
    assert book.sheetnames == ["gpu_ops", "ranks"]
    header, row = book["gpu_ops"].iter_rows(min_row=1, max_row=2)
    cells = {name.value: cell for name, cell in zip(header, row, strict=True)}
    assert cells["name"].value == "=1+1"
    assert cells["name"].data_type == "s"
    assert cells["dur"].value == 5000


def test_csv_is_no_way_into_a_spreadsheet(cli: Cli, ingest_hostile: Path, tmp_path: Path) -> None:
    """In CSV, strings that a spreadsheet would evaluate are prefixed with an apostrophe."""
    cli("export", ingest_hostile, "gpu_ops", "--format", "csv", "-o", tmp_path)
    (row,) = csv_rows(tmp_path / "gpu_ops.csv")
    assert row["name"] == "'=1+1"
    query = "SELECT '@x' AS a, '''y' AS b, -1 AS c, NULL AS d, 'z' AS e"
    assert cli("sql", ingest_hostile, query, "--format", "csv").out == "a,b,c,d,e\n'@x,''y,-1,,z\n"


@pytest.mark.parametrize(
    "text", ["\n=1+1", "\ufeff=1+1", " =1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff20x"]
)
def test_csv_has_no_hidden_formulas(cli: Cli, ingest_hostile: Path, text: str) -> None:
    """White space, byte order marks and full-width characters do not hide a formula."""
    codes = " || ".join(f"chr({ord(character)})" for character in text)
    out = cli("sql", ingest_hostile, f"SELECT {codes} AS a", "--format", "csv").out
    assert next(csv.DictReader(io.StringIO(out)))["a"] == f"'{text}"


@pytest.fixture
def ingest_hostile(tmp_path: Path) -> Path:
    """Ingest a kernel that is named like a formula."""
    event = '{"ph":"X","cat":"kernel","name":"=1+1","pid":0,"tid":7,"ts":1,"dur":5,"args":{"device":0,"stream":7}}'
    trace = tmp_path / "hostile.json"
    trace.write_text(f'{{"schemaVersion": 1, "traceEvents": [{event}]}}')
    ingest_only(trace, tmp_path / "hostile.store")
    return tmp_path / "hostile.store"


def test_a_sheet_says_what_it_has_no_room_for(
    cli: Cli, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If rows do not fit in a sheet, a message counts them and suggests Parquet."""
    monkeypatch.setattr(exports, "SHEET_ROWS", 4)
    done = cli("export", store, "gpu_ops", "-o", tmp_path / "out.xlsx")
    assert (
        "gpu_ops: 2 of the 6 rows are not in its sheet; to export all rows, use --format parquet"
        in done.err
    )
    assert openpyxl.load_workbook(tmp_path / "out.xlsx")["gpu_ops"].max_row == 5


def test_sheets_on_a_full_disk(cli: Cli, store: Path, tmp_path: Path) -> None:
    """On a full disk, writing a spreadsheet fails with the same error as other formats."""
    full = tmp_path / "full.xlsx"
    full.symlink_to("/dev/full")
    cli("export", store, "gpu_ops", "-o", full).fails(1, "No space left on device")
    assert full.is_char_device()


def test_long_names_stay_apart_as_sheets() -> None:
    """Sheet names are truncated to 31 characters and remain distinct."""
    long = "a" * 40
    assert list(exports._sheet_names([long, long + "b"]).values()) == ["a" * 31, "a" * 29 + "~2"]


def test_one_duckdb_file_answers_like_the_store(cli: Cli, store: Path, tmp_path: Path) -> None:
    """The exported DuckDB file is self-contained: it has the tables, views, macros and comments."""
    file = tmp_path / "job.duckdb"
    assert cli("export", store, "-o", file, "--ranks", "1").code == 0
    with hta_sql.open(store) as opened:
        expected = opened.run("temporal_breakdown", ranks=[1]).rows()
    with duckdb.connect(str(file), read_only=True) as con:
        assert con.sql("FROM temporal_breakdown").fetchall() == expected
        assert con.sql("FROM temporal_breakdown(ranks := [1])").fetchall() == expected
        assert con.sql("SELECT count(*) FROM events").fetchall() == [(3,)]
        comments = "SELECT comment FROM duckdb_columns() WHERE table_name = 'gpu_ops' AND schema_name = 'main' AND column_name = 'dur'"
        assert con.sql(comments).fetchall() == [("Recorded duration. [ns]",)]


def test_chains_of_calls_for_speedscope(cli: Cli, tmp_path: Path) -> None:
    """A speedscope export has profiles of device time and host time for each rank."""
    trace = Path(__file__).parent.parent / "traces" / "python_frames.json"
    ingest_only({0: str(trace)}, tmp_path / "job.store", run="job")
    file = tmp_path / "job.speedscope.json"
    assert cli("export", tmp_path / "job.store", "-o", file).code == 0
    text = json.loads(file.read_text(encoding="utf-8"))
    frames = text["shared"]["frames"]
    device, host = text["profiles"]
    assert (device["name"], device["endValue"]) == ("job, rank 0: device time", 34_000)
    assert (host["name"], host["endValue"], sum(host["weights"])) == (
        *("job, rank 0: host time", 129_000, 129_000),
    )
    chains = {
        tuple(frames[at]["name"] for at in sample): weight
        for sample, weight in zip(device["samples"], device["weights"], strict=True)
    }
    assert chains["(other)",] == 5_000
    python = ("train.py(1): <module>", "ProfilerStep*", "train.py(9): step", "model.py(3): forward")
    layer = ("nn.Module: Linear_0", "aten::linear", "aten::addmm", "cudaLaunchKernel")
    assert chains[python + layer] == 9_000
    assert {"name": "model.py(3): forward", "file": "model.py", "line": 3} in frames
    assert len({json.dumps(frame) for frame in frames}) == len(frames)
    cli("export", tmp_path / "job.store", "gpu_ops", "-o", file).fails(1, "omit the names")
    cli("export", tmp_path / "job.store", "-o", tmp_path, "--format", "speedscope").fails(1, "file")


def test_errors_say_what_to_do(cli: Cli, store: Path, tmp_path: Path) -> None:
    """Errors name an unknown table or rank, superfluous names, or an unsuitable output path."""
    cli("export", store, "gpu_op", "-o", tmp_path).fails(1, "gpu_op", "gpu_ops")
    cli("export", store, "gpu_ops", "-o", tmp_path / "x.duckdb").fails(1, "omit the names")
    cli("export", store, "-o", tmp_path / "x", "--ranks", "7").fails(1, "No rank 7")
    (tmp_path / "file").write_text("")
    cli("export", store, "-o", tmp_path / "file").fails(1, "is a file")
    cli("export", store, "-o", tmp_path, "--format", "xlsx").fails(1, "is a folder")
    cli("export", store, "-o", tmp_path, "--format", "duckdb").fails(1, "is a folder")


def test_a_folder_is_not_named_like_a_file(cli: Cli, store: Path, tmp_path: Path) -> None:
    """An output folder with the suffix ``.parquet`` is refused, because it suggests a file."""
    cli("export", store, "gpu_ops", "-o", tmp_path / "a.parquet").fails(2, "folder", "hta-sql sql")
    assert not (tmp_path / "a.parquet").exists()


def test_unknown_format_is_refused(store: Path, tmp_path: Path) -> None:
    """In Python, an unknown format raises a ParameterError that lists the formats."""
    with hta_sql.open(store) as opened, pytest.raises(hta_sql.ParameterError, match="parquet, csv"):
        exports.export(opened, tmp_path, "ods", Selection())


def test_a_workbook_has_the_tables_of_a_report(
    cli: Cli, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without names it has what a report shows for every job, cut at 10,000 rows; --all has all."""
    monkeypatch.setattr(exports, "MAIN_ROWS", 1)
    done = cli("export", store, "-o", tmp_path / "main.xlsx")
    book = openpyxl.load_workbook(tmp_path / "main.xlsx")
    assert book.sheetnames[:2] == ["advice", "top_costs"]
    assert {"step_accounting", "kernel_table"} <= set(book.sheetnames)
    assert "queue_length_series" not in book.sheetnames
    assert all(sheet.max_row <= 2 for sheet in book)
    assert re.search(r"warning: kernel_table: \d+ of the \d+ rows are not in its sheet", done.err)
    assert cli("export", store, "--all", "-o", tmp_path / "all.xlsx").code == 0
    names = openpyxl.load_workbook(tmp_path / "all.xlsx").sheetnames
    assert len(names) == len(load_library().newest())
