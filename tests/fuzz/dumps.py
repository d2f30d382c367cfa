"""Corrupt Flight Recorder dumps at random, and check that each is either read or refused.

Run as ``python -m tests.fuzz.dumps SECONDS [SEED]``. The reader must return a value or raise
TraceFormatError. An audit hook ends the process if the reader imports a module, opens a file or
starts a program.
"""

from __future__ import annotations

import codecs
import pickle
import random
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from hta_sql.errors import TraceFormatError
from hta_sql.ingestion.artifacts.dumps import DumpValues, dump_tables
from hta_sql.ingestion.artifacts.values import Values
from hta_sql.traces.flight_recorder import is_dump, parse_dump

RECORDED = Path(__file__).parents[1] / "traces" / "recorded" / "hangs"
OPCODES = bytes(range(256))
FORBIDDEN = (
    "import",
    "os.system",
    "subprocess.Popen",
    "os.exec",
    "os.posix_spawn",
    "exec",
    "compile",
)


def seeds() -> list[bytes]:
    """Return valid JSON and pickle dumps, and some of them in each pickle protocol."""
    recorded = [path.read_bytes() for path in sorted(RECORDED.glob("*/*"))]
    values = [pickle.loads(data) for data in recorded if data.startswith(b"\x80")]  # noqa: S301 - ours
    return recorded + [pickle.dumps(value, p) for value in values[:2] for p in range(2, 6)]


def broken(data: bytes, rng: random.Random) -> bytes:
    """Change, insert, delete, repeat or truncate bytes at random."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(changed) + 1)
        match rng.randrange(6):
            case 0 if at < len(changed):
                changed[at] = rng.choice(OPCODES)
            case 1:
                changed[at:at] = bytes(rng.choices(OPCODES, k=rng.randrange(1, 9)))
            case 2:
                del changed[at : at + rng.randrange(1, 30)]
            case 3:
                other = rng.randrange(len(changed) + 1)
                changed[at:at] = changed[other : other + rng.randrange(1, 200)]
            case 4:
                del changed[at:]
            case _:
                changed[at:at] = rng.choice(
                    (
                        b"cos\nsystem\n",
                        b"(S'true'\ntR",
                        b"\x93",
                        b"R",
                        b"b",
                        b"\x8a\xff",
                        b"\x8d" + b"\xff" * 8,
                    )
                )
    return bytes(changed)


def read(data: bytes) -> str:
    """Read a dump as an ingest does; return ``read`` or ``refused``.

    Raises:
        Exception: The dump is neither read nor refused.
    """
    is_dump(data)
    with suppress(TraceFormatError):
        dump_tables(parse_dump(data, "broken"), DumpValues(Values(len(data)), Values(len(data))))
        return "read"
    return "refused"


def forbid() -> None:
    """End the process if the reader imports a module, executes code or starts a program."""

    def hook(event: str, arguments: Any) -> None:
        if event in FORBIDDEN and _reading:
            sys.stderr.write(f"a dump caused {event} {arguments}\n")
            raise SystemExit(3)

    sys.addaudithook(hook)


_reading: list[bool] = []


def main(seconds: float, seed: int) -> None:
    """Corrupt and read dumps until the time is up."""
    rng, whole, counts = random.Random(seed), seeds(), {"read": 0, "refused": 0}
    end = time.monotonic() + seconds
    for data in whole:
        read(data)
    codecs.lookup("raw-unicode-escape")  # otherwise imported at its first use
    forbid()
    while time.monotonic() < end:
        data = broken(rng.choice(whole), rng)
        started = time.monotonic()
        _reading.append(True)
        try:
            counts[read(data)] += 1
        except Exception:
            Path("broken_dump.bin").write_bytes(data)
            raise
        finally:
            _reading.clear()
        if time.monotonic() - started > 10:
            Path("slow_dump.bin").write_bytes(data)
            raise TimeoutError("a broken dump took more than 10 s")
    sys.stdout.write(f"{counts}\n")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
