"""Tests of ``hta-sql mcp`` with the official MCP client, in-process and as a subprocess."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

import hta_sql
from hta_sql.errors import ParameterError, QueryError
from hta_sql.serve.mcp import worker_responses
from hta_sql.serve.mcp.bounded_json import MOST_BYTES, MOST_COLUMNS, size_of
from hta_sql.serve.mcp.limits import Limits
from hta_sql.serve.mcp.responses import StoreTools
from hta_sql.serve.mcp.server import ANALYSES, SCHEMA, make_server
from hta_sql.serve.mcp.worker_responses import Hosted
from hta_sql.store.catalog.materialize import materialize_if_free
from tests.questions.job import trace
from tests.report_pages import job_report
from tests.shared_stores import ingest_only

TOOLS = [
    *("open_store", "list_analyses", "describe", "run", "sql", "doctor", "advice", "compare"),
    "hang",
]

ENDLESS = "SELECT count(*) FROM range(1000000000) AS a, range(1000) AS b"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hta_sql.TraceStore]:
    """Open a store of the job in tests/questions the way the server opens it."""
    folder = tmp_path_factory.mktemp("mcp")
    (folder / "rank0.json").write_text(json.dumps(trace()), encoding="utf-8")
    ingest_only(folder / "rank0.json", folder / "job.store", run="job")
    materialize_if_free(folder / "job.store")  # as the command does
    with hta_sql.TraceStore(folder / "job.store", safe=True) as opened:
        yield opened


def asked(
    store: hta_sql.TraceStore, *calls: tuple[str, dict[str, Any]], **limits: Any
) -> list[Any]:
    """Call tools in sequence through a client; return their results, or messages for errors."""

    async def talk() -> list[Any]:
        async with Client(make_server({"job.store": store}, Limits(**limits))) as client:
            return [_told(await client.call_tool(name, given)) for name, given in calls]

    return asyncio.run(talk())


def _told(result: Any) -> Any:
    if result.is_error:
        return result.content[0].text
    return result.structured_content or json.loads(result.content[0].text)


def test_the_tools_say_what_they_are_for(store: hta_sql.TraceStore) -> None:
    """Every tool has a description, and the server lists its resources."""

    async def talk() -> tuple[Any, Any, Any]:
        async with Client(make_server({"job.store": store}, Limits())) as client:
            tools = await client.list_tools()
            schema = await client.read_resource(SCHEMA)
            resources = await client.list_resources()
            return tools.tools, resources.resources, schema.contents[0]

    tools, resources, schema = asyncio.run(talk())
    assert [tool.name for tool in tools] == TOOLS
    assert all(len(tool.description) > 30 for tool in tools)
    assert {str(resource.uri) for resource in resources} == {SCHEMA, ANALYSES}
    assert "## gpu_ops" in schema.text
    assert "- dur BIGINT [ns]" in schema.text


def test_a_store_says_what_to_ask_first(store: hta_sql.TraceStore) -> None:
    """``open_store`` lists the runs and suggests which tools to call next."""
    (told,) = asked(store, ("open_store", {}))
    assert told["stores"] == ["job.store"]
    assert [run["run"] for run in told["runs"]] == ["job"]
    assert told["next"][0].startswith("doctor")


def test_questions_of_a_new_user_are_answered(store: hta_sql.TraceStore) -> None:
    """Answers about idle time, operators and advice have units and suggest what to run next."""
    idle, costs, advice = asked(
        store,
        ("run", {"name": "idle_causes", "parameters": {"level": "annotation"}, "limit": 1}),
        ("run", {"name": "operator_table"}),
        ("advice", {"runs": ["job"]}),
    )
    assert "DataLoader" in idle["rows"][0]["name"]
    assert idle["units"]["idle_ns"] == "ns"
    assert idle["is_truncated"]
    by_name = {row["name"]: row for row in costs["rows"]}
    assert by_name["aten::mm"]["device_self_ns"] == 300_000
    assert {"data_loading"} <= {row["rule"] for row in advice["advice"]}
    assert all(step.startswith("run ") for step in advice["next"])


def test_an_empty_answer_about_the_device_names_what_would_record_it(tmp_path: Path) -> None:
    """An agent is told why an analysis of the device has no rows, and where to look instead."""
    host_only = Path(__file__).parents[1] / "traces" / "host_parts.json"
    ingest_only({0: str(host_only)}, tmp_path / "host.store", run="host")
    with hta_sql.TraceStore(tmp_path / "host.store", safe=True) as host:
        (told,) = asked(host, ("run", {"name": "kernel_table"}))
    assert told["rows"] == []
    assert "No device activity was recorded. To record it: activities=[" in told["no_rows"]
    assert "host_accounting" in told["no_rows"]


def test_the_questions_of_the_docs_are_answered(store: hta_sql.TraceStore) -> None:
    """Every analysis in docs/questions.md returns rows, as it does on the command line."""
    page = (Path(__file__).parents[2] / "docs" / "questions.md").read_text(encoding="utf-8")
    table = page.partition("Other commands")[0]
    names = list(dict.fromkeys(re.findall(r"`hta-sql run STORE (\w+)`", table)))
    assert len(names) > 10
    answers = asked(store, *(("run", {"name": name}) for name in names))
    empty = [name for name, told in zip(names, answers, strict=True) if not told["rows"]]
    assert empty == []


def test_answers_are_short_until_more_is_requested(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Answers have the main columns and at most 8,000 characters; limit and columns give the rest."""
    with hta_sql.open(job_report(tmp_path_factory)[0]) as opened:
        hosted = Hosted(opened, 200)
        answers = {
            analysis.base_name: hosted.run(analysis.base_name, {}, None, None)
            for analysis in opened.library.newest()
            if all(parameter.default is not None for parameter in analysis.parameters)
        }
        answers |= {"advice": hosted.advice({}, None), "doctor": hosted.doctor()}
        assert {
            name: size for name, told in answers.items() if (size := size_of(told)) > 8_000
        } == {}
        few = answers["trace_events"]
        assert few["is_truncated"]
        assert f"The first {len(few['rows'])} of {few['row_count']:,} rows" in few["more"]
        assert len(hosted.run("trace_events", {}, 150, None)["rows"]) == 150
        assert "idle_pct" in answers["step_accounting"]["columns"]
        assert "undecided_ns" in answers["step_accounting"]["other_columns"]
        told = hosted.run("step_accounting", {}, None, ["rank", "undecided_ns"])
        assert told["columns"] == ["rank", "undecided_ns"]
        assert "other_columns" not in hosted.run("step_accounting", {}, 1, ["*"])
        with pytest.raises(ParameterError, match=r"no column 'rnk'\. Did you mean 'rank'\?"):
            hosted.run("step_accounting", {}, None, ["rnk"])


def test_runs_are_compared(store: hta_sql.TraceStore) -> None:
    """A run compared with itself has no changes."""
    both = {"run": "job"}
    (told,) = asked(store, ("compare", {"control": both, "test": both}))
    assert told["changes"] == []
    assert told["headline"]["message"].startswith("Nothing changed")


def test_sql_reads_the_store_and_nothing_else(store: hta_sql.TraceStore, tmp_path: Path) -> None:
    """SQL results have a row limit, and queries that read or write files are refused."""
    rows, refused, written, wrong, plan = asked(
        store,
        ("sql", {"query": "SELECT event_id FROM events ORDER BY event_id", "limit": 2}),
        ("sql", {"query": "SELECT * FROM read_text('/etc/hostname')"}),
        ("sql", {"query": f"COPY (SELECT 1) TO '{tmp_path / 'x.csv'}'"}),
        ("sql", {"query": "SELECT nope FROM gpu_ops"}),
        ("sql", {"query": "EXPLAIN SELECT count(*) FROM gpu_ops"}),
    )
    assert len(rows["rows"]) == 2
    assert rows["is_truncated"]
    assert rows["row_count"] is None
    assert "Permission Error: Cannot access file" in refused
    assert not (tmp_path / "x.csv").exists()
    assert isinstance(written, str)
    assert "nope" in wrong
    assert "physical_plan" in str(plan["rows"])


def test_errors_say_what_to_do(store: hta_sql.TraceStore) -> None:
    """Errors suggest a similar name or list the valid parameters, runs or stores."""
    name, parameter, run, other, none = asked(
        store,
        ("run", {"name": "idle_cause"}),
        ("run", {"name": "idle_causes", "parameters": {"lvl": "x"}}),
        ("run", {"name": "kpis", "parameters": {"runs": ["nope"]}}),
        ("open_store", {"store": "other"}),
        ("run", {"name": "kpis", "limit": 0}),
    )
    assert "idle_causes" in name
    assert "lvl" in parameter
    assert "job" in run
    assert "job.store" in other
    assert "1 or more" in none


def test_a_long_question_is_interrupted(store: hta_sql.TraceStore) -> None:
    """A query that exceeds the server's time limit is interrupted, and the next query works."""
    answers = StoreTools(store, Limits(seconds=0.3))
    began = time.monotonic()
    with pytest.raises(QueryError, match=r"Interrupted after 0\.3 s"):
        answers.ask("sql", query=ENDLESS, limit=None)
    assert time.monotonic() - began < 20
    assert answers.ask("sql", query="SELECT 1 AS one", limit=None)["rows"] == [{"one": 1}]


LARGE = {
    "SELECT string_agg(repeat('x', 100000), '') AS a FROM range(200)": "(20,000,000 bytes)",
    "SELECT list(i) AS l FROM range(1000000) AS t(i)": "(1,000,000 items)",
    "SELECT list(NULL::INTEGER) AS l FROM range(1000000)": "(1,000,000 items)",
    "SELECT list(repeat('x', 1000)) AS l FROM range(900)": " bytes)",
    "SELECT map([1, 2], [list(i), [1]]) AS m FROM range(5000) AS t(i)": " items)",
    "SELECT " + "[" * 20 + "1" + "]" * 20: "nested more than 8 levels",
}
"""Query ─▶ string that is sent instead of its only value."""


@pytest.mark.parametrize("query", LARGE, ids=lambda query: query[:40])
def test_large_values_are_measured_not_sent(store: hta_sql.TraceStore, query: str) -> None:
    """The size of a large value is sent instead of the value."""
    (told,) = asked(store, ("sql", {"query": query}))
    assert LARGE[query] in str(told["rows"])
    assert size_of(told) < 10_000


def test_an_answer_is_bounded_in_bytes(store: hta_sql.TraceStore) -> None:
    """Rows beyond the size limit are omitted with a note, and too many columns are refused."""
    wide = ", ".join(f"'{'x' * 1900}' || i AS c{n}" for n in range(20))
    rows, names, columns, error = asked(
        store,
        ("sql", {"query": f"SELECT {wide} FROM range(200) AS t(i)"}),  # noqa: S608 - ours
        ("sql", {"query": f'SELECT 1 AS "{"c" * 100_000}"'}),
        ("sql", {"query": "SELECT " + ", ".join(f"1 AS c{n}" for n in range(MOST_COLUMNS + 1))}),
        ("sql", {"query": f'SELECT "{"c" * 100_000}" FROM gpu_ops'}),  # noqa: S608 - ours
    )
    assert 0 < len(rows["rows"]) < 200
    assert rows["is_truncated"]
    assert size_of(rows) < MOST_BYTES
    assert size_of(names) < 2_000
    assert f"Select at most {MOST_COLUMNS}" in columns
    assert len(error) < 3_000


def test_parameters_that_an_analysis_has_not_are_refused_by_name(store: hta_sql.TraceStore) -> None:
    """Unknown parameters are refused, even if the underlying Python function accepts them."""
    reserved = ("name", "self", "executor", "version", "lvl")
    run = [("run", {"name": "kpis", "parameters": {key: 1}}) for key in reserved]
    for key, told in zip(reserved, asked(store, *run), strict=True):
        assert f"kpis has no parameter {key!r}" in told
    side = {"run": "job", "executor": 1}
    (told,) = asked(store, ("compare", {"control": side, "test": side}))
    assert "not 'executor'" in told


def test_values_are_plain(store: hta_sql.TraceStore) -> None:
    """Values that JSON cannot represent are sent as strings, and long strings are truncated."""
    query = "SELECT 'x'::VARCHAR.repeat(5000) AS long, 'nan'::DOUBLE AS odd, DATE '2026-01-02' AS day, [1.5::DECIMAL(4,2)] AS parts, 'ab'::BLOB AS raw"
    (row,) = StoreTools(store, Limits()).ask("sql", query=query, limit=None)["rows"]
    assert row["long"].endswith("… (5,000 characters)")
    assert (row["odd"], row["day"], row["parts"]) == ("nan", "2026-01-02", ["1.50"])
    assert row["raw"] == "2 bytes"


def test_the_command_serves_a_client(store: hta_sql.TraceStore) -> None:
    """A client can start the server as a subprocess and talk to it over stdin and stdout."""

    async def talk() -> Any:
        arguments = ["-m", "hta_sql", "mcp", str(store.path)]
        async with Client(StdioServerParameters(command=sys.executable, args=arguments)) as client:
            return _told(await client.call_tool("run", {"name": "step_accounting"}))

    told = asyncio.run(talk())
    assert told["row_count"] == 1
    assert told["rows"][0]["compute_ns"] > 0


def test_answers_about_several_runs_name_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of several runs have the column run, dumps are counted by run, and a cut list says so."""
    traces = Path(__file__).parents[1] / "traces"
    for rank in (0, 1):
        ingest_only({0: str(traces / f"late_{rank}.json")}, tmp_path / "s", run=f"run{rank}")
    ingest_only(traces / "recorded" / "hangs" / "healthy", tmp_path / "s", run="dumps")
    with hta_sql.TraceStore(tmp_path / "s", safe=True) as two:
        both, one, chosen, dumps, none = asked(
            two,
            ("run", {"name": "kpis"}),
            ("run", {"name": "kpis", "parameters": {"runs": ["run0"]}}),
            ("run", {"name": "kpis", "columns": ["step_ns"]}),
            ("hang", {}),
            ("hang", {"runs": ["run0"]}),
        )
    assert [row["run"] for row in both["rows"]] == ["run0", "run1"]
    assert "run" not in one["columns"]
    assert chosen["columns"] == ["step_ns"]
    assert (dumps["dump_count"], none["dump_count"]) == (4, 0)
    monkeypatch.setattr(worker_responses, "FEW_BYTES", 100)
    with hta_sql.open(tmp_path / "s") as opened:
        told = Hosted(opened, 200).overview()
        assert [row["run"] for row in told["runs"]] == ["dumps"]
        assert told["more"] == "Not all runs are listed: sql FROM runs"
        assert Hosted(opened, 200).doctor()["more"] == "Of one run: run findings"
