"""Write odd values into event arguments; every known argument gets every kind of odd value.

Run as a program: ``python -m tests.arguments.odd_values SECONDS SEED`` repeatedly corrupts random
events of the pinned jobs and runs every analysis on the result.
"""

from __future__ import annotations

import gzip
import json
import logging
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import cycle, product
from pathlib import Path
from random import Random
from typing import Any

import duckdb

from hta_sql.library.arguments import known_arguments
from hta_sql.library.objects import load_library
from hta_sql.store.catalog.template import CONFIG
from tests.pinned.answers import calls_of
from tests.pinned.jobs import CATALOG, Runs, make_catalog, write_jobs

log = logging.getLogger("odd_values")

LONG = 1 << 20
"""Length of a long string [characters]."""

ODD: dict[str, Any] = {
    "word": "word",
    "empty text": "",
    "blank": " ",
    "text of JSON": '[{"a": 1}]',
    "open text of JSON": "[[1, 2",
    "list": [1, "two", None],
    "empty list": [],
    "nested list": [[[[1, 2]]], [["a"]]],
    "list of texts": ["[1]", ""],
    "large dims": [[1 << 59, 1 << 59], [1 << 59, 1 << 59], [1 << 17] * 9],
    "large sizes": [[10**12] * 2, [10**12] * 2, [10**12] * 4],
    "larger sizes": [[10**9] * 3, [10**9] * 4, [10**9] * 5],
    "sizes inside sizes": [[[10**12, 10**12], [10**12]], [5, [3]]],
    "texts of large numbers": [str(1 << 62), str(1 << 70), "1e400", "[9223372036854775807, 2]"],
    "large splits": f"[{10**11}, {10**11}, {10**11}, {10**11}]",
    "negative dims": [[-1, 0], [0, -5], [-(1 << 40)]],
    "object": {"a": [1]},
    "empty object": {},
    "2^70": 1 << 70,
    "list of 2^70": [1 << 70],
    "text of 2^70": f"[{1 << 70}, 1]",
    "2^63 - 1": (1 << 63) - 1,
    "-2^63": -(1 << 63),
    "2^62": 1 << 62,
    "2^50": 1 << 50,
    "2^31": 1 << 31,
    "text of 2^31": f"[{1 << 31}, {(1 << 31) + 1}]",
    "negative ranks": "[-1, -2, ...]",
    "-1": -1,
    "0": 0,
    "1e308": 1e308,
    "-1e308": -1e308,
    "1e-320": 1e-320,
    "0.5": 0.5,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "text of Infinity": "Infinity",
    "null": None,
    "true": True,
    "long text": "x" * LONG,
    "long list": [1] * (LONG // 64),
    "text of a long list": json.dumps([999_999_999] * (LONG // 64)),
    "surrogate": "\ud800",
    "NUL": "a\0b",
}
"""Kind of odd value ─▶ value.

NaN and Infinity are written as Python writes them, which is not valid JSON.
"""

BREAKING = ("NaN", "Infinity", "surrogate", "NUL")
"""Values that make the surrounding JSON invalid."""

RARE = ("long text", "long list", "text of a long list", *BREAKING)
"""Kinds of values that are written rarely, as they take megabytes or make the JSON invalid."""

SHARE = 0.5
"""Share of the events whose arguments are corrupted."""

MEMORY = "4GB"
"""Memory limit of DuckDB; a call that exceeds the limit fails."""


def odd_arguments(random: Random) -> Iterator[tuple[str, str]]:
    """Yield random pairs of an argument and a kind of odd value in an endless cycle."""
    names = sorted({argument.name for argument in known_arguments()})
    pairs = [pair for pair in product(names, ODD) if pair[1] not in RARE or random.random() < 0.1]
    random.shuffle(pairs)
    return cycle(pairs)


def spoil(trace: dict[str, Any], random: Random, pairs: Iterator[tuple[str, str]]) -> int:
    """Put odd values into the arguments of some events; return the number of changed events."""
    count = 0
    for event in trace["traceEvents"]:
        args = event.get("args")
        if event.get("ph") == "M" or not isinstance(args, dict) or random.random() > SHARE:
            continue
        name, kind = next(pairs)
        # Half of the values replace existing arguments, because those are read by analyses.
        if args and random.random() < 0.5:
            name = random.choice(sorted(args))
        args[name] = ODD[kind]
        count += 1
    return count


def spoil_metadata(trace: dict[str, Any], random: Random) -> None:
    """Replace the value of a random key outside of the events with an odd value."""
    places: list[tuple[Any, Any]] = []
    found: list[Any] = [trace]
    while found:
        item = found.pop()
        keys = item.keys() if isinstance(item, dict) else range(len(item))
        for key in keys:
            if key != "traceEvents":
                places.append((item, key))
                if isinstance(item[key], dict | list):
                    found.append(item[key])
    if places:
        item, key = random.choice(places)
        kinds = [kind for kind in ODD if kind not in BREAKING]
        item[key] = ODD[random.choice(kinds)]


def spoiled_jobs(folder: Path, runs: Runs, random: Random) -> Runs:
    """Write corrupted copies of traces; return their paths by run and rank."""
    pairs = odd_arguments(random)
    spoiled: Runs = {}
    for run, ranks in runs.items():
        for rank, path in ranks.items():
            trace = read_trace(Path(path))
            if isinstance(trace, dict):
                spoil(trace, random, pairs)
                spoil_metadata(trace, random)
            # Recordings of a single rank keep their names, which have the rank if metadata is
            # corrupted.
            name = Path(path).name if rank < 0 else f"rank{rank}.json"
            copy = folder / run / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(json.dumps(trace), "utf-8", errors="surrogatepass")
            spoiled.setdefault(run, {})[rank] = str(copy)
    return spoiled


def read_trace(path: Path) -> Any:
    """Parse a trace file, gzipped or plain."""
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


def failures(catalog: Path, calls: Sequence[str]) -> dict[str, str]:
    """Run calls on a catalog; return the failing calls with DuckDB's error messages."""
    found = {}
    with closing(
        duckdb.connect(str(catalog), read_only=True, config=CONFIG | {"memory_limit": MEMORY})
    ) as con:
        for call in calls:
            try:
                con.execute(call).fetchall()
            except duckdb.Error as error:
                found[call] = str(error)
    return found


def all_calls() -> list[str]:
    """List the calls to every analysis, with default and with other parameter values."""
    library = load_library()
    return [call for analysis in library.analyses for call in calls_of(analysis)]


def main(seconds: float, seed: int) -> int:
    """Corrupt the pinned jobs and run every analysis until time is up; return the exit code."""
    until, calls, rounds = time.monotonic() + seconds, all_calls(), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = write_jobs(folder / "whole")
        while time.monotonic() < until:
            work = folder / str(seed)
            work.mkdir()
            make_catalog(work, spoiled_jobs(work / "spoiled", runs, Random(seed)))
            failed = failures(work / CATALOG, calls)
            for call, message in failed.items():
                log.error("seed %d: %s: %s", seed, call, message[:600])
            if failed:
                return 1
            seed, rounds = seed + 1, rounds + 1
    log.info("%d rounds of %d calls each: no failure.", rounds, len(calls))
    return 0


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    log.setLevel(logging.INFO)
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2])))
