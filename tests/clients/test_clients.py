"""Other people's clients on a store: the same numbers as the Python API."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.clients.clients import HEAVY, LIGHT, Client, ask, differences, expected, questions
from tests.cookbook.job import ingest_cookbook


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of two ranks."""
    return ingest_cookbook(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where clients are installed."""
    kept = os.environ.get("HTA_SQL_CLIENTS")
    return Path(kept) if kept else tmp_path_factory.mktemp("clients")


def agrees(client: Client, store: Path, environments: Path) -> None:
    """Ask everything, and compare."""
    _, answers = ask(client, store, environments)
    assert {name.partition(" (")[0] for name in answers} <= set(questions())
    assert answers
    assert differences(answers, expected(store)) == []


@pytest.mark.parametrize("client", LIGHT, ids=lambda client: client.name)
def test_client_agrees(client: Client, store: Path, environments: Path) -> None:
    """What is at hand wherever the tests run."""
    agrees(client, store, environments)


@pytest.mark.clients
@pytest.mark.parametrize("client", HEAVY, ids=lambda client: client.name)
def test_client_of_its_own_environment_agrees(
    client: Client, store: Path, environments: Path
) -> None:
    """What needs an environment of its own."""
    if client.npm and not shutil.which("npm"):
        pytest.skip("npm is not installed")
    agrees(client, store, environments)


def test_a_wrong_answer_is_noticed(store: Path) -> None:
    """The comparison can fail."""
    wanted = expected(store)
    wrong = {name: [*rows, rows[0]] for name, rows in wanted.items()}
    assert differences(wrong, wanted) == list(wanted)
    assert all(wanted.values())
