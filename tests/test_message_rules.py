"""Tests of the rules for message templates.

The wording of a template may be corrected after a release, but a code or a placeholder in use may
not be removed.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from hta_sql.library.objects import parse_library
from hta_sql.library.sql_files import sql_root
from tests.sql_rules.frozen import answers_digest, freeze
from tests.sql_rules.messages import message_problems
from tests.sql_rules.problems import find_problems

if TYPE_CHECKING:
    from pathlib import Path

    from hta_sql.library.objects import Library

ANALYSIS = """-- How many operations the device ran, in a sentence.
--
-- Title: Work of the device
-- Status: stable
-- Since: 0.1
-- Reference: none
-- Needs: nothing
-- Scope: runs; all ranks together
CREATE OR REPLACE MACRO device_work_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL
) AS TABLE
-- Columns:
--   run           VARCHAR  Run name.
--   message_code  VARCHAR  Code of the message in the table messages.
--   message       VARCHAR  What was found.
--   reason_code   VARCHAR  Code of the reason in the table messages.
WITH
    found AS (
        SELECT g.run, lib.message('device_work.done', {'op_count': count(*), 'sum_ns': sum(g.dur)}) AS message
        FROM gpu_ops AS g
        WHERE lib.is_requested(runs, g.run)
        GROUP BY g.run
    )
SELECT
    f.run, f.message.code AS message_code, lib.message_text(t.message, lib.with_fields(f.message.fields, {'is_whole': true})) AS message,
    'device_work.nothing' AS reason_code
FROM found AS f
LEFT JOIN messages AS t ON t.code = f.message.code
ORDER BY f.run
"""

CATALOGUE = """code,title,message,limits,remedy
device_work.done,,The device ran {op_count:count} operations for {sum_ns:time}{is_whole:.| in part.},,
device_work.nothing,,nothing ran,,
"""

GOLDEN = """# Nothing.
traces: host_only.json
call: SELECT run, message FROM device_work_v1()
----
run  message
a    The device ran 1 operations for 3.0 s.
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Write a library with one released analysis that returns a message."""
    source, root = sql_root(), tmp_path / "sql"
    computed = [path.name.replace("_v1", "") for path in (source / "derived").iterdir()]
    shutil.copytree(source / "tables", root / "tables", ignore=lambda *_: computed)
    shutil.copytree(source / "lib" / "messages", root / "lib" / "messages")
    (root / "lib" / "scope").mkdir()
    shutil.copy(source / "lib" / "scope" / "is_requested.sql", root / "lib" / "scope")
    write(root / "analyses" / "timeline" / "device_work_v1.sql", ANALYSIS)
    write(root / "messages" / "timeline.csv", CATALOGUE)
    write(tmp_path / "tests" / "golden" / "timeline" / "device_work_v1.test", GOLDEN)
    write(tmp_path / "CHANGELOG.md", "# Changes\n\n## 0.1.0 (2026-01-31)\n")
    return root


def write(path: Path, text: str) -> None:
    """Write a file and its parent folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def problems_with(root: Path, old: str, new: str, file: str = "messages/timeline.csv") -> list[str]:
    """Replace a string in a library file and return the problems that the rules then find."""
    path = root / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return [str(problem) for problem in message_problems(parse_library(root), root)]


def test_a_word_is_corrected_after_a_release(root: Path) -> None:
    """Rewording a message or reordering its placeholders needs no new version of the analysis."""
    assert freeze(root) == ["device_work_v1"]
    assert find_problems(root) == []
    library = parse_library(root)
    before = digest(library, root)
    corrected = "In {sum_ns:time} the GPU ran {op_count} {op_count:operation|operations}{is_whole:.| in part.}"
    old = "The device ran {op_count:count} operations for {sum_ns:time}{is_whole:.| in part.}"
    assert problems_with(root, old, corrected) == []
    assert find_problems(root) == []
    assert len(problems_with(root, "{op_count}", "{n}")) == 1
    assert len(find_problems(root)) == 1
    golden = root.parent / "tests" / "golden" / "timeline" / "device_work_v1.test"
    golden.write_text(GOLDEN.replace("The device ran 1 operations for 3.0 s.", "Other words."))
    assert digest(library, root) == before


def digest(library: Library, root: Path) -> str:
    """Return the lock's digest of the golden answers of the analysis."""
    return answers_digest(root, library.find("device_work"))


def test_the_lock_keeps_other_columns_of_golden_answers(root: Path) -> None:
    """Only messages in golden answers may change, and the lock covers all other columns."""
    library = parse_library(root)
    before = digest(library, root)
    golden = root.parent / "tests" / "golden" / "timeline" / "device_work_v1.test"
    golden.write_text(GOLDEN.replace("a    The", "b    The"))
    assert digest(library, root) != before


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "device_work.done,",
            "device_work.finished,",
            "the code device_work.done is not in sql/messages; add a line for it",
        ),
        (
            "device_work.nothing,,nothing ran,,\n",
            "",
            "the code device_work.nothing is not in sql/messages; add a line for it",
        ),
        (
            " for {sum_ns:time}",
            "",
            "it fills sum_ns, but the message device_work.done has no placeholder {sum_ns}",
        ),
        ("{is_whole:.| in part.}", ".", "it fills is_whole, but no message has a placeholder"),
        (
            "{sum_ns:time}",
            "{sum_ns:time} on {device}",
            "it does not fill the placeholder {device} of the message device_work.done",
        ),
        (
            "{sum_ns:time}",
            "{sum_ns:seconds}",
            "{sum_ns:seconds} has no format of lib.message_text: bytes, count, pct, ratio, time",
        ),
        ("nothing ran", "nothing { ran", "has a brace outside of its placeholders"),
        ("nothing ran", "", "message device_work.nothing has no text"),
        (
            "device_work.nothing,",
            "device_work.more,,unused,,\ndevice_work.nothing,",
            "no analysis or macro returns the code device_work.more; remove it",
        ),
        (
            "device_work.nothing,,",
            "device_work.nothing,,again,,\ndevice_work.nothing,,",
            "code device_work.nothing is in the catalogue twice",
        ),
        ("limits", "limit", "each line needs the columns code, title, message, limits, remedy"),
    ],
)
def test_a_catalogue_that_does_not_fit_is_refused(
    root: Path, old: str, new: str, problem: str
) -> None:
    """The problem names the code, the field or the placeholder."""
    found = problems_with(root, old, new)
    assert any(problem in one for one in found), found


@pytest.mark.parametrize(
    "literal",
    [
        "'The device is busy now.'",
        "printf('%d operations were found', 3)",
        "format('{} is not idle', 3)",
    ],
)
def test_a_sentence_in_sql_is_refused(root: Path, literal: str) -> None:
    """A sentence in SQL is a problem, because messages must be in the catalog."""
    file = "analyses/timeline/device_work_v1.sql"
    found = problems_with(root, "'device_work.nothing' AS", f"{literal} AS", file)
    assert any("move it to sql/messages and return lib.message" in one for one in found), found
