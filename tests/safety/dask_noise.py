"""Warning filters for messages of a Dask cluster that are irrelevant to the tests."""

from __future__ import annotations

import pytest

NOISE = [
    # Dask's threads and sockets outlive the test that used them.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Port 8787 is already in use"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
