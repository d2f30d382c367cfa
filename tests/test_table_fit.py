"""Tests that a table on a narrow terminal shows its most important columns and loses no text."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from hta_sql.library.objects import load_library
from hta_sql.results.cells import NULL
from hta_sql.results.display import TableRows, print_table, text_columns

ROWS_REMEDY = "--limit 0: all rows"
COLUMNS_REMEDY = "--format csv: all columns"

SHORT = {
    "cost": "exposed_transf",
    "verdict": "suspect",
    "cause": "host-bou",
    "rule": "collective_wait",
}
"""Column of short texts ─▶ a typical text."""


def printed(columns: Mapping[str, Sequence[Any]], width: int, max_rows: int = 40) -> list[str]:
    """Print columns as a table, and return its lines."""
    file = io.StringIO()
    rows = TableRows(pa.table(dict(columns)))
    print_table(
        rows,
        max_rows,
        file=file,
        width=width,
        rows_remedy=ROWS_REMEDY,
        columns_remedy=COLUMNS_REMEDY,
    )
    return file.getvalue().splitlines()


def names_of(lines: list[str]) -> list[str]:
    """Return the column names of a printed table, which may be wrapped."""
    rule = next(at for at, line in enumerate(lines) if line.startswith("─"))
    spans = [found.span() for found in re.finditer("─+", lines[rule])]
    return ["".join(line[slice(*span)].strip() for line in lines[:rule]) for span in spans]


def test_a_table_that_fits_keeps_its_columns_and_cells() -> None:
    """Without a need, no column is dropped or reordered, no text cut, and no name wrapped."""
    columns: dict[str, list[Any]] = {
        "total_ns": [1, 2],
        "message": ["words " * 10, "-"],
        "run": ["job", "job"],
    }
    lines = printed(columns, 90)
    assert lines[0].split() == ["total_ns", "message", "run"]
    assert lines[2].split() == ["1", "ns", *["words"] * 10, "job"]
    assert len(lines) == 4


def test_names_wrap_and_long_texts_are_cut_before_a_column_is_dropped() -> None:
    """Numbers and short texts are never cut; the first columns get what is left of the line."""
    columns: dict[str, list[Any]] = {
        "name": ["k" * 90],
        "exposed_transfer_ns": [12_345_000],
        "started": ["2026-01-02 03:04:05.678901"],
    }
    narrow, wide = printed(columns, 62), printed(columns, 100)
    assert names_of(narrow) == names_of(wide) == list(columns)
    assert [line.startswith("─") for line in narrow].index(True) == 2
    assert [line.startswith("─") for line in wide].index(True) == 1
    for lines in (narrow, wide):
        assert "…" in lines[-1]
        assert lines[-1].endswith("12.345 ms  2026-01-02 03:04:05.678901")


def test_the_last_columns_are_dropped_first() -> None:
    """Columns that do not fit are dropped from the end and named below the table."""
    columns = {f"part_{at}_of_step_ns": [12_345_000] for at in range(8)}
    lines = printed(columns, 50)
    shown = names_of(lines)
    assert 2 < len(shown) < 8
    assert shown == list(columns)[: len(shown)]
    text = " ".join(map(str.strip, lines))
    assert f"(columns not shown: {', '.join(list(columns)[len(shown) :])};" in text


@pytest.mark.parametrize("width", [80, 120, 160])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """Table, notes and footer all fit the width, however long the names are."""
    columns: dict[str, list[Any]] = {
        f"a_rather_long_column_name_{at}_ns": [at, 2] for at in range(30)
    }
    columns["message"] = ["words " * 40, "other words " * 30]
    assert max(map(len, printed(columns, width, 1))) <= width


def test_long_reasons_become_notes_instead_of_being_cut() -> None:
    """A reason is printed in full below the table; several columns of notes share one column."""
    reason = "not statistically significant: chance explains the lateness"
    message = "Suspected straggler: rank 1 costs the other ranks up to 11.4 %"
    columns: dict[str, list[Any]] = {
        "rank": [0, 1],
        "verdict_reason": [None, reason],
        "message": [None, message],
    }
    assert [line.split() for line in printed(columns, 70)[2:4]] == [
        ["0", "–"],  # noqa: RUF001 - the dash that stands for NULL
        ["1", "[1]", "[2]"],
    ]
    assert printed(columns, 70)[0] == "rank  notes"
    assert printed(columns, 70)[4:] == ["", f"[1] {reason}", f"[2] {message}"]


def test_the_footer_offers_only_what_is_left_out() -> None:
    """All rows are shown, so no option for more rows is offered; and vice versa."""
    wide = {f"column_{at}": [f"{at} {row} " + "x" * 20 for row in range(3)] for at in range(9)}
    text = " ".join(printed(wide, 60))
    assert "--format csv: all columns" in text
    assert "--limit 0" not in text
    few = printed({"rank": [0, 1, 2]}, 60, 2)
    assert few[-1] == "(2 of 3 rows; --limit 0: all rows)"


def test_the_footer_names_columns_without_differences() -> None:
    """Equal and empty columns are named once; an empty string counts as empty."""
    columns: dict[str, list[Any]] = {
        "rank": [0, 1],
        "run": ["job", "job"],
        "name": ["a" * 30, "b" * 30],
        "op_name": [None, None],
        "job": ["", ""],
    }
    assert printed(columns, 40)[-2:] == [
        "(the same in all rows: run = job)",
        "(empty in all rows: op_name, job)",
    ]
    part = printed({**{k: [*v, v[0]] for k, v in columns.items()}}, 40, 2)
    assert "(the same in all shown rows: run = job)" in part


def test_the_footer_names_important_columns_first() -> None:
    """A column that was dropped for its width precedes columns that are never shown."""
    columns = {f"{name}_ns": [123456789] for name in ("first", "second", "third", "fourth")}
    text = " ".join(map(str.strip, printed(columns, 30)))
    assert "(columns not shown: third_ns, fourth_ns;" in text


def test_figures_are_in_the_unit_of_their_row() -> None:
    """A key figure in nanoseconds is formatted as a time, and one in bytes as a size."""
    analysis = load_library().find("kpi_trends")
    columns = {
        "kpi": ["step_ns", "peak_memory_bytes", "idle_pct"],
        "unit": ["ns", "bytes", "%"],
        "kpi_value": [41_544_968.167, 2e9, 12.0],
        "baseline_median": [None, 1.5e9, 11.0],
    }
    cells = {c.name: c.cells for c in text_columns(TableRows(pa.table(columns), analysis))}
    assert cells["kpi_value"] == ["41.545 ms", "2.000 GB", "12.00"]
    assert cells["baseline_median"] == [NULL, "1.500 GB", "11.00"]


def test_the_columns_of_an_analysis_answer_at_80_characters() -> None:
    """Name, time and share of these analyses fit 80 characters."""
    library = load_library()
    expected = {
        "step_accounting": {
            "rank",
            "step_ns",
            "compute_pct",
            "transfer_pct",
            "wait_pct",
            "idle_pct",
        },
        "host_accounting": {"forward_pct", "backward_pct", "communication_pct", "other_pct"},
        "top_costs": {"cost", "cost_ns", "cost_pct", "worst_rank", "short_name", "message"},
        "stragglers": {"rank", "verdict", "cause", "late_ns", "subject"},
        "advice": {"rule", "rank", "step_saved_ns", "saved_pct", "subject"},
    }
    for name, columns in expected.items():
        analysis = library.find(name)
        table = {
            column.name: ["words " * 20, "other words " * 9]
            if column.type == "VARCHAR"
            else [12345678, 23456789]
            if column.unit == "ns"
            else [12, 13]
            for column in analysis.columns
        }
        table |= {k: [f"{v} a", f"{v} b"] for k, v in SHORT.items() if k in table}
        table["run"] = ["job", "job"]
        file = io.StringIO()
        print_table(TableRows(pa.table(table), analysis), file=file, width=80)
        heading = names_of(file.getvalue().splitlines())
        assert columns <= {*heading, *(["message"] if "notes" in heading else [])}, name


def test_notes_never_outnumber_many_rows() -> None:
    """Of two columns of sentences, the one with more texts is omitted if each row had two notes."""
    columns: dict[str, list[Any]] = {
        "rank": list(range(10)),
        "message": [f"rank {rank} " + "waits " * 9 for rank in range(10)],
        "remedy": ["balance the work of the ranks " * 2] * 9 + ["load data faster " * 3],
    }
    lines = printed(columns, 60)
    assert names_of(lines) == ["rank", "remedy"]
    assert [line[:3] for line in lines if line.startswith("[")] == ["[1]", "[2]"]
    assert any(line.startswith("(columns not shown: message;") for line in lines)
