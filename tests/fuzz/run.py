"""Corrupt traces for a number of seconds: ``python -m tests.fuzz.run SECONDS [SEED]``.

An input that breaks a property is saved in ``.hta_sql/fuzz``. After fixing the bug, add the input
to tests/ingestion/corpus.py.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from hta_sql.traces.compiled import reader_at_work
from tests.fuzz.events import changed_event
from tests.fuzz.fields import field_event, field_trace
from tests.fuzz.mutations import mutated, seeds
from tests.fuzz.properties import check_ingests_agree, check_walk, check_ways_agree
from tests.ingestion.readers import check_readers_agree

DEADLINE_S = 60
"""CPU time [s] after which an input of up to 64 KB counts as a hang."""

STANDSTILL_S = 600
"""Wall-clock time limit for an input [s], generous enough for a busy machine."""

EVENTS = 200
"""Number of changed events in an input on which both readers are compared.

Most of the readers' time is spent in SQL statements.
"""

READERS_SHARE = 0.3
"""Probability that both readers are compared after an input is ingested."""

INGESTS_SHARE = 0.1
"""Probability that both readers also ingest a trace with odd fields, which takes seconds."""

WALKS = 30
"""Number of inputs that are only scanned for each input that is ingested.

Scanning an input takes a hundredth of the time of ingesting it.
"""

FOUND = Path(".hta_sql") / "fuzz"
log = logging.getLogger("fuzz")


def fuzz(seconds: float, seed: int) -> int:
    """Corrupt traces until time is up or a property breaks; return the exit code."""
    random, wholes, inputs = Random(seed), seeds(), 0
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, _too_long)
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        while time.monotonic() < end:
            text = b""
            signal.alarm(STANDSTILL_S)
            signal.setitimer(signal.ITIMER_PROF, DEADLINE_S)
            try:
                for _ in range(WALKS):
                    text = mutated(random, wholes)
                    check_walk(random, text)
                path.write_bytes(text)
                check_ways_agree(random, path, is_deep=random.random() < 0.1)
                if random.random() < READERS_SHARE:
                    write = random.choice((changed_event, field_event))
                    events = [write(random) for _ in range(EVENTS)]
                    text = b",\n".join(events)
                    check_readers_agree(events)
                if random.random() < INGESTS_SHARE:
                    text = field_trace(random)
                    path.write_bytes(text)
                    check_ingests_agree(random, path)
            except Exception:
                log.exception("seed %d, input %d: kept in %s", seed, inputs, _kept(text, seed))
                return 1
            finally:
                signal.alarm(0)
                signal.setitimer(signal.ITIMER_PROF, 0)
            inputs += 1
    log.info("seed %d: %d inputs ingested, %d walked", seed, inputs, inputs * WALKS)
    if reader_at_work() == "SQL":
        log.info("The compiled reader is not here: SQL was compared with itself.")
    return 0


def _kept(text: bytes, seed: int) -> Path:
    FOUND.mkdir(parents=True, exist_ok=True)
    path = FOUND / f"seed-{seed}.json"
    path.write_bytes(text)
    return path


def _too_long(*_: object) -> None:
    raise TimeoutError(f"an input took more than {DEADLINE_S} s of CPU or {STANDSTILL_S} s")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("hta_sql").setLevel(logging.WARNING)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int.from_bytes(os.urandom(4), "big")
    sys.exit(fuzz(float(sys.argv[1]), seed))
