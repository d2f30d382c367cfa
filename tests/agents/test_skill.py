"""Tests of the agent skill: its calls give the true answers to golden questions, without a model."""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp import Client

import hta_sql
from hta_sql.library.objects import load_library
from hta_sql.serve.mcp.limits import Limits
from hta_sql.serve.mcp.server import Tools, make_server
from hta_sql.store.catalog.materialize import materialize_if_free
from tests.agents.golden_jobs import PUBLIC, SHARED, Call, filled, ingest_jobs
from tests.shared_stores import made_once

ROOT = Path(__file__).parents[2]
SKILL = ROOT / "skills" / "hta-sql" / "SKILL.md"
TEXT = SKILL.read_text(encoding="utf-8")
GOLDEN = tomllib.loads(Path(__file__).with_name("golden_questions.toml").read_text("utf-8"))[
    "golden"
]
ROWS = ("rows", "runs", "findings", "advice", "changes")
"""Keys under which tools return their rows."""


def calls_in(text: str) -> list[Call]:
    """Return the calls in a text of the skill: a tool and its arguments."""
    return [
        (name, json.loads(given)) for name, given in re.findall(r"`(\w+) (\{.*?\})`(?!\w)", text)
    ]


QUESTIONS = {
    question: calls_in(rest)[0]
    for question, rest in re.findall(r"^\| ([^|`]+\?) \| (`.+)", TEXT, re.MULTILINE)
}
"""Question in the skill ─▶ its call."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Make the call of each golden question through a client; return the answers in order."""
    made = tmp_path_factory.mktemp("golden")
    store = made_once(tmp_path_factory, "golden_questions", lambda path: ingest_jobs(path, made))
    materialize_if_free(store)  # as the command does

    async def talk() -> list[Any]:
        with hta_sql.TraceStore(store, safe=True) as opened:
            async with Client(make_server({"job.store": opened}, Limits())) as client:
                return [await _answer(client, golden) for golden in GOLDEN]

    return asyncio.run(talk())


async def _answer(client: Client, golden: dict[str, Any]) -> Any:
    """Return the answer to a golden question, or None if its public job is absent."""
    if not _is_available(golden["job"]):
        return None
    runs = {"RUN": golden["job"], "CHANGE": golden["job"], "BASE": golden.get("base", "")}
    result = await client.call_tool(*filled(QUESTIONS[golden["question"]], runs.__getitem__))
    assert not result.is_error, result.content
    return result.structured_content


def _is_available(job: str) -> bool:
    return job not in SHARED or (PUBLIC / SHARED[job]).is_dir()


def _is_true(found: Any, truth: Any) -> bool:
    """Return whether a value is the true one, in the range of the truth, or contains its text."""
    if isinstance(truth, dict) and "contains" in truth:
        return truth["contains"] in found
    if isinstance(truth, dict):
        return bool(truth.get("min", found) <= found <= truth.get("max", found))
    return bool(found == truth)


@pytest.mark.parametrize("at", range(len(GOLDEN)), ids=lambda at: GOLDEN[at]["question"])
def test_the_call_for_a_question_gives_the_true_answer(answers: list[Any], at: int) -> None:
    """The row that answers the question has the true values, and so has the rest of the answer."""
    golden, answer = GOLDEN[at], answers[at]
    if answer is None:
        pytest.skip("the shared traces are absent")
    rows = next(answer[key] for key in ROWS if key in answer)
    for name, truth in golden.get("answer", {}).items():
        value = answer
        for key in name.split("."):
            value = value[key]
        assert _is_true(value, truth), (name, value)
    if absent := golden.get("absent"):
        assert not [row for row in rows if absent.items() <= row.items()]
    if truths := golden.get("truth"):
        row = next(row for row in rows if golden.get("where", {}).items() <= row.items())
        assert {k: row[k] for k, truth in truths.items() if not _is_true(row[k], truth)} == {}


def test_every_call_of_the_skill_answers_a_golden_question() -> None:
    """Every call in the text is that of a question, and every question is golden."""
    asked = [golden["question"] for golden in GOLDEN]
    assert set(asked) == QUESTIONS.keys()
    assert len(asked) >= 20
    assert [call for call in calls_in(TEXT) if call not in QUESTIONS.values()] == []


def test_the_front_matter_has_the_form_that_agents_load() -> None:
    """The skill has a name, that of its folder, and a description of at most 1,024 characters."""
    _, head, body = TEXT.split("---\n", 2)
    about = yaml.safe_load(head)
    assert about.keys() == {"name", "description"}
    assert about["name"] == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", about["name"])
    assert 0 < len(about["description"]) <= 1024
    assert body.lstrip().startswith("# ")


def test_every_name_in_the_skill_exists(answers: list[Any]) -> None:
    """Names in the text are those of tools or analyses, or occur in answers."""
    known = json.dumps([answers, dir(Tools), [a.base_name for a in load_library().newest()]])
    names = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", TEXT))
    assert len(names) > 20
    assert [name for name in sorted(names) if name not in known] == []
