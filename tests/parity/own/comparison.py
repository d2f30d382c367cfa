"""Rewrite the ledger of the project's own jobs: ``python -m tests.parity.own.comparison``.

New rules get the cause ``?``, which a test rejects until the cause is filled in.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hta_sql import TraceStore
from tests.parity.comparison import Line, lines_of_job
from tests.parity.ledger import write_ledger
from tests.parity.own.jobs import OWN_JOBS, OWN_PAIRS, ingest_own_jobs
from tests.parity.pairs import lines_of_pair

OWN_LEDGER = Path(__file__).with_name("known_differences.csv")


def lines_of_all(store: TraceStore) -> list[Line]:
    """Compare every frame of every job and pair."""
    lines = [line for job in OWN_JOBS for line in lines_of_job(store, job)]
    return lines + [line for pair in OWN_PAIRS for line in lines_of_pair(store, pair)]


def main() -> None:
    """Ingest all jobs, compare them and write the ledger."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "own.store"
        ingest_own_jobs(path)
        with TraceStore(path) as store:
            write_ledger(lines_of_all(store), OWN_LEDGER)


if __name__ == "__main__":
    main()
