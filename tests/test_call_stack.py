"""Tests that compare call stacks with a simple tree walk, and tests with very deep stacks."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from hta_sql.store.query.trace_store import TraceStore

Event = dict[str, Any]


def host(name: str, ts: int, dur: int, tid: int = 1, correlation: int | None = None) -> Event:
    """Return a host event, with times in µs; an event with a correlation is a launch."""
    args = {} if correlation is None else {"correlation": correlation}
    cat = "cpu_op" if correlation is None else "cuda_runtime"
    base = {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid}
    return base | {"ts": ts, "dur": dur, "args": args}


def kernel(ts: int, dur: int, correlation: int) -> Event:
    """Return a kernel, with times in µs."""
    args = {"stream": 7, "device": 0, "correlation": correlation}
    base = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7}
    return base | {"ts": ts, "dur": dur, "args": args}


def parents_of(events: list[Event]) -> dict[int, int | None]:
    """Return the parent of each event by definition: the latest-starting event that encloses it."""
    hosts = [(i, e) for i, e in enumerate(events) if e["cat"] != "kernel"]
    launches = {e["args"]["correlation"]: i for i, e in hosts if e["cat"] == "cuda_runtime"}
    parents: dict[int, int | None] = {}
    for i, event in hosts:
        mine = (event["ts"], -event["dur"], i)
        around = [
            (other["ts"], -other["dur"], j)
            for j, other in hosts
            if other["tid"] == event["tid"]
            and (other["ts"], -other["dur"], j) < mine
            and other["ts"] + other["dur"] >= event["ts"] + event["dur"]
        ]
        parents[i] = max(around)[2] if around else None
    for i, event in enumerate(events):
        if event["cat"] == "kernel" and event["args"]["correlation"] in launches:
            parents[i] = launches[event["args"]["correlation"]]
    return parents


def expected(events: list[Event]) -> dict[int, tuple[Any, ...]]:
    """Return the expected stack columns of each event, computed by a walk over the tree [ns].

    The columns are parent, depth, height, descendant count, kernel count, total kernel time, first
    kernel start and last kernel end.
    """
    parents = parents_of(events)
    children = defaultdict(list)
    for child, parent in parents.items():
        children[parent].append(child)
    found: dict[int, tuple[Any, ...]] = {}

    def walk(node: int, depth: int) -> tuple[int, list[int], list[int]]:
        below = [walk(child, depth + 1) for child in children[node]]
        is_kernel = events[node]["cat"] == "kernel"
        height = 0 if is_kernel else max([1, *(h + 1 for h, _, _ in below)])
        nodes = [n for _, ns, _ in below for n in ns]
        kernels = [k for _, _, ks in below for k in ks] + [node] * is_kernel
        starts = [1000 * events[k]["ts"] for k in kernels]
        ends = [1000 * (events[k]["ts"] + events[k]["dur"]) for k in kernels]
        found[node] = (
            *(parents[node], depth, height, len(nodes), len(kernels)),
            1000 * sum(events[k]["dur"] for k in kernels),
            *(min(starts, default=None), max(ends, default=None)),
        )
        return height, [node, *nodes], kernels

    for root in children[None]:
        walk(root, 0)
    return found


FACTS = """
SELECT
    rank, event_id, parent_id, depth, height, descendant_count, kernel_count, kernel_ns,
    first_kernel_ts, last_kernel_end_ts
FROM call_stack_v1(joins_backward := false)
"""


def test_any_tree(ingest_trace: Callable[..., TraceStore]) -> None:
    """Stacks match the tree walk, even with ties, zero durations, overlaps and multiple threads."""
    ranks = {seed: any_events(random.Random(seed)) for seed in range(8)}
    found: dict[int, dict[int, tuple[Any, ...]]] = {rank: {} for rank in ranks}
    for rank, event, *facts in ingest_trace(ranks).sql(FACTS).rows():
        found[rank][event] = tuple(facts)
    assert found == {rank: expected(events) for rank, events in ranks.items()}


def any_events(dice: random.Random) -> list[Event]:
    """Return sixty random operators and launches, together with their kernels."""
    events = [host("first", 0, 0, tid=9)]
    for number in range(60):
        start, tid = dice.randrange(40), dice.randrange(1, 3)
        correlation = number if dice.random() < 0.3 else None
        events.append(host("op", start, dice.choice([0, 0, 1, 2, 5, 20]), tid, correlation))
        if correlation is not None:
            count = dice.randrange(3)
            events += [kernel(dice.randrange(90), dice.randrange(9), number) for _ in range(count)]
    events.append(kernel(3, 3, 999))
    dice.shuffle(events)
    return events


def test_below_an_event_is_what_follows_it(ingest_trace: Callable[..., TraceStore]) -> None:
    """The descendants of a row are the descendant_count rows that follow it."""
    dice = random.Random(1)
    events = [host("op", dice.randrange(50), dice.randrange(20), number) for number in (1, 2) * 30]
    rows = ingest_trace(events).run("call_stack").arrow().to_pylist()
    parents = {row["event_id"]: row["parent_id"] for row in rows}

    def is_below(event: int | None, above: int) -> bool:
        return event is not None and (event == above or is_below(parents[event], above))

    for place, row in enumerate(rows):
        below = {r["event_id"] for r in rows if is_below(r["parent_id"], row["event_id"])}
        behind = rows[place + 1 : place + 1 + row["descendant_count"]]
        assert {r["event_id"] for r in behind} == below


def test_a_stack_of_ten_thousand_frames(ingest_trace: Callable[..., TraceStore]) -> None:
    """A very deep stack is fast, because the query avoids recursion and cross joins."""
    frames = [host("frame", i, 40_000 - 2 * i) for i in range(10_000)]
    events = [*frames, host("launch", 10_000, 5, correlation=1), kernel(20_000, 7, 1)]
    store = ingest_trace(events)
    began = time.perf_counter()
    rows = store.run("call_stack").rows()
    chain = store.run("event_stack").rows()
    assert time.perf_counter() - began < 10
    assert [row[13] for row in rows] == list(range(10_002))
    assert [row[14] for row in rows] == [*range(10_001, 0, -1), 0]
    assert {row[16:18] for row in rows} == {(1, 7000)}
    assert len(chain) == 10_002
