"""The ledger of differences from HTA, a rule for each frame of a job, and docs/hta_parity.md."""

from __future__ import annotations

import csv
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from tests.parity.comparison import Line
from tests.parity.pairs import PAIR_FRAMES, PAIRS

KNOWN = Path(__file__).parent / "known_differences.csv"
DOCS = Path(__file__).resolve().parents[2] / "docs"
MATRIX = DOCS / "hta_parity.md"
CAUSES = DOCS / "hta_differences.md"

_PATH = ("length", "summary", "breakdown")

TABLES: dict[str, dict[str, tuple[str, ...]]] = {
    "Time": {
        "temporal breakdown": ("temporal_breakdown",),
        "temporal breakdown, last step too": ("incl_last_temporal_breakdown",),
        "idle time breakdown": ("idle_time_breakdown",),
        "idle interval stats": ("idle_time_interval_stats",),
        "comm comp overlap": ("comm_comp_overlap",),
        "profiler steps": ("profiler_steps",),
        "potential stragglers": ("potential_stragglers",),
    },
    "Kernels and operators": {
        "kernel breakdown: types": ("gpu_kernel_breakdown_all_types",),
        "kernel breakdown: kernels": ("gpu_kernel_breakdown_all_kernels",),
        "cuda kernel launch stats": ("cuda_kernel_launch_stats",),
        "aten op kernels and delay": ("aten_op_kernels_and_delay",),
        "frequent cuda kernel sequences": ("frequent_cuda_kernel_sequences",),
        "cupti counters": ("cupti_counters",),
    },
    "Annotations": {
        "gpu user annotation breakdown": ("gpu_user_annotation_breakdown",),
        "cpu user annotation breakdown": ("cpu_user_annotation_breakdown",),
        "gpu kernels with user annotations": ("gpu_kernels_with_user_annotations",),
    },
    "Queues and copies": {
        "queue length summary": ("queue_length_summary",),
        "queue length time series": ("queue_length_time_series",),
        **{
            f"blocked on full queue, {length}": (f"time_spent_blocked_on_full_queue_{length}",)
            for length in (1024, 100, 4)
        },
        "memory bw summary": ("memory_bw_summary",),
        "memory bw time series": ("memory_bw_time_series",),
    },
    "Critical path": {
        words: tuple(f"critical_path_{window}_{part}" for part in _PATH)
        for window, words in {
            "step0": "first profiler step",
            "step1": "second profiler step",
            "full": "whole trace",
        }.items()
    },
}
"""Title ─▶ columns of a table in the document, each with the frames that it represents."""

PAIR_TABLE: dict[str, tuple[str, ...]] = {
    frame.removeprefix("trace_diff_").replace("_", " "): (frame,) for frame in PAIR_FRAMES
}

HEAD = """# Every analysis of HTA on every public trace

Made by `python -m tests.parity.hta_comparison`; the tests hold that it is current. [hta_differences.md](hta_differences.md) explains the causes (Q6, gap0, ...) and says which of the two is right.

- **equal**: every cell, to half a nanosecond or to the digit that HTA rounds to.
- **Q6, gap0, ...**: the causes of all cells that differ; all others are equal.
- **answered**: HTA crashes, or cannot load the trace (a bare JSON list), and hta_sql returns a result.
- **none: ...**: neither has a row, because the trace has nothing of the kind. The tests count it.
"""


@dataclass(frozen=True)
class Rule:
    """A frame of a job differs from HTA's, for these causes, in exactly these cells.

    The frame :data:`EQUAL` counts the equal cells of all frames of a job. The digest covers the
    cells and both values, or the count of each frame, also of frames for which HTA crashed.
    """

    job: str
    frame: str
    causes: str
    cells: int
    digest: str


EQUAL = "(equal)"


def read_ledger(path: Path = KNOWN) -> list[Rule]:
    """Read the rules of a ledger."""
    with path.open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    return [
        Rule(job, frame, causes, int(cells), digest) for job, frame, causes, cells, digest in rows
    ]


def rules_of(lines: Iterable[Line], known: Iterable[Rule] = ()) -> list[Rule]:
    """Return the rules that describe lines; causes are those of known rules, otherwise ``?``."""
    causes = {(rule.job, rule.frame): rule.causes for rule in known}
    equal: dict[str, list[str]] = defaultdict(list)
    counts: Counter[str] = Counter()
    cells: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in lines:
        if not line.differing:
            equal[line.job].append(f"{line.frame} {line.kind} {line.cells}")
            counts[line.job] += line.cells * (line.kind == "equal")
        for cell in line.differing:
            cells[line.job, line.frame].append(f"{line.column} {line.kind} {cell}")
    found = [Rule(job, EQUAL, "", counts[job], _digest(of_job)) for job, of_job in equal.items()]
    return found + [
        Rule(*key, causes.get(key, "?"), len(texts), _digest(texts)) for key, texts in cells.items()
    ]


def unlisted(lines: list[Line], known: list[Rule]) -> list[str]:
    """Return a text for each rule of a job's lines that is not in a ledger, and the reverse."""
    jobs = {line.job for line in lines}
    listed = {rule for rule in known if rule.job in jobs}
    found = set(rules_of(lines, known))
    cells = {
        rule: [cell for line in lines if line.frame == rule.frame for cell in line.differing][:5]
        for rule in found
    }
    return [f"found: {rule} {cells[rule]}" for rule in found - listed] + [
        f"listed: {rule}" for rule in listed - found
    ]


def write_ledger(lines: list[Line], path: Path = KNOWN) -> None:
    """Write the rules of lines; rules that already exist keep their causes."""
    rules = rules_of(lines, read_ledger(path) if path.exists() else ())
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Rule)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, sorted(rules, key=lambda rule: (rule.job, rule.frame))))


def document(lines: list[Line], rules: list[Rule]) -> str:
    """Return docs/hta_parity.md, which has a row for each job and a column for each analysis."""
    jobs = [job for job in dict.fromkeys(line.job for line in lines) if job not in PAIRS]
    rows = {job: rows_of([line for line in lines if line.job == job], rules) for job in jobs}
    parts = [HEAD, _figures([row for of_job in rows.values() for row in of_job])]
    for place, (title, analyses) in enumerate(TABLES.items()):
        body = [rows[job][place] for job in jobs]
        parts += [f"## {title}\n", _table([["public trace", *analyses], *body])]
    pairs = [rows_of([line for line in lines if line.job == pair], rules)[0] for pair in PAIRS]
    parts += ["## Two traces compared: TraceDiff\n", _table([["pair", *PAIR_TABLE], *pairs])]
    return "\n".join(parts)


def rows_of(lines: list[Line], rules: list[Rule]) -> list[list[str]]:
    """Return the row of a job in each table, or the row of a pair."""
    job = lines[0].job
    tables = [PAIR_TABLE] if job in PAIRS else list(TABLES.values())
    return [
        [job, *(_verdict(job, frames, lines, rules) for frames in analyses.values())]
        for analyses in tables
    ]


def documented(text: str) -> dict[str, list[list[str]]]:
    """Return job or pair ─▶ its rows in the tables of a document."""
    found: dict[str, list[list[str]]] = defaultdict(list)
    for line in text.splitlines():
        if line.startswith("| ") and not line.startswith(("| ---", "| public trace", "| pair |")):
            job, *cells = line.strip("| ").split(" | ")
            found[job].append([job, *cells])
    return found


def _table(rows: list[list[str]]) -> str:
    head, *body = rows
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *body))


def _figures(rows: list[list[str]]) -> str:
    said = Counter(cell.split(":")[0] for _, *cells in rows for cell in cells)
    named = {word: said[word] for word in ("equal", "answered", "none")}
    differing = sum(said.values()) - sum(named.values())
    return (
        f"{sum(said.values())} cells: {named['equal']} equal, {differing} differ by a known cause, "
        f"{named['answered']} answered where HTA crashes, {named['none']} without anything of the "
        "kind.\n"
    )


def causes_of(job: str, frames: Iterable[str], rules: list[Rule]) -> str:
    """Return the text of the causes that rules list for some frames of a job."""
    listed = [rule.causes for rule in rules if rule.job == job and rule.frame in frames]
    return ", ".join(sorted({cause for causes in listed for cause in causes.split()}))


def _verdict(job: str, frames: tuple[str, ...], lines: list[Line], rules: list[Rule]) -> str:
    chosen = [line for line in lines if line.frame in frames]
    kinds = {line.kind for line in chosen}
    reasons = sorted({line.reason for line in chosen if line.reason})
    if "hta_crash" in kinds and not reasons:
        return "answered"
    if kinds & {"hta_crash", "none"}:
        return f"none: {', '.join(reasons)}"
    return causes_of(job, frames, rules) or "equal"


def _digest(texts: list[str]) -> str:
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()[:8]
