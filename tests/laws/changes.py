"""Changes of a job whose effect on every answer is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

from tests.laws.effects import Effect
from tests.laws.jobs import Event, Job, Trace
from tests.laws.times import NS_PER_US, base_us, first_us, last_us, move, number, put, timed

MINUTE_NS = 60_000_000_000
HOUR_US = 3_600_000_000
LONG_COLLECTIVE_US = 500
LONGEST_US = 900_000_000_000
"""Length of the longest event that the ingest accepts: ten days."""
JITTER_US = 25
EPOCH_US = 1_700_000_000_000_000
"""A start of events as traces without a base time state it: microseconds since 1970."""


@dataclass(frozen=True)
class Changed:
    """A changed job.

    Attributes:
        job: The job.
        effect: What the change does to answers.
        order: Ranks in the order in which they are ingested.
    """

    job: Job
    effect: Effect
    order: tuple[int, ...] = ()


Change = Callable[[Job], Changed | None]
"""Returns None if a job has nothing that could change."""


def written_again(job: Job) -> Changed:
    """Write all traces again, without a change."""
    return Changed(job.copy(), Effect())


def dilated(scale: int) -> Change:
    """Return the change that multiplies all times after the job's first event.

    Jobs that would last longer than the longest event that the ingest accepts have no such change.
    """

    def change(job: Job) -> Changed | None:
        changed, first = job.copy(), first_us(job)
        if scale * (last_us(job) - first) > LONGEST_US:
            return None
        move(changed, lambda at: first + scale * (at - first))
        for trace in changed.ranks.values():
            for event in trace["traceEvents"]:
                args = event.get("args") if isinstance(event, dict) else None
                if isinstance(args, dict) and isinstance(args.get("queued"), int):
                    args["queued"] *= scale
        # Sums contain the rounding errors of many times, which are whole nanoseconds.
        return Changed(changed, Effect(scale=scale, relative=1e-4, slack_ns=16))

    return change


def shifted(job: Job) -> Changed:
    """Count events from another time: since 1970 if they started near 0, and else from 0."""
    changed = job.copy()
    first = min(start for trace in job.ranks.values() for _, start, _ in timed(trace))
    by = Decimal(EPOCH_US) if first < EPOCH_US // 2 else -int(first)
    for trace in changed.ranks.values():
        for event, start, _ in list(timed(trace)):
            put(event, "ts", start + by)
    return Changed(changed, Effect())


def with_stray_event(job: Job) -> Changed | None:
    """Add an operator at ts 0, on a thread of its own, to the first rank."""
    rank = min(job.ranks)
    starts = [start for _, start, _ in timed(job.ranks[rank])]
    if min(starts) <= 0:
        return None
    changed = job.copy()
    stray: Event = {"ph": "X", "cat": "cpu_op", "name": "stray", "ts": 0, "dur": 1}
    changed.ranks[rank]["traceEvents"].append(stray | {"pid": 1, "tid": 1, "args": {}})
    return Changed(changed, Effect())


def with_clocks_apart(job: Job) -> Changed | None:
    """Set the clock of the last rank forward by a minute."""
    if len(job.ranks) == 1:
        return None
    changed = job.copy()
    trace = changed.ranks[max(job.ranks)]
    if job.has_base_times:
        trace["baseTimeNanoseconds"] += MINUTE_NS
    else:
        for event, start, _ in list(timed(trace)):
            put(event, "ts", start + MINUTE_NS // NS_PER_US)
    return Changed(changed, Effect())


def _lengthened(job: Job, at: Decimal, by_us: int) -> Changed:
    changed = job.copy()
    move(changed, lambda time: time + by_us if time > at else time)
    return Changed(changed, Effect())


def slower(job: Job) -> Changed | None:
    """Lengthen all that happens in the middle of the first step by a tenth of the step."""
    steps = _steps(job)
    if not steps:
        return None
    start, dur = steps[0]
    return _lengthened(job, start + dur / 2, int(dur) // 10)


def with_long_step(job: Job) -> Changed | None:
    """Lengthen all that happens in the middle of the middle step by an hour."""
    steps = _steps(job)
    if len(steps) < 2:
        return None
    start, dur = steps[len(steps) // 2]
    return _lengthened(job, start + dur / 2, HOUR_US)


def _steps(job: Job) -> list[tuple[Decimal, Decimal]]:
    """Return start and duration of the steps of the first rank on the clock of all ranks [µs]."""
    trace = job.ranks[min(job.ranks)]
    return sorted(
        (base_us(trace) + start, dur)
        for event, start, dur in timed(trace)
        if dur and _is_step(event)
    )


def with_long_collective(job: Job) -> Changed | None:
    """Lengthen all that happens in the middle of the last collective by ten hours."""
    trace = job.ranks[min(job.ranks)]
    found = [
        base_us(trace) + start + dur / 2
        for event, start, dur in timed(trace)
        if dur and _is_collective(event)
    ]
    return _lengthened(job, max(found), 10 * HOUR_US) if found else None


def _is_step(event: Event) -> bool:
    is_host = event.get("cat") in ("user_annotation", "Operator", "cpu_op")
    return is_host and str(event.get("name")).startswith("ProfilerStep")


def _is_collective(event: Event) -> bool:
    return str(event.get("cat")).lower() == "kernel" and "nccl" in str(event.get("name")).lower()


def with_other_ids(job: Job) -> Changed | None:
    """Renumber streams, processes, threads and correlation ids; their order stays."""
    if not any(event.get("cat") for trace in job.ranks.values() for event, _, _ in timed(trace)):
        return None  # Ascend's process ids state the device
    changed = job.copy()
    ids: dict[str, dict[int, int]] = {kind: {} for kind in ("stream", "correlation", "id")}

    def other(kind: str, value: Any) -> Any:
        if isinstance(value, str) and value.isdecimal():
            return str(other(kind, int(value)))
        if type(value) is not int or value <= 0:  # 0 and -1 mean something else on some devices
            return value
        return ids[kind].setdefault(value, value * 3 + 1)

    for trace in changed.ranks.values():
        events = [event for event in trace["traceEvents"] if isinstance(event, dict)]
        devices = {repr(event.get("pid")) for event in events if event.get("cat") in _DEVICE}
        for event in events:
            _renumber(event, repr(event.get("pid")) in devices, other)
    threads = {"tid": ids["id"] | ids["stream"], "pid": ids["id"]}
    return Changed(changed, Effect(ids=ids | threads))


_DEVICE = frozenset(
    {
        *("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "gpu_user_annotation"),
        *("Kernel", "Memcpy", "Memset"),
    }
)
_ID_ARGUMENTS = {
    "stream": "stream",
    "wait_on_stream": "stream",
    "correlation": "correlation",
    "wait_on_cuda_event_record_corr_id": "correlation",
}


def _renumber(event: Event, is_device: bool, other: Callable[[str, Any], Any]) -> None:
    if "tid" in event:
        event["tid"] = other("stream" if is_device else "id", event["tid"])
    if "pid" in event and not is_device:
        event["pid"] = other("id", event["pid"])
    args = event.get("args")
    if isinstance(args, dict):
        for name, kind in _ID_ARGUMENTS.items():
            if name in args:
                args[name] = other(kind, args[name])


def with_ranks_permuted(job: Job) -> Changed | None:
    """Give the ranks each other's numbers, wherever a trace states them."""
    if len(job.ranks) == 1:
        return None
    ranks = sorted(job.ranks)
    shuffled = ranks[1:] + ranks[:1]
    new = dict(zip(ranks, shuffled, strict=True))
    changed = job.copy()
    for trace in changed.ranks.values():
        _renumber_ranks(trace, new)
    by_rank = {new[rank]: trace for rank, trace in changed.ranks.items()}
    return Changed(
        Job(job.name, dict(sorted(by_rank.items()))),
        Effect(ids={"rank": new}, is_ordered=False, relative=1e-3, slack_ns=100),
    )


def _renumber_ranks(trace: Trace, new: dict[int, int]) -> None:
    info = trace.get("distributedInfo")
    if isinstance(info, dict):
        if info.get("rank") in new:
            info["rank"] = new[info["rank"]]
        for group in info.get("pg_config") or ():
            if isinstance(group, dict) and isinstance(group.get("ranks"), list):
                group["ranks"] = sorted(new.get(rank, rank) for rank in group["ranks"])
    for event in trace["traceEvents"]:
        args = event.get("args") if isinstance(event, dict) else None
        if isinstance(args, dict):
            _renumber_arguments(args, new)


def _renumber_arguments(args: dict[str, Any], new: dict[int, int]) -> None:
    for name in ("Src Rank", "Dst Rank", "Rank"):
        if type(args.get(name)) is int:
            args[name] = new.get(args[name], args[name])
    listed = _ranks_in(args.get("Process Group Ranks"))
    if listed is not None:
        text = ", " if ", " in args["Process Group Ranks"] else ","
        others = sorted(new.get(rank, rank) for rank in listed)
        args["Process Group Ranks"] = json.dumps(others, separators=(text, ":"))


def _ranks_in(text: Any) -> list[Any] | None:
    """Return a list of ranks that is written as a text."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if isinstance(found, list) else None


def with_ranks_in_another_order(job: Job) -> Changed | None:
    """Ingest the last rank first."""
    if len(job.ranks) == 1:
        return None
    return Changed(job.copy(), Effect(), order=tuple(sorted(job.ranks, reverse=True)))


def with_events_reordered(job: Job) -> Changed:
    """Write events in another order; those that start at one time keep theirs."""
    changed = job.copy()
    events: dict[int, dict[int, int]] = {}
    for rank, trace in changed.ranks.items():
        chance = Random(rank)
        keys: dict[Decimal | None, float] = {}
        listed = trace["traceEvents"]
        order = sorted(
            range(len(listed)),
            key=lambda at: (keys.setdefault(_start_of(listed[at]), chance.random()), at),
        )
        trace["traceEvents"] = [listed[at] for at in order]
        events[rank] = {old: new for new, old in enumerate(order)}
    return Changed(changed, Effect(events=events, is_ordered=False))


def _start_of(event: Any) -> Decimal | None:
    return number(event.get("ts")) if isinstance(event, dict) else None


def without_last_step(job: Job) -> Changed | None:
    """Drop the last step of each rank: host events after its start, and what they launch."""
    changed = job.copy()
    for trace in changed.ranks.values():
        steps = sorted(
            start for event, start, dur in timed(trace) if dur is not None and _is_step(event)
        )
        if len(steps) < 4:
            return None
        _cut(trace, steps[-1])
    return Changed(changed, Effect())


def _cut(trace: Trace, end: Decimal) -> None:
    launched: dict[Any, bool] = {}
    for event, start, _ in timed(trace):
        if str(event.get("cat")) in ("cuda_runtime", "cuda_driver", "Runtime", "hip_runtime"):
            launched[(event.get("args") or {}).get("correlation")] = start < end
    trace["traceEvents"] = [
        event if _is_before(event, end, launched) else NOTHING for event in trace["traceEvents"]
    ]


def _is_before(event: Any, end: Decimal, launched: dict[Any, bool]) -> bool:
    start = _start_of(event)
    args = event.get("args") if isinstance(event, dict) else None
    correlation = args.get("correlation") if isinstance(args, dict) else None
    return start is None or launched.get(correlation, start < end)


NOTHING: Event = {"ph": "M", "name": "nothing", "pid": 0, "tid": 0, "args": {}}
"""Takes the position of an event that is cut off, so that the others keep theirs."""

_GROUP_ARGUMENTS = (
    *("Process Group Name", "Process Group Description", "Process Group Ranks", "Seq"),
    *("Group size", "Collective name"),
)


def without_group_metadata(job: Job) -> Changed | None:
    """Drop all that traces say about process groups."""
    changed, found = job.copy(), False
    for trace in changed.ranks.values():
        info = trace.get("distributedInfo")
        if isinstance(info, dict):
            info.pop("pg_config", None)
        for event in trace["traceEvents"]:
            args = event.get("args") if isinstance(event, dict) else None
            for name in _GROUP_ARGUMENTS:
                if isinstance(args, dict) and name in args:
                    del args[name]
                    found = True
    return Changed(changed, Effect()) if found and len(job.ranks) > 1 else None


def with_jittered_ends(job: Job) -> Changed | None:
    """End each collective of more than 500 µs up to 25 µs earlier or later."""
    changed, found = job.copy(), False
    for rank, trace in changed.ranks.items():
        chance = Random(rank)
        for event, _, dur in list(timed(trace)):
            if dur is not None and dur > LONG_COLLECTIVE_US and _is_collective(event):
                put(event, "dur", dur + chance.randrange(-JITTER_US, JITTER_US + 1))
                found = True
    return Changed(changed, Effect()) if found and len(job.ranks) > 1 else None
