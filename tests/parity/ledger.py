"""The ledger of differences from HTA, and docs/hta_parity.md, which is generated from it."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from dataclasses import asdict, fields
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

Made by `python -m tests.parity.hta_comparison` from `tests/parity/known_differences.csv`; the tests hold that it is current. [hta_differences.md](hta_differences.md) explains the causes (Q6, gap0, ...) and says which of the two is right.

- **equal**: every cell, to half a nanosecond or to the digit that HTA rounds to.
- **Q6, gap0, ...**: the causes of all cells that differ; all others are equal.
- **answered**: HTA crashes, or cannot load the trace (a bare JSON list), and hta_sql returns a result.
- **none: ...**: neither has a row, because the trace has nothing of the kind. The tests count it.
"""


def read_ledger(path: Path = KNOWN) -> list[Line]:
    """Read the lines of the ledger."""
    with path.open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    return [
        Line(job, frame, column, kind, int(cells), digest, causes, example)
        for job, frame, column, kind, cells, digest, causes, example in rows
    ]


def write_ledger(lines: list[Line], path: Path = KNOWN) -> None:
    """Write the ledger; lines that already exist keep their causes."""
    causes = {line.key: line.causes for line in read_ledger(path)} if path.exists() else {}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)], lineterminator="\n")
        writer.writeheader()
        for line in lines:
            writer.writerow(asdict(line) | {"causes": causes.get(line.key, line.causes)})


def document(lines: list[Line]) -> str:
    """Return docs/hta_parity.md, which has a row for each job and a column for each analysis."""
    cells: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        cells[line.job, line.frame].append(line)
    jobs = [job for job in dict.fromkeys(line.job for line in lines) if job not in PAIRS]
    parts = [HEAD, _figures(cells, jobs)]
    for title, analyses in TABLES.items():
        parts += [f"## {title}\n", _table("public trace", jobs, analyses, cells)]
    parts += ["## Two traces compared: TraceDiff\n", _table("pair", list(PAIRS), PAIR_TABLE, cells)]
    return "\n".join(parts)


def _table(
    corner: str,
    jobs: list[str],
    analyses: dict[str, tuple[str, ...]],
    cells: dict[tuple[str, str], list[Line]],
) -> str:
    rows = [[corner, *analyses], ["---"] * (1 + len(analyses))]
    rows += [[job, *(verdict(job, frames, cells) for frames in analyses.values())] for job in jobs]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _figures(cells: dict[tuple[str, str], list[Line]], jobs: list[str]) -> str:
    said = Counter(
        verdict(job, frames, cells).split(":")[0]
        for job in jobs
        for analyses in TABLES.values()
        for frames in analyses.values()
    )
    named = {word: said[word] for word in ("equal", "answered", "none")}
    differing = sum(said.values()) - sum(named.values())
    return (
        f"{sum(said.values())} cells: {named['equal']} equal, {differing} differ by a known cause, "
        f"{named['answered']} answered where HTA crashes, {named['none']} without anything of the "
        "kind.\n"
    )


def verdict(job: str, frames: tuple[str, ...], cells: dict[tuple[str, str], list[Line]]) -> str:
    """Return the text of a cell in the table."""
    lines = [line for frame in frames for line in cells[job, frame]]
    kinds = {line.kind for line in lines}
    reasons = sorted({line.digest for line in lines if line.kind in WITHOUT and line.digest})
    if "hta_crash" in kinds:
        return f"none: {', '.join(reasons)}" if reasons else "answered"
    if "none" in kinds:
        return f"none: {', '.join(reasons)}"
    causes = sorted({cause for line in lines for cause in line.causes.split()})
    return ", ".join(causes) or "equal"


WITHOUT = {"none", "hta_crash"}
"""Kinds of lines whose digest is a reason."""
