"""In planted jobs, group costs, traffic between ranks and links match the simulator."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import pytest

from hta_sql.authoring.golden_messages import render
from tests.jobs.conftest import Jobs
from tests.jobs.kinds import KINDS
from tests.jobs.simulator import ELEMENTS
from tests.jobs.traces import ROW, Trace, tokens_received, tokens_sent

FLOAT = 4
NANOSECONDS = 2_000


def asked(jobs: Jobs, call: str, run: str, **options: Any) -> list[dict[str, Any]]:
    """Return the rows of an analysis, including the last step."""
    given = {"runs": [run], "include_last_profiler_step": True} | options
    text = ", ".join(f"{name} := ${name}" for name in given)
    found = jobs.con.execute(f"FROM {call}({text})", given)
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def found_of(trace: Trace) -> list[Any]:
    """Return the rank's collectives that its trace has captured."""
    return [part for part in trace.did.collectives if part.event is not None]


@pytest.mark.parametrize("run", [run for run, job in KINDS.items() if job.metadata != "none"])
def test_groups_have_their_kind_and_their_collectives(jobs: Jobs, run: str) -> None:
    """Each group has the kind, ranks, collective count and bytes of the planted job."""
    _, traces = jobs.runs[run]
    rows = [row for row in asked(jobs, "process_group_costs_v1", run) if row["part"] == "group"]
    found = {(row["rank"], row["kind"]): row["collective_count"] for row in rows}
    wanted = Counter((trace.did.rank, part.kind) for trace in traces for part in found_of(trace))
    assert found == wanted
    for row in rows:
        if row["kind"] in ("tp", "dp"):
            (ranks,) = {
                part.group for part in found_of(traces[row["rank"]]) if part.kind == row["kind"]
            }
            assert row["pg_ranks"] == str(list(ranks)).replace(" ", "")
            assert row["bytes"] == row["collective_count"] * ELEMENTS * FLOAT


@pytest.mark.parametrize("run", KINDS)
def test_what_groups_expose_sums_to_what_the_steps_expose(jobs: Jobs, run: str) -> None:
    """The exposed times of all groups sum to the exposed time of the steps."""
    names = ("exposed_transfer_ns", "exposed_unmatched_ns", "exposed_wait_ns")
    wanted: dict[int, Counter[str]] = defaultdict(Counter)
    for row in asked(jobs, "step_accounting_v1", run):
        wanted[row["rank"]].update({name: row[name] for name in names})
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for row in asked(jobs, "process_group_costs_v1", run):
        found[row["rank"]].update({name: row[name] for name in names})
        parts = (*names, "exposed_shared_ns", "overlapped_ns")
        if row["part"] == "group":
            assert sum(row[name] for name in parts) == row["communication_ns"]
            assert min(row[name] for name in parts) >= 0
    assert found == wanted


@pytest.mark.parametrize("run", ["slower clocks, tp in dp", "noise, overlap", "experts"])
def test_what_a_group_exposes_alone_is_counted_instant_by_instant(jobs: Jobs, run: str) -> None:
    """The exposed time of each group equals a brute-force count over all intervals."""
    of = {"run": run}
    computing = jobs.con.execute(
        "SELECT ts, ts + dur FROM gpu_ops WHERE run = $run AND rank = 1 AND class = 'computation'",
        of,
    ).fetchall()
    parts = jobs.con.execute(
        "SELECT pg_name, ts, ts + wait_ns, ts + dur FROM matched_collectives "
        "WHERE run = $run AND rank = 1",
        of,
    ).fetchall()
    steps = jobs.con.execute(
        "SELECT ts, ts + dur FROM steps WHERE run = $run AND rank = 1", of
    ).fetchall()
    bounds = sorted(
        {at for row in (*computing, *steps) for at in row} | {t for p in parts for t in p[1:]}
    )
    wanted: Counter[tuple[str | None, str]] = Counter()
    for at, until in pairwise(bounds):
        inside = sum(start <= at < end for start, end in steps)
        running = [part for part in parts if part[1] <= at < part[3]]
        if not inside or not running or any(start <= at < end for start, end in computing):
            continue
        groups = {part[0] for part in running}
        kind = "transfer" if any(part[2] <= at for part in running) else "wait"
        wanted[groups.pop() if len(groups) == 1 else None, kind] += inside * (until - at)
    found: Counter[tuple[str | None, str]] = Counter()
    for row in asked(jobs, "process_group_costs_v1", run, ranks=[1]):
        for kind in ("transfer", "wait"):
            found[row["pg_name"], kind] += row[f"exposed_{kind}_ns"]
    assert +found == +wanted


@pytest.mark.parametrize("run", ["bound by devices", "bound by hosts", "experts", "late captures"])
def test_blocking_and_coincident_are_parts_of_what_is_exposed(jobs: Jobs, run: str) -> None:
    """Blocking, coincident and unknown time sum exactly to the exposed time."""
    wanted = {
        (row["rank"], row["pg_name"]): row["exposed_transfer_ns"]
        + row["exposed_unmatched_ns"]
        + row["exposed_wait_ns"]
        for row in asked(jobs, "process_group_costs_v1", run)
    }
    rows = asked(jobs, "blocking_communication_v1", run)
    assert {(row["rank"], row["pg_name"]): row["exposed_ns"] for row in rows} == {
        key: ns for key, ns in wanted.items() if ns
    }
    parts = ("exposed_blocking_ns", "exposed_coincident_ns", "exposed_unknown_ns")
    for row in rows:
        assert sum(row[part] for part in parts) == row["exposed_ns"]
        assert min(row[part] for part in parts) >= 0


def test_exposed_communication_blocks_where_devices_are_slow_and_not_where_hosts_are(
    jobs: Jobs,
) -> None:
    """Exposed communication is blocking if devices are slow, but not if hosts are slow."""
    shares = {
        run: [row["blocking_pct"] for row in asked(jobs, "blocking_communication_v1", run)]
        for run in ("bound by devices", "bound by hosts")
    }
    assert min(shares["bound by devices"]) > 90
    assert max(shares["bound by hosts"]) < 30


def test_a_layout_tells_kinds_where_descriptions_do_not(jobs: Jobs) -> None:
    """The parameter ``layout`` lists the kinds of groups, innermost dimension first."""
    rows = asked(jobs, "process_group_costs_v1", "noise, tp in dp", layout="x2, y=4")
    assert {(row["pg_desc"], row["kind"], row["kind_source"]) for row in rows} == {
        ("tp", "x", "layout"),
        ("dp", "y", "layout"),
    }


def test_a_layout_that_does_not_fit_tells_nothing(jobs: Jobs) -> None:
    """The kind of a group that does not fit the layout is taken from its description."""
    rows = asked(jobs, "process_group_costs_v1", "noise, tp in dp", layout="x2,y2")
    told = {(row["pg_desc"], row["pg_ranks"], row["kind"]) for row in rows}
    assert ("tp", "[0,1]", "x") in told
    assert ("tp", "[4,5]", "tp") in told
    assert ("dp", "[0,2,4,6]", "dp") in told


def test_pairs_send_what_the_simulator_sent(jobs: Jobs) -> None:
    """Traffic between ranks and expert load equal the planted token counts."""
    job, traces = jobs.runs["experts"]
    wanted: Counter[tuple[int, int]] = Counter()
    load: Counter[int] = Counter()
    for trace in traces:
        for part in found_of(trace):
            if part.kind == "ep":
                sent = tokens_sent(job, part)
                wanted.update({(part.rank, to): n for to, n in zip(part.group, sent, strict=True)})
                load[part.rank] += sum(sent if part.number % 2 else tokens_received(job, part))
    rows = asked(jobs, "all_to_all_traffic_v1", "experts")
    assert {(row["src_rank"], row["dst_rank"]): row["row_count"] for row in rows} == wanted
    assert all(row["bytes"] == row["row_count"] * ROW * FLOAT for row in rows)
    assert {row["kind"] for row in rows} == {"ep"}
    loads = {row["rank"]: row for row in asked(jobs, "expert_load_v1", "experts")}
    assert {rank: row["load_rows"] for rank, row in loads.items()} == load
    for group in {job.ep_group(rank) for rank in range(job.ranks)}:
        imbalance = max(load[rank] for rank in group) * len(group) / sum(load[r] for r in group)
        assert imbalance > 1.8
        for rank in group:
            assert loads[rank]["imbalance"] == pytest.approx(imbalance)
            assert loads[rank]["load_bytes"] == load[rank] * ROW * FLOAT


def test_cut_split_sizes_are_no_numbers(jobs: Jobs) -> None:
    """If split sizes are truncated, only totals are known, and traffic by pair is NULL."""
    rows = asked(jobs, "all_to_all_traffic_v1", "experts, cut splits")
    assert len(rows) == 16
    for row in rows:
        assert row["bytes"] is row["known_bytes"] is row["row_count"] is None
        assert row["reason"] == render("all_to_all_traffic.split_sizes_cut")
    whole = asked(jobs, "expert_load_v1", "experts, cut splits")
    assert all(row["load_bytes"] > 0 and row["load_rows"] is None for row in whole)


@pytest.mark.parametrize("run", ["pipeline", "slow pair"])
def test_links_move_what_the_simulator_moved(jobs: Jobs, run: str) -> None:
    """The number, bytes and times of the transfers on each link match the simulator."""
    parts = [part for part in jobs.collectives(run) if part.kind == "pp"]
    times: dict[tuple[int, int], list[int]] = defaultdict(list)
    for part in parts:
        if part.rank == part.group[0]:
            times[part.group[0], part.group[1]].append(part.transfer)
    rows = asked(jobs, "links_v1", run)
    assert {(row["src_rank"], row["dst_rank"]) for row in rows} == times.keys()
    for row in rows:
        took = sorted(times[row["src_rank"], row["dst_rank"]])
        assert row["transfer_count"] == row["timed_count"] == len(took)
        assert row["bytes"] == len(took) * ELEMENTS * FLOAT
        assert abs(row["transfer_ns"] - sum(took)) <= NANOSECONDS * len(took)
        assert abs(row["min_ns"] - took[0]) <= NANOSECONDS
        assert abs(row["max_ns"] - took[-1]) <= NANOSECONDS


def test_the_slow_link_and_no_other_is_named(jobs: Jobs) -> None:
    """Only the slow link is named, and in a job without a slow link none is."""
    slow = asked(jobs, "links_v1", "slow pair")
    assert {(row["src_rank"], row["dst_rank"]) for row in slow if row["is_slow"]} == {(2, 10)}
    assert {row["spans_hosts"] for row in slow} == {True}
    assert not any(row["is_slow"] for row in asked(jobs, "links_v1", "equal pairs"))


@pytest.mark.parametrize("run", ["slower clocks, tp in dp", "pipeline", "experts"])
def test_ranks_wait_and_communicate_as_the_simulator_says(jobs: Jobs, run: str) -> None:
    """The waits of each rank match the simulator; with transfers, they sum to its kernel time."""
    _, traces = jobs.runs[run]
    rows = {row["rank"]: row for row in asked(jobs, "communication_by_rank_v1", run)}
    for trace in traces:
        parts, row = found_of(trace), rows[trace.did.rank]
        assert row["collective_count"] == len(parts)
        assert abs(row["wait_ns"] - sum(part.wait for part in parts)) <= NANOSECONDS * len(parts)
        assert row["wait_ns"] + row["communication_ns"] == sum(p.end - p.start for p in parts)


@pytest.mark.parametrize(
    "call",
    [
        "process_group_costs_v1",
        "all_to_all_traffic_v1",
        "blocking_communication_v1",
        "expert_load_v1",
        "links_v1",
        "communication_by_rank_v1",
    ],
)
def test_groups_have_equal_rows_on_any_number_of_threads(jobs: Jobs, call: str) -> None:
    """The rows, including ratios, do not depend on the number of threads."""
    answers = []
    for threads in (1, 2, 5):
        jobs.con.execute(f"SET threads = {threads}")
        answers.append(jobs.con.execute(f"FROM {call}()").fetchall())
    assert answers[0]
    assert answers[0] == answers[1] == answers[2]
