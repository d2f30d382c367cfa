"""Fixture with a simulated job, shared by the tests of its files and of its truth."""

from __future__ import annotations

import pytest

from hta_sql.synthetic import Job, write_job
from tests.synthetic.simulated import EVERYTHING


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Write a job with every feature enabled."""
    return write_job(tmp_path_factory.mktemp("everything"), EVERYTHING)
