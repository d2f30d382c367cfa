"""A trace is read again only if the definitions in the ingest SQL have changed."""

from __future__ import annotations

import logging
import shutil
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

import hta_sql
from hta_sql.library import definitions
from hta_sql.library.sql_files import sql_root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.safety.conftest import WriteTraces

INGEST = sorted((sql_root() / "ingest").rglob("*.sql"))


@pytest.fixture
def sql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Copy the ingest SQL, and use the copy as the definitions."""
    shutil.copytree(sql_root() / "ingest", tmp_path / "sql" / "ingest")
    monkeypatch.setattr(definitions, "sql_root", lambda: tmp_path / "sql")
    definitions.definitions.cache_clear()
    yield tmp_path / "sql" / "ingest"
    definitions.definitions.cache_clear()


def read_again(traces: Path, store: Path) -> bool:
    """Ingest the traces, and return whether any of them was read."""
    definitions.definitions.cache_clear()
    with hta_sql.ingest(traces, store, run="job") as opened:
        assert opened.ingested
        return bool(opened.ingested.results)


def test_comments_and_layout(sql: Path, write_traces: WriteTraces, tmp_path: Path) -> None:
    """Changing comments or whitespace in SQL files and rule tables does not change definitions."""
    traces = write_traces({0: 100.0})
    assert read_again(traces, tmp_path / "job.store")
    counters = sql / "store" / "counters.sql"
    text = counters.read_text()
    counters.write_text("-- It's new.\n" + text.replace("\n    ", "\n\t\t ") + "/* last */\n")
    rules = sql / "kernel_classes.csv"
    rules.write_text("# Rules.\n\n" + rules.read_text())
    assert not read_again(traces, tmp_path / "job.store")


@pytest.mark.parametrize(
    "change", [("store/counters.sql", "x.value", "-x.value"), ("kernel_classes.csv", "10,", "11,")]
)
def test_another_definition(
    change: tuple[str, str, str], sql: Path, write_traces: WriteTraces, tmp_path: Path
) -> None:
    """Changing a single character of a definition causes the traces to be read again."""
    traces = write_traces({0: 100.0})
    assert read_again(traces, tmp_path / "job.store")
    file, old, new = change
    path = sql / file
    path.write_text(path.read_text().replace(old, new, 1))
    assert read_again(traces, tmp_path / "job.store")


def test_an_analysis_says_so_once(
    sql: Path, write_traces: WriteTraces, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The first analysis of a store with older definitions warns; ``findings`` reports them too."""
    store = tmp_path / "job.store"
    assert read_again(write_traces({0: 100.0, 1: 100.0}), store)
    (sql / "kernel_classes.csv").write_text("priority,regex,class,collective,vendor\n")
    definitions.definitions.cache_clear()
    (store / "catalog.duckdb").unlink()
    with caplog.at_level(logging.WARNING), hta_sql.open(store) as opened:
        found = opened.sql("SELECT value FROM findings() WHERE finding = 'older_definitions'")
        assert found.rows() == [(2.0,)]
        opened.run("findings").rows()
        assert caplog.text == ""
        opened.run("temporal_breakdown").rows()
        opened.run("idle_gaps").rows()
    assert caplog.text.count("may differ: job. Ingest their traces again.") == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT 'a -- b'", "SELECT 'a'"),
        ('SELECT "a  b"', 'SELECT "a b"'),
        (r"SELECT E'\'--'", r"SELECT E'\''"),
        ("SELECT $$ -- $$", "SELECT $$  $$"),
        ("SELECT a b", "SELECT ab"),
    ],
)
def test_texts_are_kept(one: str, other: str) -> None:
    """Comment markers and spaces inside quotes are part of the string."""
    assert definitions.tokens(one) != definitions.tokens(other)


def test_a_quote_in_a_comment() -> None:
    """A quote in a comment does not begin a string."""
    assert definitions.tokens("SELECT 'it''s' -- it's\n, 1") == ["SELECT", "'it''s'", ",", "1"]


@pytest.mark.parametrize("path", INGEST, ids=lambda path: path.stem)
def test_the_engine_sees_the_same_comments(path: Path) -> None:
    """Our tokenizer removes the same comments as the engine's tokenizer."""
    text = path.read_text(encoding="utf-8").encode()
    found = [*duckdb.tokenize(text.decode()), (len(text), duckdb.token_type.comment)]
    kept = [
        text[start:end]
        for (start, kind), (end, _) in pairwise(found)
        if kind != duckdb.token_type.comment
    ]
    without_space = b"".join(b"".join(kept).split()).decode()
    assert "".join("".join(definitions.tokens(text.decode())).split()) == without_space
