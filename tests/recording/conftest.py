"""Fixtures for tests that record into a store."""

from __future__ import annotations

from tests.cli.conftest import cli
from tests.safety.conftest import busy_times, write_traces

__all__ = ["busy_times", "cli", "write_traces"]
