"""Fixture for ingestion tests that reads bytes as the trace of one rank."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.ingestion.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Reading]:
    """Return a function that ingests bytes as one trace file: ``read(b"...", chunk_bytes=64)``."""

    def reading(data: bytes, name: str = "trace.json", **options: Any) -> Reading:
        number = len(list(tmp_path.iterdir()))
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / name
        path.write_bytes(data)
        return Reading(path, **options)

    return reading
