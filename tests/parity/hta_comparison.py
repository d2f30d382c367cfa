"""Rewrite the ledger of differences from HTA and the document generated from it.

After a deliberate change, run ``python -m tests.parity.hta_comparison``. New rules get the cause
``?``, which a test rejects until the cause is filled in.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hta_sql import TraceStore
from tests.parity.comparison import lines_of_job
from tests.parity.jobs import JOBS, ingest_jobs
from tests.parity.ledger import MATRIX, document, read_ledger, write_ledger
from tests.parity.pairs import PAIRS, lines_of_pair


def main() -> None:
    """Ingest all jobs, compare them and write the ledger and the document."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.store"
        ingest_jobs(path)
        with TraceStore(path) as store:
            lines = [line for job in JOBS for line in lines_of_job(store, job)]
            lines += [line for pair in PAIRS for line in lines_of_pair(store, pair)]
    write_ledger(lines)
    MATRIX.write_text(document(lines, read_ledger()), encoding="utf-8")


if __name__ == "__main__":
    main()
