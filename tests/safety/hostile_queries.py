"""Run hostile queries, ten at once, against ``TraceStore(safe=True)`` and ``hta-sql mcp``.

::

    python -m tests.safety.hostile_queries STORE COUNT SEED

Each query tries to crash the engine, to exceed its time limit or to use all memory. The report on
each interface shows whether its process died, which answers came more than 2 s after the time
limit, and the p99 latency of ``SELECT 1`` while nine hostile queries run.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from mcp import Client, StdioServerParameters

import hta_sql
from hta_sql.errors import HtaSqlError
from hta_sql.store.query.limits import Limits

SECONDS = 2.0
"""Time limit of a query [s]."""

LATE_S = 2.0
HOSTILE = 9


def hostile(chance: random.Random) -> str:
    """Return a query of a random kind and size."""
    return chance.choice(KINDS)(chance)


def _nested(chance: random.Random) -> str:
    depth = chance.choice((50, 900, 5_000, 100_000))
    return chance.choice(
        (
            "SELECT " + "(" * depth + "1" + ")" * depth,
            "SELECT " + "[" * depth + "1" + "]" * depth,
            "SELECT " + "- " * depth + "1",
            "SELECT " + "CASE WHEN true THEN " * depth + "1" + " END" * depth,
            "SELECT * FROM " + "(SELECT * FROM " * depth + "runs" + ")" * depth,
            "SELECT 1 WHERE " + "NOT " * depth + "true",
            "SELECT 1" + " + 1" * depth,
            "SELECT abs(" * 1 + "abs(" * depth + "1" + ")" * (depth + 1),
        )
    )


def _unions(chance: random.Random) -> str:
    return " UNION ALL ".join(["SELECT 1"] * chance.choice((500, 20_000, 100_000)))


def _joins(chance: random.Random) -> str:
    count = chance.choice((20, 100, 300))
    names = [f"gpu_ops AS t{i}" for i in range(count)]
    link = [f"t{i}.event_id = t{i + 1}.event_id" for i in range(count - 1)]
    return f"SELECT count(*) FROM {', '.join(names)} WHERE {' AND '.join(link)}"


def _crossed(chance: random.Random) -> str:
    size = chance.choice((10**5, 10**7, 10**12))
    return f"SELECT sum(hash(a.range + b.range)) FROM range({size}) AS a, range({size}) AS b"


def _replaced(chance: random.Random) -> str:
    text = f"repeat('x', {chance.choice((10_000, 100_000))})"
    inner = f"replace({text}, 'x', {text})"
    return f"SELECT length({chance.choice((inner, f'replace({inner}, $${chr(120)}$$, {text})'))})"


def _distances(chance: random.Random) -> str:
    name = chance.choice(("levenshtein", "damerau_levenshtein", "jaro_winkler_similarity"))
    size = chance.choice((5_000, 50_000))
    return f"SELECT {name}(repeat('ab', {size // 2}), repeat('ba', {size // 2}))"


def _aggregated(chance: random.Random) -> str:
    size = chance.choice((10**5, 10**6, 10**8))
    return chance.choice(
        (
            f"SELECT string_agg(repeat('x', 1000), '') FROM range({size})",
            f"SELECT list(i ORDER BY hash(i)) FROM range({size}) AS t(i)",
            f"SELECT histogram(i) FROM range({size}) AS t(i)",
            f"SELECT i, count(DISTINCT hash(i)) FROM range({size}) AS t(i) GROUP BY ALL",
            f"SELECT list_reduce(list(i), lambda x, y: x + y) FROM range({size}) AS t(i)",
        )
    )


def _wide(chance: random.Random) -> str:
    columns = ", ".join(f"i AS c{n}" for n in range(chance.choice((1_000, 20_000))))
    return f"SELECT {columns} FROM range({chance.choice((1, 10_000))}) AS t(i)"


def _windowed(chance: random.Random) -> str:
    size = chance.choice((10**5, 10**7))
    over = "OVER (ORDER BY i ROWS BETWEEN 50000 PRECEDING AND 50000 FOLLOWING)"
    name = chance.choice(("median(i)", "string_agg(i::VARCHAR, '')", "list(i)", "mode(i % 97)"))
    return f"SELECT max(x) FROM (SELECT {name} {over} AS x FROM range({size}) AS t(i))"


def _recursive(chance: random.Random) -> str:
    step = chance.choice(("n + 1", "n"))
    text = chance.choice(("s || s", "s"))
    return (
        "WITH RECURSIVE r AS (SELECT 1 AS n, 'x' AS s UNION ALL "
        f"SELECT {step}, {text} FROM r WHERE n < 60) SELECT max(length(s)) FROM r"
    )


def _matched(chance: random.Random) -> str:
    size = chance.choice((10_000, 100_000))
    pattern = chance.choice(("(a|a)*b", "(a*)*(a*)*b", "(.*)(.*)(.*)(.*)x", "a{900}a{900}"))
    return (
        f"SELECT count(*) FROM range(1000) AS t(i) WHERE regexp_matches(repeat('a', {size} + "
        f"(i % 2)::INTEGER) , '{pattern}')"
        if chance.random() < 0.2
        else f"SELECT regexp_replace(repeat('a', {size}), '{pattern}', 'b', 'g') FROM range(1000)"
    )


def _large(chance: random.Random) -> str:
    rows = chance.choice((10**3, 10**5, 10**7))
    return f"SELECT repeat('x', {chance.choice((100, 10_000))}) AS x, i FROM range({rows}) AS t(i)"


KINDS: tuple[Callable[[random.Random], str], ...] = (
    *(_nested, _unions, _joins, _crossed, _replaced, _distances, _aggregated, _wide),
    *(_windowed, _recursive, _matched, _large),
)


@dataclass
class Report:
    """Answers and latencies of one interface under attack."""

    told: Counter[str] = field(default_factory=Counter)
    late: list[tuple[float, str]] = field(default_factory=list)
    quick: list[float] = field(default_factory=list)
    refused: int = 0

    def asked(self, query: str, seconds: float, told: str) -> None:
        """Record the answer to a hostile query."""
        self.told[told] += 1
        if seconds > SECONDS + LATE_S:
            self.late.append((round(seconds, 2), query[:80]))

    def summary(self) -> dict[str, Any]:
        """Return the figures of the report."""
        quick = sorted(self.quick)
        return {
            "hostile": sum(self.told.values()),
            "late": self.late,
            "slowest quick": round(quick[-1], 3),
            "p50": round(quick[len(quick) // 2], 3),
            "p99": round(quick[int(len(quick) * 0.99)], 3),
            "quick": len(quick),
            "quick refused": self.refused,
            "told": dict(self.told.most_common(12)),
        }


def kind_of(message: str) -> str:
    """Return the part of an error message before the first colon."""
    return message.partition(":")[0][:40]


def ask_store(path: str, count: int, seed: int) -> Report:
    """Run hostile queries on a store in nine threads, while a tenth runs SELECT 1."""
    report, chance, lock = Report(), random.Random(seed), threading.Lock()
    with hta_sql.TraceStore(path, safe=True, limits=Limits(seconds=SECONDS)) as store:
        done = threading.Event()

        def attack(_: int) -> None:
            with lock:
                query = hostile(chance)
            began, told = time.monotonic(), "answered"
            try:
                store.sql(query)
            except HtaSqlError as error:
                told = kind_of(str(error))
            with lock:
                report.asked(query, time.monotonic() - began, told)

        def ask() -> None:
            while not done.is_set():
                began = time.monotonic()
                try:
                    assert store.sql("SELECT 1 AS a").rows() == [(1,)]
                except HtaSqlError:
                    report.refused += 1
                report.quick.append(time.monotonic() - began)
                time.sleep(0.02)

        store.sql("SELECT 1")
        with ThreadPoolExecutor(HOSTILE + 1) as pool:
            asking = pool.submit(ask)
            list(pool.map(attack, range(count)))
            done.set()
            asking.result()
    return report


def ask_server(path: str, count: int, seed: int) -> Report:
    """Run hostile queries on ``hta-sql mcp`` in nine client tasks, while a tenth runs SELECT 1."""
    return asyncio.run(_ask_server(path, count, seed))


async def _ask_server(path: str, count: int, seed: int) -> Report:
    report, chance = Report(), random.Random(seed)
    arguments = ["-m", "hta_sql", "mcp", path, "--seconds", str(SECONDS)]
    parameters = StdioServerParameters(command=sys.executable, args=arguments)
    async with Client(parameters) as client:
        left = iter(range(count))

        async def attack() -> None:
            for _ in left:
                query = hostile(chance)
                began = time.monotonic()
                result = await client.call_tool("sql", {"query": query})
                text: str = result.content[0].text if result.is_error else ""  # type: ignore[union-attr]
                report.asked(query, time.monotonic() - began, kind_of(text) or "answered")

        async def ask() -> None:
            while True:
                began = time.monotonic()
                result = await client.call_tool("sql", {"query": "SELECT 1 AS a"})
                report.refused += bool(result.is_error)
                report.quick.append(time.monotonic() - began)
                await asyncio.sleep(0.02)

        await client.call_tool("sql", {"query": "SELECT 1 AS a"})
        asking = asyncio.create_task(ask())
        await asyncio.gather(*(attack() for _ in range(HOSTILE)))
        assert not asking.done(), asking.exception()
        asking.cancel()
    return report


WAYS = {"store": ask_store, "mcp": ask_server}


def attacked(way: str, path: str, count: int, seed: int) -> dict[str, Any]:
    """Attack one interface in a separate process; return its figures and whether it died."""
    command = [
        sys.executable,
        "-m",
        "tests.safety.hostile_queries",
        path,
        str(count),
        str(seed),
        way,
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        return {"died": 1, "status": done.returncode, "stderr": done.stderr[-2000:]}
    found: dict[str, Any] = {"died": 0, **json.loads(done.stdout)}
    return found


if __name__ == "__main__":
    store_path, number, first, *chosen = sys.argv[1:]
    if chosen:
        figures = WAYS[chosen[0]](store_path, int(number), int(first)).summary()
    else:
        figures = {way: attacked(way, store_path, int(number), int(first)) for way in WAYS}
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")
