"""Record into stores with the real profiler: ``python -m tests.recording.with_torch --torch PYTHON``.

PYTHON has torch and this package; the cases ``lightning``, ``accelerate`` and ``transformers`` need
these packages, and run only if they are named with ``--case``. Each case trains a small model on the CPU, alone or as two gloo
ranks under torchrun, and checks the store. The case ``killed`` waits for its timeout of 60 s.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hta_sql

TRAINING = Path(__file__).with_name("training.py")
FRAMEWORKS = Path(__file__).with_name("frameworks.py")
TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29517")


def ranks_of(store: Path) -> dict[str, list[int]]:
    """Return the ranks of each run of a store."""
    found: dict[str, list[int]] = {}
    for row in rows_of(store):
        found.setdefault(row["run"], []).append(row["rank"])
    return {run: sorted(ranks) for run, ranks in found.items()}


def rows_of(store: Path) -> list[dict[str, Any]]:
    """Return the table ``ranks`` of a store."""
    with hta_sql.open(store) as opened:
        rows: list[dict[str, Any]] = opened.table("ranks").arrow().to_pylist()
    return rows


def traces_of(store: Path) -> list[str]:
    """Return the names of the traces in a store."""
    return sorted(path.name for path in store.glob("traces/*/*"))


def check_one(store: Path, _: str) -> None:
    """Check one run with one rank, whose trace is in the store."""
    assert list(ranks_of(store).values()) == [[0]]
    assert len(traces_of(store)) == 1


def check_advice(store: Path, said: str) -> None:
    """Check that the advice is printed."""
    check_one(store, said)
    assert " recommendation" in said
    assert "See: hta-sql run " in said


def check_repeated(store: Path, _: str) -> None:
    """Check that two recordings are two captures."""
    first, second = sorted(ranks_of(store))
    assert second == f"{first}-capture2"
    assert len(traces_of(store)) == 2


def check_raised(store: Path, said: str) -> None:
    """Check that a recording that ends with an exception is stored, and the exception raised."""
    check_one(store, said)
    assert "RuntimeError: the training fails" in said


def check_deleted(store: Path, _: str) -> None:
    """Check that the trace is deleted once it is ingested."""
    assert list(ranks_of(store).values()) == [[0]]
    assert traces_of(store) == []


def check_named(store: Path, _: str) -> None:
    """Check the names that the caller gives, and a compressed trace."""
    assert ranks_of(store) == {"named": [0]}
    (name,) = traces_of(store)
    assert name.startswith("trainer.")
    assert name.endswith(".pt.trace.json.gz")
    assert [row["role"] for row in rows_of(store)] == ["trainer"]


def check_ranks(store: Path, said: str) -> None:
    """Check that two ranks are published once, as one run."""
    assert list(ranks_of(store).values()) == [[0, 1]]
    assert said.count("Published run") == 1
    assert not list(store.glob("shards/*"))


def check_killed(store: Path, said: str) -> None:
    """Check that the rank that was not killed is published, and the other one is named."""
    assert list(ranks_of(store).values()) == [[0]]
    assert "no trace of rank 1 after 60 s" in said


def check_unwritable(store: Path, said: str) -> None:
    """Check that a store that cannot be written costs a warning, which names what to run."""
    assert not store.exists()
    assert "is not writable" in said
    assert "hta-sql ingest-rank " in said
    assert "Traceback" not in said


@dataclass(frozen=True)
class Case:
    """A job to run.

    Attributes:
        check: Checks the store, given its path and what the job has printed.
        is_launched: Whether torchrun starts two ranks of the job.
        code: Exit code of the job.
        script: The job.
    """

    check: Callable[[Path, str], None]
    is_launched: bool = False
    code: int = 0
    script: Path = TRAINING


CASES = {
    "one": Case(check_one),
    "advice": Case(check_advice),
    "repeated": Case(check_repeated),
    "raises": Case(check_raised, code=1),
    "exit": Case(check_one),
    "deleted": Case(check_deleted),
    "named": Case(check_named),
    "unwritable": Case(check_unwritable),
    "ranks": Case(check_ranks, is_launched=True),
    "killed": Case(check_killed, is_launched=True, code=1),
}
"""Jobs that need torch."""

OF_FRAMEWORKS = {
    "accelerate": Case(check_ranks, is_launched=True, script=FRAMEWORKS),
    "lightning": Case(check_ranks, script=FRAMEWORKS),
    "transformers": Case(check_ranks, is_launched=True, script=FRAMEWORKS),
}
"""Jobs that need a framework of the same name."""


def run(case: str, torch: str, folder: Path) -> str:
    """Run one case and check its store; return what it has printed."""
    job = (CASES | OF_FRAMEWORKS)[case]
    parent = folder / case
    if case == "unwritable":
        parent.write_text("a file, in which there can be no store")
    else:
        parent.mkdir()
    store = parent / "job.store"
    command = [torch, *(TORCHRUN if job.is_launched else ()), str(job.script), str(store), case]
    # A process of its own outlives torchrun; its end closes this pipe.
    done = subprocess.run(  # noqa: S603 - our own program
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    try:
        assert done.returncode == job.code
        job.check(store, done.stdout)
    except BaseException:
        sys.stdout.write(done.stdout)
        raise
    return done.stdout


def main() -> None:
    """Run the cases, and print a line for each, with the time that the handler took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", required=True, help="Python with torch and hta_sql")
    parser.add_argument("--case", action="append", choices=CASES | OF_FRAMEWORKS)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for case in chosen.case or CASES:
            began = time.monotonic()
            said = run(case, chosen.torch, Path(name))
            costs = "; ".join(line for line in said.splitlines() if line.startswith("overhead"))
            sys.stdout.write(f"{case}: passed in {time.monotonic() - began:.0f} s; {costs}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
