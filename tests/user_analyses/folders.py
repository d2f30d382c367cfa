"""Helpers that write a team's folder with one analysis, its macro and its golden test."""

from __future__ import annotations

from pathlib import Path

ANALYSIS = """\
-- Device time of each stream: the sum of the durations of its kernels.
--
-- Kernels that overlap on a stream count twice.
--
-- Title: Load of each stream
-- Status: stable
-- Since: 1.0
-- Reference: none
-- Needs: GPU activity
-- Report: table
CREATE OR REPLACE MACRO stream_load_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step and all activity outside steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step, in the middle of which profilers stop.
    include_last_profiler_step BOOLEAN := false,
    -- Leave out streams with fewer kernels.
    min_kernels BIGINT := 1
) AS TABLE
-- Columns:
--   run           VARCHAR         Run.
--   rank          INTEGER         Rank.
--   stream        BIGINT          Device stream.
--   busy_ns       BIGINT [ns]     Sum of the durations of its kernels.
--   kernel_count  BIGINT [count]  Kernels on it.
WITH
    loads AS (
        SELECT g.run, g.rank, g.stream, lib.whole(sum(g.dur)) AS busy_ns, count(*) AS kernel_count
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        WHERE g.kind = 'kernel'
        GROUP BY g.run, g.rank, g.stream
    )
SELECT l.run, l.rank, l.stream, l.busy_ns, l.kernel_count
FROM loads AS l
WHERE l.kernel_count >= min_kernels
ORDER BY l.run, l.rank, l.stream;
"""

MACRO = """\
-- A sum of times as a BIGINT.
CREATE OR REPLACE MACRO lib.whole(
    -- The sum.
    summed
) AS
-- Returns: BIGINT [ns]  The same number.
summed::BIGINT;
"""

CASE = """\
# Three kernels of 25 us in all on stream 7, two of 5 us on stream 9.
traces: two_streams.json
call: SELECT rank, stream, busy_ns, kernel_count FROM stream_load_v1()
----
rank  stream  busy_ns  kernel_count
0     7       25000    3
0     9       10000    2
"""

TRACE = Path(__file__).parent.parent / "traces" / "overlap_two_streams.json"


def write_folder(folder: Path, *, name: str = "stream_load", text: str = ANALYSIS) -> Path:
    """Write the analysis under the given name, its macro and its golden test; return the folder."""
    files = {
        f"kernels/{name}_v1.sql": text,
        "lib/whole.sql": MACRO,
        f"tests/kernels/{name}_v1.test": CASE,
    }
    for relative, content in files.items():
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content.replace("stream_load", name), encoding="utf-8")
    traces = folder / "tests" / "traces"
    traces.mkdir(exist_ok=True)
    (traces / "two_streams.json").write_bytes(TRACE.read_bytes())
    return folder


def own_macro(folder: Path, name: str) -> None:
    """Rename the macro of a folder, so that two folders can be used together."""
    (folder / "lib" / "whole.sql").unlink()
    (folder / "lib" / f"{name}.sql").write_text(MACRO.replace("whole", name), encoding="utf-8")
    for path in folder.glob("kernels/*.sql"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("lib.whole", f"lib.{name}"), encoding="utf-8")
