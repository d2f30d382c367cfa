"""Third-party clients read the same numbers from a store as the Python API."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import hta_sql
from docs.generate import superset
from tests.clients.clients import (
    HEAVY,
    LIGHT,
    Client,
    ask,
    differences,
    expected,
    questions,
    to_draw,
)
from tests.clients.dashboards import Rows, wrong
from tests.cookbook.job import ingest_cookbook


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest two tagged runs of two ranks."""
    made = ingest_cookbook(tmp_path_factory.mktemp("store"))
    hta_sql.tag_runs(made, ["before"], {"branch": "main", "job": "cookbook"})
    hta_sql.tag_runs(made, ["after"], {"branch": "fast", "job": "cookbook"})
    return made


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which the clients are installed."""
    kept = os.environ.get("HTA_SQL_CLIENTS")
    return Path(kept) if kept else tmp_path_factory.mktemp("clients")


def agrees(client: Client, store: Path, environments: Path) -> None:
    """Run a client and assert that its answers equal those of the Python API."""
    said = ask(client, store, environments)
    assert {name.partition(" (")[0] for name in said.answers} <= set(questions())
    assert said.answers
    assert differences(said.answers, expected(store)) == []
    assert wrong(said.drawn, to_draw(client, store)) == []


@pytest.mark.parametrize("client", LIGHT, ids=lambda client: client.name)
def test_client_agrees(client: Client, store: Path, environments: Path) -> None:
    """Clients in the test environment return the same answers as the Python API."""
    agrees(client, store, environments)


@pytest.mark.clients
@pytest.mark.parametrize("client", HEAVY, ids=lambda client: client.name)
def test_client_of_its_own_environment_agrees(
    client: Client, store: Path, environments: Path
) -> None:
    """Clients in separate environments return the same answers as the Python API."""
    if client.needs_npm and not shutil.which("npm"):
        pytest.skip("npm is not installed")
    agrees(client, store, environments)


def test_a_wrong_answer_is_noticed(store: Path) -> None:
    """A query for which a client returns an additional row is reported."""
    wanted = expected(store)
    wrong = {name: [*rows, rows[0]] for name, rows in wanted.items()}
    assert differences(wrong, wanted) == list(wanted)
    assert all(wanted.values())


@pytest.mark.parametrize(
    "drawn",
    [
        {},
        {"idle": []},
        {"idle": [{"rank": 0, "idle_us": 5.0}]},
        {"idle": [{"rank": 0, "idle_us": 5.0}, {"rank": 1, "idle_us": 7.00001}]},
        {"idle": [{"rank": 0, "idle_us": 5.0}, {"rank": 1, "idle_us": None}]},
        {"idle": [{"position": 0}, {"position": 1}]},
    ],
)
def test_a_chart_that_draws_something_else_is_noticed(drawn: dict[str, Rows]) -> None:
    """A chart is reported if it is missing, or if its rows, values or columns are wrong."""
    wanted = [{"rank": 1, "idle_us": 7.0}, {"rank": 0, "idle_us": 5.0}]
    assert wrong({"idle": wanted[::-1]}, {"idle": wanted}) == []
    assert wrong(drawn, {"idle": wanted}) == ["idle"]


def test_the_dashboard_is_what_its_sources_say() -> None:
    """The committed dashboard has the content that ``make docs`` builds from its sources."""
    packed = Path(superset.__file__).parents[1] / "superset" / "hta_sql_dashboard.zip"
    assert superset.content(packed.read_bytes()) == superset.content(superset.zipped())


def test_charts_use_columns_that_their_datasets_have() -> None:
    """Charts and filters use only columns that their datasets have."""
    for chart in superset.CHARTS:
        columns = set(superset.selected(chart["dataset"]))
        asked = superset.query(chart, {})
        measured = {metric["column"]["column_name"] for metric in asked.get("metrics", [])}
        assert {*asked["columns"], *measured} <= columns, chart["slice_name"]
    assert {one["name"] for one in superset.FILTERS} == set(superset.selected("choices"))
