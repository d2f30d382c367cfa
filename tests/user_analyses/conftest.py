"""One store and one folder of a team, for all tests of own analyses."""

from __future__ import annotations

from pathlib import Path

import pytest

import hta_sql
from tests.shared_stores import made_once
from tests.user_analyses.folders import TRACE, write_folder


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of one rank with kernels on two streams; nobody changes it."""
    return made_once(
        tmp_path_factory, "own", lambda store: hta_sql.ingest(TRACE, store, run="job").close()
    )


@pytest.fixture(scope="session")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A team's folder; nobody changes it."""
    return write_folder(tmp_path_factory.mktemp("team"))
