"""Tests of text tables: units, width, omitted columns and escaped control characters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hta_sql.results.cells import cell_text, number_text
from hta_sql.text import cut_column, printable, rank_spans

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def test_hostile_names_do_not_reach_the_terminal(
    cli: Cli, store: Path, traces: Path, tmp_path: Path, hostile: str
) -> None:
    """Control characters are escaped in text output but unchanged in JSON."""
    query = ("sql", store, "SELECT DISTINCT name FROM gpu_ops WHERE name LIKE 'evil%'")
    for name in ("table", "markdown"):
        text = cli(*query, "--format", name).out
        assert "evil" in text
        assert all(c.isprintable() for c in text.replace("\n", ""))
    assert json.loads(cli(*query, "--format", "json").out) == [{"name": hostile}]
    trace = tmp_path / "a\x1b[2J.json"
    trace.write_text("no json")
    done = cli("ingest", trace, traces, "-o", tmp_path / "x.store")
    assert "\x1b" not in done.err
    assert "\\x1b" in done.err


def test_table_fits_its_width(cli: Cli, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is wider than ``COLUMNS``, and a note names the columns that are not shown."""
    for width in (40, 80, 120, 1000):
        monkeypatch.setenv("COLUMNS", str(width))
        out = cli("run", store, "temporal_breakdown").out
        table = out.split("\n(")[0]
        assert max(map(len, table.splitlines())) <= width
        text = " ".join(cli("sql", store, "FROM gpu_ops").out.split())
        assert ("columns not shown" in text) == (width < 1000)


def test_what_is_the_same_in_each_row_makes_room(
    cli: Cli, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a table is too wide, constant columns are replaced by a note below it."""
    query = "SELECT 'job' AS run, range AS number, NULL::VARCHAR AS shapes FROM range(2)"
    wide = cli("sql", store, query).out
    monkeypatch.setenv("COLUMNS", "16")
    narrow = cli("sql", store, query).out
    assert wide.splitlines()[0].split() == ["run", "number", "shapes"]
    assert narrow.splitlines()[0].split() == ["number"]
    footer = "(the same in all rows: run = job) (empty in all rows: shapes)"
    assert " ".join(narrow.split("\n\n")[1].split()) == footer
    one = cli("sql", store, query.replace("range(2)", "range(1)")).out
    assert one.splitlines()[0].split()[0] == "run"


def test_what_tells_most_stays(cli: Cli, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of NULLs and constants are dropped first, and messages are never truncated."""
    monkeypatch.setenv("COLUMNS", "60")
    query = (
        "SELECT range AS rank, 'a rather long name' AS kernel, NULL::BIGINT AS cost, "
        "'Ranks wait for rank ' || range || ', which loads its data' AS message FROM range(2)"
    )
    lines = cli("sql", store, query).out.splitlines()
    assert lines[0].split() == ["rank", "message"]
    assert lines[2] == "   0  Ranks wait for rank 0, which loads its data"
    assert lines[-2:] == [
        "(the same in all rows: kernel = a rather long name)",
        "(empty in all rows: cost)",
    ]
    monkeypatch.setenv("COLUMNS", "44")
    lines = cli("sql", store, query).out.splitlines()
    assert lines[2].split() == ["0", "[1]"]
    assert lines[5:7] == ["[1] Ranks wait for rank 0, which loads its", "    data"]


def test_long_sentences_stand_below_the_table(
    cli: Cli, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long sentence is printed below the table, and its row refers to it by number."""
    monkeypatch.setenv("COLUMNS", "64")
    query = (
        "SELECT range AS rank, 'a name of some words ' || range AS kernel, "
        "range * 1000000 AS cost_ns, range || ' is late and all of the others wait' AS message "
        "FROM range(2)"
    )
    header, _, *rows = cli("sql", store, query).out.splitlines()
    assert header.split() == ["rank", "kernel", "cost_ns", "message"]
    assert rows[0].split()[-1] == "[1]"
    assert rows[1].split()[-4:] == ["1", "1.000", "ms", "[2]"]
    assert rows[2:] == [
        "",
        "[1] 0 is late and all of the others wait",
        "[2] 1 is late and all of the others wait",
    ]


@pytest.mark.parametrize("width", [80, 120, 160])
def test_a_narrow_terminal_shows_the_columns_that_answer(
    cli: Cli, store: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """A narrow table shows the most important columns, and a note names the others."""
    monkeypatch.setenv("COLUMNS", str(width))
    lines = cli("run", store, "kernel_table").out.splitlines()
    names = lines[next(i for i, line in enumerate(lines) if line.startswith("─")) - 1]
    assert names.index("rank") < names.index("sum") < names.index("short_name")
    assert max(map(len, lines[:4])) <= width
    assert "(columns not shown: " in "\n".join(lines)
    assert "registers_per_thread" in " ".join(lines[-4:])


def test_columns_are_chosen(cli: Cli, store: Path) -> None:
    """``--columns`` selects columns and their order, and an unknown column is an error."""
    query = ("sql", store, "SELECT 1 AS a, 2 AS b, 3 AS c")
    assert cli(*query, "--columns", "c,a", "--format", "csv").out == "c,a\n3,1\n"
    assert cli(*query, "--columns", "b").out.splitlines()[0] == "b"
    done = cli(*query, "--columns", "bb")
    assert done.code == 2
    assert "No column 'bb'. Did you mean 'b'? Available: a, b, c" in done.err


def test_empty_results_say_what_is_needed(cli: Cli, store: Path) -> None:
    """An empty table is printed with the likely reason."""
    done = cli("run", store, "frequent_kernel_sequences", "--operator-name", "aten::nothing")
    reason = "The selected operator_name may exclude everything."
    assert f"No rows. {reason} frequent_kernel_sequences needs: operators" in done.out
    done = cli("run", store, "profiler_steps")
    assert done.out.endswith("No rows. profiler_steps needs: profiler steps (prof.step()).\n")
    for name, text in {"csv": "a\n", "json": "[]\n", "markdown": "| a |\n| ---: |\n"}.items():
        done = cli("sql", store, "SELECT 1 AS a WHERE false", "--format", name)
        assert (done.code, done.out) == (0, text)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (134_511_000, "ns", "134.511 ms"),
        (999, "ns", "999 ns"),
        (0, "ns", "0 ns"),
        (-1_500, "ns", "-1.500 µs"),
        (12_345_678_901, "ns", "12.346 s"),
        (1_700_000_000_000_000_000, "ns", "1700000000000000000 ns"),
        (1_250_000_000, "bytes", "1.250 GB"),
        (12, "bytes", "12 B"),
        (93.554, "%", "93.55"),
        (1234567, "id", "1234567"),
        (1234567, None, "1,234,567"),
        (0.1, None, "0.100"),
        (float("nan"), "ns", "nan"),
    ],
)
def test_numbers_for_people(value: float, unit: str | None, text: str) -> None:
    """Numbers are formatted with a unit and a suitable scale, but ids are not."""
    assert number_text(value, unit) == text


def test_cells_for_people() -> None:
    """NULL, booleans, lists, structs and bytes are formatted as text."""
    assert [cell_text(value) for value in (None, True, [1, "a"], {"a": None}, b"\x00")] == [
        "–",  # noqa: RUF001 - the dash that stands for NULL
        "true",
        '[1, "a"]',
        '{"a": null}',
        "00",
    ]
    assert printable("é漢 ok\t\ud800\u2028") == "é漢 ok\\t\\ud800\\u2028"


def test_cut_names_stay_different() -> None:
    """Truncated names remain distinct, even if they differ only in the middle."""
    names = ["kernel_Sum_bf16_RING_LL(Args<4096>)", "kernel_Sum_f32_RING_LL(Args<4096>)"]
    cut = cut_column(names, 20)
    assert len(set(cut)) == 2
    assert all(len(text) <= 20 for text in cut)
    long = [f"void head{'x' * 40}, {width}ul, {'y' * 60}" for width in (2, 5, 7)]
    cut = cut_column([*names, *long, long[0]], 28)
    assert len(set(cut)) == 5
    assert cut[-1] == cut[2]
    assert all(len(text) <= 28 for text in cut)
    assert [text[0] for text in cut[2:5]] == ["v", "v", "v"]
    assert all(f"{width}ul" in text for width, text in zip((2, 5, 7), cut[2:], strict=False))
    assert cut_column(["漢字" * 10], 9) == ["漢字…漢字"]


def test_a_truncated_stack_frame_keeps_its_file_and_line() -> None:
    """The start of the path is dropped first, then the end of the function."""
    frame = "/job/packages/model/train.py:47 in sum_activations"
    assert cut_column([frame], 60) == [frame]
    assert cut_column([frame], 40) == ["…es/model/train.py:47 in sum_activations"]
    assert cut_column([frame], 28) == ["train.py:47 in sum_activati…"]
    assert cut_column(["torch/nn/module.py(15): _call"], 21) == ["…module.py(15): _call"]
    same = ["/a/train.py:47 in long_function", "/b/train.py:47 in long_function"]
    assert len(set(cut_column(same, 28))) == 2
    assert rank_spans([3, 0, 1, 7], ",") == "0-1,3,7"
