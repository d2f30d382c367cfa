"""Fixtures of the tests of user analyses: a store, and a team's folder of analyses."""

from __future__ import annotations

from pathlib import Path

import pytest

import hta_sql
from tests.shared_stores import made_once
from tests.user_analyses.folders import TRACE, write_folder


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest one rank with kernels on two streams, for read-only use."""
    return made_once(
        tmp_path_factory, "own", lambda store: hta_sql.ingest(TRACE, store, run="job").close()
    )


@pytest.fixture(scope="session")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a team's folder of analyses, for read-only use."""
    return write_folder(tmp_path_factory.mktemp("team"))
