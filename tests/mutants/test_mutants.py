"""Tests of the mutations, of the judges of mutants, and of the list of accepted survivors."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hta_sql.library.objects import load_library
from hta_sql.library.sql_files import sql_root
from tests.mutants import judges, rows
from tests.mutants.judges import Court, Judge, undocumented
from tests.mutants.memory import Memory
from tests.mutants.mutations import Mutant, mutants_of
from tests.mutants.regexes import with_less
from tests.mutants.rows import keep_rows
from tests.mutants.run import Accepted, accepted, chosen_files, drawn, file_of, share_within
from tests.mutants.uses import parts_in, texts_of, users_of
from tests.mutants.verdicts import Verdict
from tests.mutants.workers import Queue

if TYPE_CHECKING:
    from collections.abc import Iterator

DEVICE = "analyses/health/device_type_v1.sql"


def changes(sql: str) -> set[str]:
    """Return the SQL of every mutant of a statement."""
    return {mutant.text for mutant in mutants_of("a.sql", sql)}


@pytest.mark.parametrize(
    ("sql", "changed"),
    [
        ("SELECT a < 1", {"SELECT a <= 1", "SELECT a >= 1", "SELECT a < 2", "SELECT a < 0"}),
        ("SELECT a = true", {"SELECT a <> true", "SELECT a = false"}),
        ("SELECT a IS NULL", {"SELECT a IS NOT NULL"}),
        ("SELECT a IS NOT NULL", {"SELECT a IS NULL"}),
        (
            "SELECT a IS NOT DISTINCT FROM b",
            {"SELECT a IS DISTINCT FROM b", "SELECT a = b"},
        ),
        ("SELECT a AND b", {"SELECT a OR b", "SELECT true AND b", "SELECT a AND true"}),
        ("SELECT f(a) OR (b)", {"SELECT f(a) AND (b)", "SELECT false OR (b)", "SELECT f(a) OR false"}),
        ("FROM t WHERE NOT a", {"FROM t WHERE  a", "FROM t WHERE true"}),
        ("SELECT a BETWEEN b AND c", {"SELECT a BETWEEN 1 + b AND c", "SELECT a BETWEEN b AND -1 + c"}),
        ("FROM t JOIN u USING (k)", {"FROM t LEFT JOIN u USING (k)"}),
        ("FROM t LEFT JOIN u USING (k)", {"FROM t JOIN u USING (k)"}),
        ("FROM t SEMI JOIN u USING (k)", {"FROM t ANTI JOIN u USING (k)"}),
        ("FROM t UNION ALL FROM u", {"FROM t UNION FROM u", "FROM t EXCEPT ALL FROM u"}),
        ("SELECT DISTINCT a", {"SELECT  a"}),
        ("SELECT count(DISTINCT a)", {"SELECT count( a)"}),
        # Without effect: the select list of EXISTS, and duplicates in the rows of IN.
        ("SELECT EXISTS (SELECT 1 FROM t)", set()),
        ("SELECT a IN (SELECT DISTINCT b FROM t)", set()),
        ("FROM t SEMI JOIN (SELECT DISTINCT b FROM u)", {"FROM t ANTI JOIN (SELECT DISTINCT b FROM u)"}),
        (
            "SELECT a IN (SELECT DISTINCT b FROM t LIMIT 1)",
            {
                "SELECT a IN (SELECT  b FROM t LIMIT 1)",
                "SELECT a IN (SELECT DISTINCT b FROM t LIMIT 2)",
                "SELECT a IN (SELECT DISTINCT b FROM t LIMIT 0)",
            },
        ),
        ("SELECT min(a) + b", {"SELECT max(a) + b", "SELECT min(a) - b"}),
        ("SELECT count(*), -a", {"SELECT count(*), a"}),
        ("SELECT coalesce(a, b)", {"SELECT (a)"}),
        ("SELECT sum(a) FILTER (b)", {"SELECT max(a) FILTER (b)", "SELECT sum(a) "}),
        ("FROM t ORDER BY a, b DESC", {"FROM t ORDER BY a DESC, b DESC", "FROM t ORDER BY a, b ASC"}),
        (
            "SELECT f() OVER (PARTITION BY a, b)",
            {"SELECT f() OVER (PARTITION BY  b)", "SELECT f() OVER (PARTITION BY a)"},
        ),
        ("SELECT CASE WHEN a THEN b END", {"SELECT CASE WHEN false THEN b END"}),
        ("SELECT 'a', 'He says what it is worth.'", {"SELECT 'a~', 'He says what it is worth.'"}),
        ("-- a < 1 AND b\nSELECT a", set()),
        ("CREATE OR REPLACE VIEW a AS SELECT b", set()),
    ],
)  # fmt: skip
def test_changes_of_a_statement(sql: str, changed: set[str]) -> None:
    """A statement has exactly the expected mutants, each with a single change."""
    assert changes(sql) == changed


def test_a_pattern_loses_its_parts() -> None:
    """Parts of a pattern, such as alternatives and anchors, are removed or become required."""
    assert set(with_less("^(?:hip)?Copy$")) == {
        *("(?:hip)?Copy$", "^Copy$", "^(?:hip)Copy$", "^(?:)?Copy$", "^(?:hip)?$", "^(?:hip)?Copy"),
    }
    assert set(with_less("a_?b|c")) == {"c", "_?b|c", "ab|c", "a_b|c", "a_?|c", "a_?b|", "a_?b"}


def test_a_mutant_is_named_by_its_line() -> None:
    """The name of a mutant contains the change, but not the line number."""
    (first, *_) = mutants_of("lib/a.sql", "SELECT 1,\n    a < b\nFROM t")[2:]
    assert first.key == ("lib/a.sql", "a [[< -> <=]] b")
    assert first.line == 2
    (union, *_) = mutants_of("lib/a.sql", "SELECT 1\nUNION ALL\nSELECT b\nFROM t")[2:]
    assert union.mutation == "[[UNION ALL -> UNION]] SELECT b"


def test_users_are_found_through_macros() -> None:
    """Users of a macro at any distance are found, the nearest first."""
    users = users_of("copy_rates")
    assert 0 == users["copy_rates"] < users["copy_bandwidth"] < users["memory_bandwidth_series_v1"]
    assert users_of("queue_full_time_v1") == {"queue_full_time_v1": 0}


def test_what_computes_a_derived_table_is_part_of_what_reads_it() -> None:
    """A query depends on the macros that compute its derived tables, unless these are excluded."""
    assert "_collective_calls" in parts_in("FROM links_v1()")
    assert "_collective_calls" not in parts_in("FROM links_v1()", derived=False)


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    """Return a court that judges by golden cases only, with the rows for one object's cases."""
    with pytest.MonkeyPatch.context() as patch, closing(Court()) as opened:
        patch.setattr(rows, "KEPT", tmp_path_factory.mktemp("mutants"))
        patch.setattr(judges, "_properties", lambda _: iter(()))
        patch.setattr(judges, "_pinned_judges", lambda _: iter(()))
        keep_rows({judge.traces for judge in opened.judges(Path(DEVICE).stem)})
        yield opened
        rows.numbers_of_digests.cache_clear()


def test_each_object_has_a_judge(court: Court) -> None:
    """Each object has a judge, and an analysis has at least its golden cases as judges."""
    for about in (*load_library().analyses, *load_library().macros):
        assert next(court.judges(about.name), None), about.name


@pytest.mark.parametrize(
    ("old", "new", "who"),
    [
        ("'^([A-Z ]|$)'", "'^([a-z ]|$)'", r"device_type_v1:\d+, all of it: AssertionError"),
        ("AS device_name", "AS other", "BinderException"),
        ("FROM", "from", "^$"),
        ("FROM", "FROM nowhere,", "^refused: CatalogException"),
    ],
    ids=["wrong", "not whole", "written in another way", "refused"],
)
def test_what_is_wrong_is_found(old: str, new: str, who: str, court: Court) -> None:
    """A test or the engine kills a mutant that changes results; an equivalent mutant survives."""
    text = (sql_root() / DEVICE).read_text(encoding="utf-8")
    assert re.search(who, court.judge(Mutant(DEVICE, 1, "", text.replace(old, new))).who)


def test_who_is_as_before_is_not_asked_again(
    court: Court, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Tests that have not changed do not run again on a known mutant; new tests do."""
    text = (sql_root() / DEVICE).read_text(encoding="utf-8")
    wrong = Mutant(DEVICE, 1, "", text.replace("'^([A-Z ]|$)'", "'^([a-z ]|$)'"))
    found = court.judge(wrong)
    memory = Memory(tmp_path)
    memory.keep(wrong, found)
    memory.write()
    assert Memory(tmp_path).recall(wrong) == found
    monkeypatch.setattr(Judge, "verdict", lambda *_: "asked")
    monkeypatch.setattr(court, "_vet", lambda *_: None)
    assert court.judge(wrong, found) == found
    keys = tuple(judge.key(Path(DEVICE).stem) for judge in court.judges(Path(DEVICE).stem))
    assert court.judge(wrong, Verdict("", keys)).who == ""
    assert court.judge(wrong, Verdict("", keys[1:])).who == "asked"
    assert court.judge(wrong, Verdict("somebody", ("other",))).who == "asked"


def test_a_judge_that_finds_whatever_it_is_shown_is_no_judge(
    court: Court, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test that fails without a change raises an error instead of killing all mutants."""
    text = (sql_root() / DEVICE).read_text(encoding="utf-8")
    monkeypatch.setattr(court, "_sound", set())
    monkeypatch.setattr(Judge, "verdict", lambda *_: "the clock is wrong")
    with pytest.raises(RuntimeError, match="the clock is wrong, without any change"):
        court.judge(Mutant(DEVICE, 1, "", text.replace("AS amd", "AS other")))


@pytest.mark.parametrize(
    ("behind", "is_tried"),
    [
        ("", True),
        ("JOIN v AS b ON b.k = a.k", False),
        ("SEMI JOIN v AS b ON b.k = a.k AND b.l", False),
        ("WHERE t.k AND a.k < 5", False),
        ("LEFT JOIN v AS b ON b.k = a.k", True),
        ("ANTI JOIN v AS b ON b.k = a.k", True),
        ("LEFT JOIN v AS b ON b.k = a.k WHERE a.k < 5", False),
        ("WHERE a.k < 5 OR t.k", True),
        ("WHERE t.k OR a.k < 5", True),
        ("WHERE coalesce(a.k, 1) < 5", True),
        ("WHERE NOT a.k < 5", True),
        ("WHERE a.k IS NULL", True),
        ("WHERE t.k < 5", True),
        ("GROUP BY a.k HAVING a.k < 5", True),
    ],
)
def test_a_row_without_a_partner_may_fall_away_later(behind: str, is_tried: bool) -> None:
    """An outer join is not tried if a later comparison removes the rows without a partner."""
    sql = f"FROM t JOIN u AS a ON a.k = t.k {behind}"
    assert (sql.replace("JOIN", "LEFT JOIN", 1) in changes(sql)) is is_tried


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    """The same seed draws the same sample, and its share has Wilson's confidence interval."""
    mutants = [Mutant("a", line, "", "") for line in range(100)]
    assert drawn(mutants, 0.1, 1) == drawn(mutants, 0.1, 1) != drawn(mutants, 0.1, 2)
    assert len(drawn(mutants, 0.1, 1)) == 10
    # Wilson's bounds for 10 of 100 at 95%, as in published tables.
    assert [round(bound, 4) for bound in share_within(10, 100)] == [0.0552, 0.1744]
    assert share_within(0, 100)[0] == 0.0


def test_nothing_is_found_where_nothing_changed() -> None:
    """The defaults in the library equal those in docs/analyses, including escaped characters."""
    for name, text in texts_of(load_library()).items():
        assert not undocumented(name, text), name


def test_a_process_stays_with_its_file() -> None:
    """A process judges the file with the most mutants first, and takes the next file when done."""
    queue = Queue([Mutant(file, line, "", "") for file in "abb" for line in range(2)])
    taken: list[str] = []

    def files() -> Iterator[str]:
        mutant = queue.following(None)
        while mutant:
            yield mutant.file
            mutant = queue.following(mutant.file)

    taken += files()
    assert taken == ["b"] * 4 + ["a"] * 2


def test_accepted_mutants_are_there() -> None:
    """Each accepted mutation is one that a run tries, and has a reason."""
    listed = accepted()
    paths = [path for path in chosen_files([]) if file_of(path) in {line.file for line in listed}]
    tried = [m for p in paths for m in mutants_of(file_of(p), p.read_text(encoding="utf-8"))]
    unknown = [line for line in listed if not any(line.covers(mutant) for mutant in tried)]
    assert unknown == []
    assert all(len(line.reason) > 10 for line in listed)
    assert [line for line in listed if not re.search(r" -> [^…\]]+\]\]", line.mutation)] == []


def test_a_line_of_the_list_may_leave_open_what_stands_beside() -> None:
    """An ellipsis in an accepted mutation matches any text; everything else matches literally."""
    line = Accepted("lib/a.sql", "count(*) … [[= -> <>]] …", "because")
    assert line.covers(Mutant("lib/a.sql", 3, "count(*) WHERE a [[= -> <>]] b", ""))
    assert not line.covers(Mutant("lib/b.sql", 3, "count(*) WHERE a [[= -> <>]] b", ""))
    assert not line.covers(Mutant("lib/a.sql", 3, "count(x) WHERE a [[= -> <>]] b", ""))
