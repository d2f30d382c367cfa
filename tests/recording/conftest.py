"""Fixtures for tests that record into a store."""

from __future__ import annotations

from tests.cli.conftest import cli
from tests.safety.conftest import busy_times, write_traces
from tests.safety.test_object_storage import s3, s3_server

__all__ = ["busy_times", "cli", "s3", "s3_server", "write_traces"]
