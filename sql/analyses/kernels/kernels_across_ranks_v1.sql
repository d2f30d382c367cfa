-- The longest kernels of a run, and how their time differs between its ranks.
--
-- Names are ordered by total duration over all ranks, within their class. A rank that never ran the kernel counts as
-- 0, both in the mean and in the lowest total. If ranks tie, the lowest rank number is reported.
--
-- Title: Longest kernels across ranks
-- Shown: sum_ns, class_pct, name, spread_pct, max_rank, max_rank_ns, mean_rank_ns, min_rank
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_gpu_kernel_breakdown, bar charts of a kernel's duration per rank
-- Needs: GPU activity
-- Report: first 4
CREATE OR REPLACE MACRO kernels_across_ranks_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Number of names per run and class; NULL means every name.
    num_kernels BIGINT := 10
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   class         VARCHAR         Class of the operation: computation, communication or memory.
--   position      BIGINT [1]      Position by total duration within the class; 1 is the longest.
--   name          VARCHAR         Kernel name.
--   rank_count    BIGINT [count]  Number of ranks with device activity, including ranks that did not run the kernel.
--   kernel_count  BIGINT [count]  Number of launches on all ranks.
--   sum_ns        BIGINT [ns]     Total duration on all ranks.
--   class_pct     DOUBLE [%]      Share of the total duration of the class; NULL if the total is 0.
--   mean_rank_ns  DOUBLE [ns]     Mean of the per-rank totals.
--   min_rank_ns   BIGINT [ns]     Lowest total of any rank.
--   min_rank      INTEGER         Rank with the lowest total.
--   max_rank_ns   BIGINT [ns]     Highest total of any rank.
--   max_rank      INTEGER         Rank with the highest total.
--   spread_pct    DOUBLE [%]      (highest - lowest) / mean of the per-rank totals; NULL if the mean is 0.
WITH
    ops AS (
        SELECT g.run, g.rank, g.class, g.name, g.dur
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
    ),
    totals AS (
        SELECT o.run, o.class, o.name, o.rank, count(*) AS launches, sum(o.dur)::BIGINT AS total
        FROM ops AS o
        GROUP BY ALL
    ),
    active AS (
        SELECT DISTINCT t.run, t.rank
        FROM totals AS t
    ),
    names AS (
        SELECT t.run, t.class, t.name, sum(t.launches)::BIGINT AS launches, sum(t.total)::BIGINT AS total
        FROM totals AS t
        GROUP BY ALL
    ),
    placed AS (
        SELECT
            n.*,
            row_number() OVER (PARTITION BY n.run, n.class ORDER BY n.total DESC, n.name) AS position,
            sum(n.total) OVER (PARTITION BY n.run, n.class) AS class_total
        FROM names AS n
    ),
    per_rank AS (
        SELECT p.*, a.rank, coalesce(t.total, 0) AS rank_total
        FROM placed AS p
        JOIN active AS a ON a.run = p.run
        LEFT JOIN totals AS t ON t.run = p.run AND t.class = p.class AND t.name = p.name AND t.rank = a.rank
        WHERE num_kernels IS NULL OR p.position <= num_kernels
    )
SELECT
    r.run,
    r.class,
    r.position,
    r.name,
    count(*) AS rank_count,
    any_value(r.launches) AS kernel_count,
    any_value(r.total) AS sum_ns,
    100::DOUBLE * any_value(r.total) / nullif(any_value(r.class_total), 0)::DOUBLE AS class_pct,
    any_value(r.total) / count(*)::DOUBLE AS mean_rank_ns,
    min(r.rank_total) AS min_rank_ns,
    arg_min(r.rank, {'ns': r.rank_total, 'rank': r.rank}) AS min_rank,
    max(r.rank_total) AS max_rank_ns,
    arg_min(r.rank, {'ns': -r.rank_total, 'rank': r.rank}) AS max_rank,
    100::DOUBLE * (max(r.rank_total) - min(r.rank_total)) * count(*) / nullif(any_value(r.total), 0)::DOUBLE AS spread_pct
FROM per_rank AS r
GROUP BY r.run, r.class, r.position, r.name
ORDER BY r.run, array_position(['computation', 'communication', 'memory'], r.class), r.position
