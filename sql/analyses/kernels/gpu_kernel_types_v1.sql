-- Busy time of each GPU by the combination of kernel classes that run concurrently.
--
-- Every busy moment belongs to exactly one combination, so the rows of a rank sum to its busy time. Times are exact;
-- HTA truncates every elementary segment to whole microseconds (Q61).
--
-- Title: What GPUs run while they are busy
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_gpu_kernel_breakdown, first table
-- Needs: GPU activity
-- Report: first 3
CREATE OR REPLACE MACRO gpu_kernel_types_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run       VARCHAR      Run name.
--   rank      INTEGER      Rank of the process.
--   classes   VARCHAR      Classes that run concurrently: computation, computation+communication, ...
--   busy_ns   BIGINT [ns]  Time with exactly these classes running.
--   busy_pct  DOUBLE [%]   Share of the rank's busy time.
WITH
    spans AS (
        SELECT {'run': g.run, 'rank': g.rank} AS lane, g.class, g.ts, g.dur
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
    ),
    combinations AS (
        SELECT
            c.lane,
            concat_ws(
                '+',
                CASE WHEN c.computes THEN 'computation' END,
                CASE WHEN c.communicates THEN 'communication' END,
                CASE WHEN c.copies THEN 'memory' END
            ) AS classes,
            sum(c.dur)::BIGINT AS busy_ns
        FROM lib.class_segments('spans') AS c
        WHERE c.computes OR c.communicates OR c.copies
        GROUP BY ALL
    )
SELECT
    m.lane.run AS run,
    m.lane.rank AS rank,
    m.classes,
    m.busy_ns,
    100::DOUBLE * m.busy_ns / sum(m.busy_ns) OVER (PARTITION BY m.lane) AS busy_pct
FROM combinations AS m
ORDER BY run, rank, m.busy_ns DESC, m.classes
