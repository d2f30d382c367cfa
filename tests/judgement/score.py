"""Score verdicts and what-if answers on newly drawn jobs.

Run as a program: ``python -m tests.judgement.score KIND... --jobs 20``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from hta_sql.store.query.trace_store import TraceStore
from tests.judgement.job import SlowLink
from tests.judgement.kinds import KINDS, planted
from tests.judgement.kineto import ingested
from tests.judgement.truth import Truth

FAULT_SCENARIOS = {"no straggler": ("no straggler", "no late rank")}
POINTS, SHARE = 1.0, 0.1
"""Tolerance for a saving: one percentage point or a tenth of the true saving."""


@dataclass
class Answer:
    """The answers of the analyses for a job.

    Attributes:
        verdicts: Rank ─▶ verdict.
        causes: Rank ─▶ cause.
        saved_pct: Scenario ─▶ saving as a share of the capture [%].
        bounds: Scenario ─▶ upper, lower, estimate or None.
        links: Ranks of each slow link, with the rank or host that all slow links have in common.
    """

    verdicts: dict[int, str]
    causes: dict[int, str | None]
    saved_pct: dict[str, float | None]
    bounds: dict[str, str | None]
    links: list[tuple[list[int], int | None, str | None]]


@dataclass
class Tally:
    """Counts of correct answers for a kind of job, and errors of savings in percentage points."""

    counts: Counter[str] = field(default_factory=Counter)
    errors: dict[str, list[float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def ask(store: TraceStore) -> Answer:
    """Run the analyses on a store and collect their answers."""
    rows = store.run("stragglers").arrow().to_pylist()
    verdicts = {row["rank"]: _verdict(row) for row in rows}
    causes = {row["rank"]: row["cause"] for row in rows}
    answers = store.run("what_if").arrow().to_pylist()
    slow = store.run("slow_links").arrow().to_pylist()
    links = [(json.loads(r["link_ranks"]), r["common_rank"], r["common_host"]) for r in slow]
    saved = {row["scenario"]: row["saved_pct"] for row in answers}
    bounds = {row["scenario"]: row["bound"] for row in answers}
    return Answer(verdicts, causes, saved, bounds, links)


def is_found(link: SlowLink, answer: Answer) -> bool:
    """Return whether the answer identifies a slow link by its pair, rank or host."""
    if "slower transfer" not in answer.causes.values():
        return False
    if link.pair is not None:
        return {tuple(ranks) for ranks, _, _ in answer.links} == {tuple(sorted(link.pair))}
    if link.rank is not None:
        return all(rank == link.rank for _, rank, _ in answer.links)
    return all(host == f"node-{link.host}" for _, _, host in answer.links)


def _verdict(row: dict[str, object]) -> str:
    if "verdict" in row:
        return str(row["verdict"])
    named = row["is_straggler"]
    return "unknown" if named is None else "straggler" if named else "none"


def judge(truth: Truth, answer: Answer, tally: Tally, label: str) -> None:
    """Compare the answers for a job with the truth, and count the correct ones."""
    counts, verdicts = tally.counts, answer.verdicts
    counts["jobs"] += 1
    named = {r: v for r, v in verdicts.items() if v in {"straggler", "intermittent", "suspected"}}
    if truth.slow_links:
        named = {r: v for r, v in named.items() if answer.causes.get(r) != "slower transfer"}
    accused = {r for r, v in named.items() if v != "suspected" and r not in truth.late}
    found = {r for r, v in named.items() if r in truth.late and v in truth.late[r]}
    unknown = "unknown" in verdicts.values()
    links = all(is_found(link, answer) for link in truth.slow_links)
    is_right = named.keys() == found == truth.late.keys() and links and not unknown
    is_right = is_right or (not truth.is_decidable and not accused)
    causes = all(answer.causes.get(rank) in truth.causes[rank] for rank in truth.late)
    counts["verdict"] += is_right
    counts["cause"] += is_right and causes
    counts["accused"] += bool(accused)
    counts["suspected"] += any(named.get(rank) == "suspected" for rank in truth.late)
    counts["unknown"] += unknown
    if not (is_right and causes):
        said = {r: (v, answer.causes.get(r)) for r, v in verdicts.items() if v != "none"}
        planted_links = f", links {truth.slow_links}: {answer.links}" if truth.slow_links else ""
        tally.notes.append(f"{label}: {truth.late} {truth.causes}, said {said}{planted_links}")
    for scenario, right in truth.saved_pct.items():
        names = FAULT_SCENARIOS.get(scenario, (scenario,))
        name = next((name for name in names if name in answer.saved_pct), scenario)
        percent, bound = answer.saved_pct.get(name), answer.bounds.get(name)
        counts[f"{scenario} of"] += 1
        if percent is None:
            tally.notes.append(f"{label}: {scenario} {right:.1f} %, no answer")
            continue
        error, tolerance = percent - right, max(POINTS, SHARE * abs(right))
        tally.errors.setdefault(scenario, []).append(abs(error))
        counts[scenario] += abs(error) <= tolerance
        counts["false bound"] += {"lower": error, "upper": -error}.get(bound or "", 0) > tolerance
        if abs(error) > tolerance:
            tally.notes.append(f"{label}: {scenario} {right:.1f} %, said {percent:.1f} % ({bound})")
    counts["negative"] += any(v is not None and v < 0 for v in answer.saved_pct.values())


def score(kind: str, jobs: int, seed: int) -> Tally:
    """Draw jobs of a kind, ingest them, and count the correct answers."""
    tally = Tally()
    for number in range(seed, seed + jobs):
        job, machine, truth = planted(kind, number)
        with (
            tempfile.TemporaryDirectory() as folder,
            ingested(Path(folder), job, machine) as store,
        ):
            judge(truth, ask(store), tally, f"{kind}/{number}")
    return tally


SCENARIOS = ("no straggler", "no transfer", "link at peers' speed")


def row(kind: str, tally: Tally) -> str:
    """Format the counts of a kind as a line."""
    c = tally.counts
    cells = [f"{c[name]:4d}" for name in ("jobs", "verdict", "cause", "accused", "suspected")]
    cells += [f"{c[name]:4d}" for name in ("unknown", "negative", "false bound")]
    for name in SCENARIOS:
        errors = sorted(tally.errors.get(name, [0.0]))
        cells.append(
            f"{c[name]:3d}/{c[f'{name} of']:<3d} {errors[int(0.9 * (len(errors) - 1))]:5.2f}"
        )
    return f"{kind:24}" + "  ".join(cells)


def main() -> None:
    """Print a line for each kind, and with ``--notes`` also the wrong answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="all kinds if none is given")
    parser.add_argument("--jobs", type=int, default=20, help="jobs of each kind")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first job")
    parser.add_argument("--notes", action="store_true", help="print what was wrong")
    chosen = parser.parse_args()
    names = ("jobs", "verd", "caus", "accu", "susp", "unkn", "negative", "false bound")
    head = "  ".join(names) + "  " + "  ".join(f"{name}: right, p90 points" for name in SCENARIOS)
    sys.stdout.write(f"{'kind':24}{head}\n")
    start, total = time.perf_counter(), Counter[str]()
    for kind in chosen.kinds or KINDS:
        tally = score(kind, chosen.jobs, chosen.seed)
        total += tally.counts
        sys.stdout.write(f"{row(kind, tally)}\n")
        if chosen.notes:
            sys.stdout.write("".join(f"    {note}\n" for note in tally.notes))
        sys.stdout.flush()
    sys.stdout.write(f"{row('all', Tally(total))}\n{time.perf_counter() - start:.0f} s\n")


if __name__ == "__main__":
    main()
