"""Collectives across the ranks of the public jobs match a brute-force computation."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

import pytest

from hta_sql import TraceStore
from tests.parity.jobs import JOBS

MATCHED = {
    "ascend_level0_2rank": {("stream", True): 8},
    "dlrm_8rank_v100": {("stream", True): 64},
    "hta_trace_filter": {("stream", True): 20},
    "lightllm_decode_8rank_h200": {("stream", True): 928},
    "megatron_tp2_v100": {("ordinal", True): 26},
    "nanogpt_8rank_h100": {("ordinal", True): 608, ("ordinal", False): 29},
    "torchrec_a2a_5_qcomm_run0": {("stream", True): 120, ("stream", False): 3},
    "torchrec_a2a_5_run0": {("stream", True): 120, ("stream", False): 6},
}
"""Multi-rank job ─▶ number of communication kernels, by match method and completeness."""

ONE_GROUP = (
    *("ascend_level0_2rank", "dlrm_8rank_v100", "megatron_tp2_v100", "nanogpt_8rank_h100"),
    *("torchrec_a2a_5_qcomm_run0", "torchrec_a2a_5_run0"),
)
"""Jobs with a single group, whose kernels can be matched by time alone."""


def kernels(store: TraceStore, job: str) -> dict[int, list[tuple[int, int, int]]]:
    """Return rank ─▶ event id, start and end of its communication kernels in order."""
    rows = store.sql(
        "SELECT rank, event_id, ts, ts + dur FROM gpu_ops WHERE run = $run "
        "AND class = 'communication' AND NOT is_suspect ORDER BY rank, ts, event_id",
        {"run": job},
    ).rows()
    found = defaultdict(list)
    for rank, event, start, end in rows:
        found[rank].append((event, start, end))
    return found


@pytest.mark.parametrize("job", JOBS)
def test_every_communication_kernel_is_there(job: str, jobs_store: TraceStore) -> None:
    """Each communication kernel and each gloo operation has one row with its match method."""
    found = jobs_store.run("collectives", runs=[job], include_last_profiler_step=True).arrow()
    rows = found.to_pylist()
    wanted = {(rank, e) for rank, listed in kernels(jobs_store, job).items() for e, _, _ in listed}
    wanted |= set(
        jobs_store.sql(
            "SELECT rank, event_id FROM annotations WHERE run = $run AND name LIKE 'gloo:%'",
            {"run": job},
        ).rows()
    )
    assert len(rows) == len(wanted)
    assert {(row["rank"], row["event_id"]) for row in rows} == wanted
    assert all(row["collective"] for row in rows)
    methods: dict[tuple[str, bool], int] = defaultdict(int)
    for row in rows:
        on_all = row["found_count"] == row["rank_count"] > 1
        methods[row["match_method"], on_all] += 1
    if job in MATCHED:
        assert methods == MATCHED[job]
    else:
        # The job has only one rank, or none that communicates.
        assert methods.keys() <= {("none", False)}


def test_the_ranks_of_the_public_jobs_run_the_same_collectives(jobs_store: TraceStore) -> None:
    """No public job has ranks that run different collectives."""
    assert jobs_store.run("collective_mismatches").rows() == []


@pytest.mark.parametrize("job", ONE_GROUP)
def test_waits_are_those_of_a_brute_force(job: str, jobs_store: TraceStore) -> None:
    """Waits equal a brute-force computation that shifts each rank's kernels to the best fit."""
    ranks = kernels(jobs_store, job)
    reference = max(ranks, key=lambda rank: (len(ranks[rank]), -rank))
    together: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for rank, listed in ranks.items():
        shift = best_shift(listed, ranks[reference])
        for place, (event, start, _) in enumerate(listed):
            together[place + shift].append((rank, event, start))
    waits = {
        (rank, event): max(other for _, _, other in parts) - start
        for parts in together.values()
        if len(parts) == len(ranks)
        for rank, event, start in parts
    }
    rows = jobs_store.run(
        "collective_waits",
        runs=[job],
        include_last_profiler_step=True,
        include_unsure=True,
        correct_clocks=False,
    ).arrow()
    found = {
        (row["rank"], row["event_id"]): row["wait_ns"]
        for row in rows.to_pylist()
        # A rank that left before the last rank arrived waited for its whole kernel.
        if row["is_complete"] and not row["ended_before_last_start"]
    }
    assert len(found) > 0.8 * len(waits)
    assert found == {key: waits[key] for key in found}


def best_shift(listed: list[tuple[int, int, int]], reference: list[tuple[int, int, int]]) -> int:
    """Try every shift that preserves at least half of the overlap; return the best one."""
    tried = {}
    for shift in range(-len(listed) // 2, len(reference) - len(listed) // 2 + 1):
        pairs = [
            (end, reference[place + shift][2])
            for place, (_, _, end) in enumerate(listed)
            if 0 <= place + shift < len(reference)
        ]
        if 2 * len(pairs) >= len(listed):
            tried[shift] = median(abs(end - other) for end, other in pairs)
    return min(tried, key=lambda shift: (tried[shift], abs(shift)))


@pytest.mark.parametrize("job", JOBS)
def test_the_parts_of_steps_are_those_of_a_brute_force(job: str, jobs_store: TraceStore) -> None:
    """The parts of each step equal those of a brute-force sweep and sum to the step."""
    rows = jobs_store.run("step_accounting", runs=[job], include_last_profiler_step=True).arrow()
    found = {(row["rank"], row["step"]): row for row in rows.to_pylist()}
    assert found
    names = (
        *("compute_ns", "exposed_transfer_ns", "exposed_unmatched_ns"),
        *("exposed_wait_ns", "exposed_memory_ns"),
    )
    idle = ("idle_before_ns", "idle_between_ns", "idle_after_ns")
    for row in found.values():
        assert sum(row[name] for name in (*names, *idle)) == row["step_ns"]
        assert min(row[name] for name in (*names, *idle)) >= 0
    rank = min(rank for rank, _ in found)
    steps = jobs_store.sql(
        "SELECT step, ts, ts + dur FROM steps WHERE run = $run AND rank = $rank",
        {"run": job, "rank": rank},
    ).rows()
    steps = (
        steps
        or jobs_store.sql(
            "SELECT NULL, offset_ns, offset_ns + dur FROM ranks WHERE run = $run AND rank = $rank",
            {"run": job, "rank": rank},
        ).rows()
    )
    pieces = pieces_of(jobs_store, job, rank)
    for step, start, end in steps:
        parts = account(pieces, start, end)
        assert [found[rank, step][name] for name in (*names, *idle)] == parts


def pieces_of(store: TraceStore, job: str, rank: int) -> list[tuple[int, int, int]]:
    """Return start, end and part index of each piece of device activity."""
    of = {"run": job, "rank": rank}
    classes = {"computation": 0, "memory": 4}
    ops = store.sql(
        "SELECT ts, ts + dur, class FROM gpu_ops WHERE run = $run AND rank = $rank "
        "AND class IN ('computation', 'memory') AND NOT is_suspect AND dur > 0",
        of,
    ).rows()
    waits = store.sql(
        "SELECT ts, ts + dur, found_count > 1 AND (end_times_match OR is_p2p OR on_host), coalesce(wait_ns, 0) "
        "FROM matched_collectives "
        "WHERE run = $run AND rank = $rank",
        of,
    ).rows()
    pieces = [(start, end, classes[kind]) for start, end, kind in ops]
    pieces += [(start, end, 2) for start, end, is_known, _ in waits if not is_known]
    pieces += [(start + wait, end, 1) for start, end, is_known, wait in waits if is_known]
    pieces += [(start, start + wait, 3) for start, _, is_known, wait in waits if is_known]
    return [piece for piece in pieces if piece[0] < piece[1]]


def account(pieces: list[tuple[int, int, int]], start: int, end: int) -> list[int]:
    """Divide a step into its parts by sweeping over all starts and ends."""
    inside = [(max(a, start), min(b, end), p) for a, b, p in pieces if a < end and b > start]
    changes = sorted(
        [(a, 1, part) for a, _, part in inside] + [(b, -1, part) for _, b, part in inside]
    )
    parts = [0] * 5
    if not inside:
        return [*parts, end - start, 0, 0]
    running = [0] * 5
    busy = 0
    before = changes[0][0]
    for at, change, part in changes:
        first = next((p for p in range(5) if running[p]), None)
        if first is not None:
            parts[first] += at - before
            busy += at - before
        running[part] += change
        before = at
    first_busy, last_busy = changes[0][0], changes[-1][0]
    return [*parts, first_busy - start, last_busy - first_busy - busy, end - last_busy]
