"""Breaks traces for a while: ``python -m tests.fuzz.run SECONDS [SEED]``.

An input that breaks a property is left in a file beside the work folder; make it a fault of
tests/ingestion/corpus.py when it is mended.
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
"""An input of 64 KB that takes more CPU hangs."""

STANDSTILL_S = 600
"""Likewise one that takes so long without it, even on a machine that does much else."""

EVENTS = 200
"""Events that are changed one by one for both readers to read, most of whose time is statements'."""

READERS_SHARE = 0.3
"""How often they are, for an input that is ingested."""

INGESTS_SHARE = 0.1
"""How often whole stores are made by both readers, of events with odd fields: two seconds each."""

WALKS = 30
"""Inputs that are only walked for each one that is ingested: that costs a hundredth."""

FOUND = Path(".hta_sql") / "fuzz"
log = logging.getLogger("fuzz")


def fuzz(seconds: float, seed: int) -> int:
    """Break traces until the time is up or a property breaks; returns the exit code."""
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
