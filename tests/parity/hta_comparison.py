"""Our HTA-shaped frames against HTA's own, cell by cell, and the ledger of what differs.

A cell is one value of one row of one frame; rows are matched by their key columns. The ledger
``known_differences.csv`` has lines per job, frame, column and kind, with the number of cells
and a digest of their keys: one cell more or less, or another one, changes a line.

After a deliberate change: ``python -m tests.parity.hta_comparison`` rewrites the ledger; new
lines get the cause ``?``, which a test refuses until somebody has found out who is right.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from hta_sql.trace_analysis import TraceAnalysis
from tests.parity.jobs import HTA, JOBS, ingest_jobs

KNOWN = Path(__file__).parent / "known_differences.csv"
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "hta_differences.md"
TABLE_START = "<!-- table: made by python -m tests.parity.hta_comparison -->"
TABLE_END = "<!-- end of table -->"

EVERYTHING = 1_000_000_000
FLOAT_US = 0.0005
"""HTA computes in float64 microseconds: half a nanosecond is its noise, not a difference."""

KEYS = {
    "temporal_breakdown": ["rank"],
    "incl_last_temporal_breakdown": ["rank"],
    "gpu_kernel_breakdown_all_types": ["kernel_type"],
    "gpu_kernel_breakdown_all_kernels": ["kernel_type", "name", "rank"],
    "idle_time_breakdown": ["rank", "stream", "idle_category"],
    "idle_time_interval_stats": ["rank", "stream", "idle_category"],
    "comm_comp_overlap": ["rank"],
    "cuda_kernel_launch_stats": ["rank", "correlation", "occurrence"],
    "gpu_user_annotation_breakdown": ["rank", "name"],
    "cpu_user_annotation_breakdown": ["rank", "name"],
    "gpu_kernels_with_user_annotations": ["rank", "index"],
    "aten_op_kernels_and_delay": ["rank", "aten_op_name", "kernel_sequence"],
    "frequent_cuda_kernel_sequences": ["rank", "operator_name", "pattern"],
}
FRAMES = list(KEYS)

COLUMNS = {
    "gpu_kernels_with_user_annotations": [
        *("index", "rank", "dur", "stream", "correlation", "s_name", "s_user_annotation")
    ],
}
"""Where the other columns are numbers of names, counted in the order of HTA's sets, or host links."""

SEQUENCES_OF = "aten::linear"
"""The operator of the frequent sequences, of any length."""

Frames = dict[str, pd.DataFrame]


@dataclass(frozen=True)
class Line:
    """Cells of one frame with the same fate.

    ``kind``: equal; value (both have the row, the values differ); hta_only and ours_only (rows
    that one of them has, column ``*``); hta_crash and hta_not_run (nothing to compare with).
    """

    job: str
    frame: str
    column: str
    kind: str
    cells: int
    digest: str
    causes: str
    example: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What identifies the line."""
        return self.job, self.frame, self.column, self.kind

    @property
    def fact(self) -> tuple[Any, ...]:
        """What has to stay as it is; the causes are words, the example is a help."""
        return (*self.key, self.cells, self.digest)


def our_frames(store: Path, job: str) -> Frames:
    """Call TraceAnalysis for each frame, as HTA was called for the expected ones."""
    with (
        TraceAnalysis(store=store, run=job) as analysis,
        TraceAnalysis(store=store, run=job, include_last_profiler_step=True) as everything,
    ):
        ranks = analysis.store.ranks(job)
        types, kernels = analysis.get_gpu_kernel_breakdown(num_kernels=EVERYTHING, duration_ratio=1)
        idle, stats = analysis.get_idle_time_breakdown(ranks=ranks, show_idle_interval_stats=True)
        launches = analysis.get_cuda_kernel_launch_stats(ranks=ranks)
        annotated = [analysis.get_gpu_kernels_with_user_annotations(rank) for rank in ranks]
        return {
            "gpu_user_annotation_breakdown": _rows(analysis.get_gpu_user_annotation_breakdown()),
            "cpu_user_annotation_breakdown": _rows(analysis.get_cpu_user_annotation_breakdown()),
            "gpu_kernels_with_user_annotations": _by_rank(dict(zip(ranks, annotated, strict=True))),
            "aten_op_kernels_and_delay": _by_rank(analysis.get_aten_op_kernels_and_delay(ranks)),
            "frequent_cuda_kernel_sequences": _by_rank(
                {
                    rank: analysis.get_frequent_cuda_kernel_sequences(SEQUENCES_OF, None, 1, rank)
                    for rank in ranks
                }
            ).assign(operator_name=SEQUENCES_OF),
            "temporal_breakdown": analysis.get_temporal_breakdown(),
            "incl_last_temporal_breakdown": everything.get_temporal_breakdown(),
            "gpu_kernel_breakdown_all_types": types,
            "gpu_kernel_breakdown_all_kernels": kernels,
            "idle_time_breakdown": idle,
            "idle_time_interval_stats": pd.DataFrame() if stats is None else stats.reset_index(),
            "comm_comp_overlap": analysis.get_comm_comp_overlap(),
            "cuda_kernel_launch_stats": _by_rank(launches),
        }


def _rows(frame: pd.DataFrame | None) -> pd.DataFrame:
    return pd.DataFrame() if frame is None else frame


def _by_rank(frames: Mapping[int, pd.DataFrame | None]) -> pd.DataFrame:
    found = [frame.assign(rank=rank) for rank, frame in frames.items() if frame is not None]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def hta_frame(job: str, frame: str) -> pd.DataFrame | None:
    """Read what HTA returned; empty where it returned None, None where it crashed."""
    path = HTA / job / f"{frame}.parquet"
    if not path.exists():
        nothing = path.with_suffix(".json")
        return (
            pd.DataFrame() if nothing.exists() and json.loads(nothing.read_text()) is None else None
        )
    table = pd.read_parquet(path).rename(columns={"_rank": "rank"})
    return table[COLUMNS.get(frame, [key for key in table.columns if key != "_idx0"])]


def lines_of_job(store: Path, job: str) -> list[Line]:
    """Compare all frames of a job; computes ours also where HTA crashed."""
    ours = our_frames(store, job)
    lines: list[Line] = []
    for frame in FRAMES:
        hta = hta_frame(job, frame)
        if hta is not None:
            lines += compare(job, frame, ours[frame], hta)
            continue
        kind = "hta_crash" if (HTA / job).exists() else "hta_not_run"
        lines.append(Line(job, frame, "*", kind, ours[frame].size, "", "", ""))
    return lines


def compare(job: str, frame: str, ours: pd.DataFrame, hta: pd.DataFrame) -> list[Line]:
    """Match the rows of two frames by key and compare all other cells."""
    left, right = _keyed(frame, ours), _keyed(frame, hta)
    both = left.index.intersection(right.index)
    columns = [column for column in right.columns if column in left.columns]
    lines: list[Line] = []
    for column in columns:
        a, b = left.loc[both, column], right.loc[both, column]
        if pd.api.types.is_numeric_dtype(b):
            a, b = a.astype(float), b.astype(float)
            same = ((a - b).abs() <= _tolerance(frame, column)) | (a.isna() & b.isna())
        else:
            same = a == b
        lines += _line((job, frame, column, "value"), both[~same.to_numpy()], (a, b))
    unequal = sum(line.cells for line in lines)
    lines += _line((job, frame, "*", "ours_only"), left.index.difference(right.index))
    lines += _line((job, frame, "*", "hta_only"), right.index.difference(left.index))
    equal = len(both) * len(columns) - unequal
    return [Line(job, frame, "*", "equal", equal, "", "", ""), *lines]


def _keyed(frame: str, table: pd.DataFrame) -> pd.DataFrame:
    keys = KEYS[frame]
    if table.empty:
        table = pd.DataFrame(columns=pd.Index(keys))
    if "occurrence" in keys:
        # A graph launch has one correlation and many kernels; their order is no part of the answer.
        table = table.sort_values(list(table.columns), kind="stable")
        table = table.assign(occurrence=table.groupby(keys[:-1]).cumcount())
    for key in keys:
        table = table.assign(**{key: table[key].astype(str)})
    keyed = table.set_index(keys)
    assert not keyed.index.has_duplicates, f"{frame}: {keys} do not identify a row"
    return keyed


def _tolerance(frame: str, column: str) -> float:
    # Where HTA rounds, so do we, and the noise of its floats can tip the last digit.
    if frame == "gpu_kernel_breakdown_all_types":
        return 0.1 + 1e-9 if column == "percentage" else FLOAT_US
    if frame == "aten_op_kernels_and_delay":
        return 0.001 + FLOAT_US
    if column.endswith("pctg") or frame.startswith("idle"):
        return 0.01 + 1e-9
    return FLOAT_US


def _line(
    key: tuple[str, str, str, str],
    keys: pd.Index,
    values: tuple[pd.Series, pd.Series] | None = None,
) -> list[Line]:
    if not len(keys):
        return []
    names = ["/".join(key) if isinstance(key, tuple) else str(key) for key in keys]
    digest = hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:12]
    example = min(names)[-70:]
    if values is not None:
        ours, hta = (side.loc[keys].to_numpy() for side in values)
        if values[1].dtype == object or not pd.api.types.is_numeric_dtype(values[1]):
            example = f"{names[0][-70:]}: HTA {hta[0]!r}, hta_sql {ours[0]!r}"
            return [Line(*key, len(keys), digest, "?", example)]
        distance = pd.Series(abs(ours - hta)).fillna(float("inf"))
        worst = int(distance.argmax())
        example = f"{names[worst][-70:]}: HTA {hta[worst]:.9g}, hta_sql {ours[worst]:.9g}"
    return [Line(*key, len(keys), digest, "?", example)]


def read_ledger() -> list[Line]:
    """Read the ledger."""
    with KNOWN.open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    return [
        Line(job, frame, column, kind, int(cells), digest, causes, example)
        for job, frame, column, kind, cells, digest, causes, example in rows
    ]


def write_ledger(lines: list[Line]) -> None:
    """Write the ledger; a line that was there keeps its causes."""
    causes = {line.key: line.causes for line in read_ledger()} if KNOWN.exists() else {}
    with KNOWN.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)], lineterminator="\n")
        writer.writeheader()
        for line in lines:
            writer.writerow(asdict(line) | {"causes": causes.get(line.key, line.causes)})


def table_of(lines: list[Line]) -> str:
    """Write the ledger as the table of docs/hta_differences.md: a row a job, a column a frame."""
    cells: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        cells[line.job, line.frame].append(line)
    rows = [["public trace", *(frame.replace("_", " ") for frame in FRAMES)]]
    rows.append(["---"] * len(rows[0]))
    rows += [
        [job, *(_verdict(cells[job, frame]) for frame in FRAMES)]
        for job in dict.fromkeys(line.job for line in lines)
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _verdict(lines: list[Line]) -> str:
    kinds = {line.kind for line in lines}
    if "hta_not_run" in kinds:
        return "HTA not run"
    if "hta_crash" in kinds:
        return "HTA crashes, answered"
    causes = sorted({cause for line in lines for cause in line.causes.split()})
    return ", ".join(causes) or "equal"


def document_with(table: str) -> str:
    """Return docs/hta_differences.md with the table between its two markers replaced."""
    text = DOCUMENT.read_text(encoding="utf-8")
    head, rest = text.split(TABLE_START, 1)
    tail = rest.split(TABLE_END, 1)[1]
    return f"{head}{TABLE_START}\n{table}\n{TABLE_END}{tail}"


def main() -> None:
    """Ingest all jobs, compare, rewrite the ledger and the table of the document."""
    with TemporaryDirectory() as folder:
        store = Path(folder) / "jobs.store"
        ingest_jobs(store)
        write_ledger([line for job in JOBS for line in lines_of_job(store, job)])
    DOCUMENT.write_text(document_with(table_of(read_ledger())), encoding="utf-8")


if __name__ == "__main__":
    main()
