"""Find the part of a run to view, given steps, iterations, an event or a finding of ``advice``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hta_sql.errors import ParameterError, RankError, nearest
from hta_sql.library.sql_files import query_sql
from hta_sql.overlay.slices import Slice, Wanted
from hta_sql.store.query.trace_store import TraceStore
from hta_sql.text import cut_middle, rank_spans

MS = 1_000_000
_NAME = 60
"""Maximum characters of an event's name in a title: kernel names can have 10 kB."""
_AROUND = 50
"""Context around an event: this many times its duration on each side, at least 50 ms."""


@dataclass(frozen=True)
class Look:
    """Events to show, and the initial view.

    Attributes:
        wanted: The slice to write.
        title: Short title.
        zoom: Start and end of the initial view, since the run's first event [ns]; None: all.
        event: ``ts``, ``dur`` [ns], ``pid`` and ``tid`` of an event to select.
    """

    wanted: Wanted
    title: str
    zoom: tuple[int, int] | None = None
    event: dict[str, int] | None = None

    def view(self, written: Slice) -> dict[str, int]:
        """Return the initial view in the clock and tracks of a slice."""
        found: dict[str, int] = {}
        zero_ns = written.zero_ns
        if self.event:
            found |= self.event | {"ts": self.event["ts"] + zero_ns}
            place = found.get("pid"), found.get("tid"), found["ts"]
            if place in written.moved:
                found["tid"] = written.moved[place]
        if self.zoom:
            found |= {"visStart": self.zoom[0] + zero_ns, "visEnd": self.zoom[1] + zero_ns}
        return found


def look_at(
    store: TraceStore,
    *,
    run: str | None = None,
    ranks: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
    iterations: Sequence[int] | None = None,
    finding: str | None = None,
    event: int | None = None,
    **more: Any,
) -> Look:
    """Find the window to show.

    Args:
        store: An open store.
        run: Run to show; default: the first run, or that of the finding.
        ranks: Ranks to show; default: the first rank of the run, or that of the finding.
        steps: Profiler steps to show; default: all.
        iterations: Iterations of a serving engine to show, by their number in the analysis
            ``iterations``; default: all.
        finding: ``finding_id`` or ``rule`` of a row of the analysis ``advice``.
        event: ``event_id`` of an event of the rank.
        **more: ``categories``, ``align``, ``critical_path``, ``counters`` of
            :class:`hta_sql.overlay.slices.Wanted`.

    Raises:
        RankError: The run or rank does not exist.
        ParameterError: The finding, event, step or iteration does not exist, or the arguments
            exclude each other: a finding and an event, or steps and iterations.
    """
    if steps and iterations:
        raise ParameterError("Steps and iterations both select a window; pass only one of them.")
    if finding is not None:
        if event is not None:
            raise ParameterError("A finding already selects an event; pass only one of them.")
        row = _finding(store, finding, run, ranks)
        run, ranks, event = row["run"], [row["rank"]], row["event_id"]
    if run is None:
        run = store.runs()[0]
    elif run not in store.runs():
        raise RankError(f"No run {run!r}; available: {', '.join(store.runs())}.")
    known = store.ranks(run)
    chosen = tuple(ranks) if ranks else (known[0],)
    if unknown := sorted(set(chosen) - set(known)):
        raise RankError(f"No rank {unknown[0]} in run {run!r}; available ranks: {known}.")
    look = Look(Wanted(run, chosen, **more), f"{run}, {_listed('rank', chosen)}")
    if steps:
        look = _steps(store, look, steps)
    if iterations:
        look = _iterations(store, look, iterations)
    return look if event is None else _event(store, look, event)


def _finding(
    store: TraceStore, finding: str, run: str | None, ranks: Sequence[int] | None
) -> dict[str, Any]:
    scope: dict[str, Any] = {"runs": [run] if run else None}
    scope["ranks"] = list(ranks) if ranks else None
    rows = store.run("advice", **scope).records()
    found = [row for row in rows if finding in (row["finding_id"], row["rule"])]
    if not found:
        names = sorted({row["rule"] for row in rows})
        there = f" Available: {', '.join(names)}." if names else " There are no recommendations."
        raise ParameterError(f"No finding {finding!r}.{nearest(finding, names)}{there}")
    return next((row for row in found if row["is_worst"]), found[0])


def _steps(store: TraceStore, look: Look, steps: Sequence[int]) -> Look:
    values = {"run": look.wanted.run, "ranks": list(look.wanted.ranks), "steps": list(steps)}
    ((start, until),) = store.sql(query_sql("events", "window_of_steps"), values).rows()
    if start is None:
        scope: dict[str, Any] = {"runs": [look.wanted.run], "ranks": list(look.wanted.ranks)}
        rows = store.run("profiler_steps", **scope).records()
        known = sorted({row["step"] for row in rows})
        there = (
            f"available steps: {rank_spans(known)}"
            if known
            else "the traces have no profiler steps"
        )
        raise ParameterError(f"No {_listed('step', tuple(steps))}; {there}.")
    return _windowed(look, (start, until), _listed("step", tuple(steps)))


def _iterations(store: TraceStore, look: Look, iterations: Sequence[int]) -> Look:
    scope: dict[str, Any] = {"runs": [look.wanted.run], "ranks": list(look.wanted.ranks)}
    rows = store.run("iterations", **scope).records()
    named = _listed("iteration", tuple(iterations))
    spans = [_span(row) for row in rows if row["iteration"] in iterations]
    if not spans:
        last = max((row["iteration"] for row in rows), default=0)
        there = (
            f"available: 1 to {last}"
            if last
            else "the traces have no iterations of a serving engine"
        )
        raise ParameterError(f"No {named}; {there}.")
    starts, ends = zip(*spans, strict=True)
    return _windowed(look, (min(starts), max(ends)), named)


def _span(row: dict[str, Any]) -> tuple[int, int]:
    """Return start and end of an iteration; its device part usually ends after its host part."""
    start, until = row["ts"], row["ts"] + row["host_ns"]
    if row["device_ts"] is None:
        return start, until
    device_end = row["device_ts"] + row["device_ns"] + row["unrecorded_ns"]
    return min(start, row["device_ts"]), max(until, device_end)


def _windowed(look: Look, window: tuple[int, int], named: str) -> Look:
    """Return a look that is limited to a time window."""
    title = f"{look.title}, {named}"
    return replace(look, wanted=replace(look.wanted, window=window), title=title, zoom=window)


def _event(store: TraceStore, look: Look, event_id: int) -> Look:
    run, (rank, *others) = look.wanted.run, look.wanted.ranks
    if others:
        raise ParameterError("Event ids are unique within a rank only; pass the rank.")
    rows = store.sql(
        query_sql("events", "one"), {"run": run, "rank": rank, "event_id": event_id}
    ).rows()
    if not rows:
        raise ParameterError(
            f"Rank {rank} of run {run!r} has no event {event_id} with a start time."
        )
    ((name, ts, dur, pid, tid),) = rows
    pad = max(_AROUND * MS, _AROUND * dur)
    wanted = look.wanted
    if wanted.window is None:
        wanted = replace(wanted, window=(ts - pad, ts + dur + pad))
    near = max(dur, MS // 10)
    where = {"pid": pid, "tid": tid}
    selected = {"ts": ts, "dur": dur} | {key: at for key, at in where.items() if at is not None}
    title = f"{look.title}, {cut_middle(name, _NAME)}"
    return replace(
        look, wanted=wanted, title=title, zoom=(ts - near, ts + dur + near), event=selected
    )


def _listed(what: str, numbers: tuple[int, ...]) -> str:
    plural = "s" if len(numbers) > 1 else ""
    return f"{what}{plural} {', '.join(map(str, numbers))}"
