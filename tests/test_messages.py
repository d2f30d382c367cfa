"""Tests of messages: analyses return codes with values, and the catalog has the templates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb
import pytest

import hta_sql
from hta_sql.authoring.golden_messages import render
from hta_sql.library.answers import definition_digest, sql_digest
from hta_sql.library.messages import SENTENCES, message_rows
from hta_sql.library.objects import load_library, parse_library
from hta_sql.library.sql_files import sql_root
from tests.golden_cases import TRACES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    """Return an engine that has only the message macros."""
    con = duckdb.connect(":memory:")
    con.execute("CREATE SCHEMA lib")
    for path in sorted((sql_root() / "lib" / "messages").glob("*.sql")):
        con.execute(path.read_text(encoding="utf-8"))
    return con


def text_of(con: duckdb.DuckDBPyConnection, template: str, fields: str) -> str | None:
    """Render a template with the given fields."""
    query = f"SELECT lib.message_text($template, to_json({fields}))"
    found: list[tuple[str | None]] = con.execute(query, {"template": template}).fetchall()
    ((text,),) = found
    return text


@pytest.mark.parametrize(
    ("form", "value", "expected"),
    [
        ("", "'a name'", "a name"),
        (":count", "1234567", "1,234,567"),
        (":count", "1234567.0::DOUBLE", "1,234,567"),
        (":pct", "81.46", "81.5 %"),
        (":ratio", "1.731", "1.73"),
        (":time", "2991100000", "3.0 s"),
        (":time", "5001000020001", "5,001.0 s"),
        (":time", "999960000", "1.0 s"),
        (":time", "12400000", "12.4 ms"),
        (":time", "-870000", "-870.0 µs"),
        (":time", "15", "15 ns"),
        (":bytes", "79600000000", "79.6 GB"),
        (":bytes", "4200000", "4.2 MB"),
        (":bytes", "1500", "1.5 kB"),
        (":bytes", "12", "12 B"),
        (":gap|gaps", "1", "gap"),
        (":gap|gaps", "0", "gaps"),
        (":gap|gaps", "2", "gaps"),
        (":step time|the capture", "true", "step time"),
        (":step time|the capture", "false", "the capture"),
        (": See: this.|", "true", " See: this."),
        (": See: this.|", "false", ""),
        (":count", "NULL", "unknown"),
        ("", "NULL", "unknown"),
        (":x|y", "NULL", "y"),
    ],
)
def test_a_placeholder_is_rendered_by_its_format(
    con: duckdb.DuckDBPyConnection, form: str, value: str, expected: str
) -> None:
    """Numbers have units and a sensible scale, and a choice selects one of two strings."""
    assert text_of(con, f"[{{x{form}}}]", f"{{'x': {value}}}") == f"[{expected}]"


def test_a_name_with_braces_is_no_placeholder(con: duckdb.DuckDBPyConnection) -> None:
    """Braces in a name that comes from a trace are not rendered as a placeholder."""
    fields = """{'name': 'k{n:count}<"x">', 'n': 7}"""
    assert text_of(con, "{name} ran {n} times.", fields) == 'k{n:count}<"x"> ran 7 times.'


def test_a_missing_template_has_no_sentence(con: duckdb.DuckDBPyConnection) -> None:
    """Without a template, there is no message."""
    assert con.execute("SELECT lib.message_text(NULL, to_json({'n': 1}))").fetchall() == [(None,)]


def test_an_unknown_format_is_an_error(con: duckdb.DuckDBPyConnection) -> None:
    """An unknown format is an error, which the rules of the library find before a release."""
    with pytest.raises(duckdb.Error, match="seconds"):
        text_of(con, "{n:seconds}", "{'n': 1}")


def test_fields_of_an_analysis_are_added_to_those_of_a_message(
    con: duckdb.DuckDBPyConnection,
) -> None:
    """An analysis can add fields to those of a message, even to a message without fields."""
    for fields in ("{'n': 1}", "NULL"):
        message = f"lib.message('a.b', {fields}).fields"
        query = f"SELECT lib.message_text('{{x}}', lib.with_fields({message}, {{'x': 2}}))"
        assert con.execute(query).fetchall() == [("2",)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest two ranks, one of which is late, and return the path of the store."""
    path = tmp_path_factory.mktemp("messages") / "job.store"
    traces = {rank: str(TRACES / f"late_{rank}.json") for rank in (0, 1)}
    hta_sql.ingest(traces, path).close()
    return path


def test_python_and_a_plain_shell_return_the_same_sentences(store: Path) -> None:
    """Python and a plain DuckDB client return the same codes and messages."""
    with hta_sql.open(store) as opened:
        frame = opened.run("advice").df()
    told = list(zip(frame["message_code"], frame["message"], frame["remedy"], strict=True))
    assert ("advice.exposed_transfer", frame["message"][0]) in [t[:2] for t in told]
    values = {"exposed_pct": 20.4, "has_steps": False}
    assert frame["message"][0] == render("advice.exposed_transfer", values)
    with duckdb.connect(str(store / "catalog.duckdb"), read_only=True) as plain:
        query = "SELECT message_code, message, remedy FROM advice"
        assert plain.execute(query).fetchall() == told
        query = "SELECT message FROM messages WHERE code = 'findings.no_steps'"
        assert plain.execute(query).fetchall() == [(render("findings.no_steps"),)]


def test_each_sentence_stands_next_to_its_code() -> None:
    """Each message column comes with the code column that programs use to filter or translate."""
    for analysis in load_library().newest():
        names = [column.name for column in analysis.columns]
        for name in SENTENCES & {"message", "reason", "about"} & set(names):
            code = {"message": "message_code", "reason": "reason_code", "about": "about_code"}[name]
            if analysis.base_name == "stragglers":  # a message or a reason, never both
                code = "message_code"
            assert code in names, analysis.name


def test_a_corrected_word_makes_materialized_answers_stale(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A corrected template makes answers with messages stale, although no analysis has changed."""
    library = parse_library(sql_root())
    advice = library.find("advice")
    before = sql_digest(library, advice), definition_digest(advice)
    rows = tuple((code, *words[:-1], "Other words.") for code, *words in message_rows(sql_root()))
    monkeypatch.setattr("hta_sql.library.answers.message_rows", lambda _root: rows)
    library = replace(library)
    assert sql_digest(library, advice) != before[0]
    assert definition_digest(advice) == before[1]
    without = library.find("temporal_breakdown")
    assert sql_digest(library, without) == sql_digest(parse_library(sql_root()), without)
