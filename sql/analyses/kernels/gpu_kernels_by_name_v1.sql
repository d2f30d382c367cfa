-- Duration of each kernel, copy and memset by name, per rank and class.
--
-- Names are ordered by total duration within a rank and class. num_kernels limits the number of names that get a row
-- of their own. duration_ratio instead selects the names with the longest total duration that together make up this
-- share of the class's time; num_kernels takes precedence. The remaining launches form one row "others", whose
-- statistics are computed from the launches themselves. HTA computes the statistics of this row from per-name sums
-- (Q21), and applies duration_ratio as a quantile of cumulative sums (Q22).
--
-- Title: Longest kernels of each rank
-- Shown: rank, sum_ns, class_pct, name, kernel_count, mean_ns, class, max_ns
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_gpu_kernel_breakdown, second table
-- Needs: GPU activity
-- Report: of several ranks; num_kernels := 10; at most 64 ranks
CREATE OR REPLACE MACRO gpu_kernels_by_name_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Number of names with a row of their own, per rank and class; NULL means every name.
    num_kernels BIGINT := NULL,
    -- Share of the class's time covered by names with a row of their own; used if num_kernels is NULL.
    duration_ratio DOUBLE := NULL
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   class         VARCHAR         Class of the operation: computation, communication or memory.
--   name          VARCHAR         Kernel name, or others.
--   kernel_count  BIGINT [count]  Number of launches.
--   sum_ns        BIGINT [ns]     Total duration.
--   min_ns        BIGINT [ns]     Shortest duration.
--   max_ns        BIGINT [ns]     Longest duration.
--   mean_ns       DOUBLE [ns]     Mean duration.
--   std_ns        DOUBLE [ns]     Sample standard deviation; NULL for a single launch.
--   median_ns     DOUBLE [ns]     Median duration.
--   class_pct     DOUBLE [%]      Share of the total duration of the rank and class; NULL if the total is 0.
--   name_count    BIGINT [count]  Number of names in the row; 1, except for others.
--   unmatched_ns  BIGINT [ns]     Part of sum_ns whose class is a default, because no metadata, category or rule determines it.
WITH
    ops AS (
        SELECT g.run, g.rank, g.class, g.name, g.dur, g.class_source
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
    ),
    names AS (
        SELECT o.run, o.rank, o.class, o.name, sum(o.dur) AS total
        FROM ops AS o
        GROUP BY ALL
    ),
    ranked AS (
        SELECT
            n.*,
            row_number() OVER by_total AS position,
            sum(n.total) OVER by_total - n.total AS before,
            sum(n.total) OVER (PARTITION BY n.run, n.rank, n.class) AS class_total
        FROM names AS n
        WINDOW by_total AS (PARTITION BY n.run, n.rank, n.class ORDER BY n.total DESC, n.name)
    ),
    labeled AS (
        SELECT
            k.*,
            CASE
                WHEN num_kernels IS NOT NULL THEN k.position <= num_kernels
                WHEN duration_ratio IS NOT NULL THEN k.before < duration_ratio * k.class_total
                ELSE true
            END AS is_kept
        FROM ranked AS k
    )
SELECT
    o.run,
    o.rank,
    o.class,
    CASE WHEN l.is_kept THEN o.name ELSE 'others' END AS name,
    count(*) AS kernel_count,
    sum(o.dur)::BIGINT AS sum_ns,
    min(o.dur) AS min_ns,
    max(o.dur) AS max_ns,
    avg(o.dur) AS mean_ns,
    lib.exact_std(o.dur) AS std_ns,
    median(o.dur)::DOUBLE AS median_ns,
    100::DOUBLE * sum(o.dur) / nullif(any_value(l.class_total), 0)::DOUBLE AS class_pct,
    count(DISTINCT o.name) AS name_count,
    coalesce(sum(o.dur) FILTER (o.class_source = 'default'), 0)::BIGINT AS unmatched_ns
FROM ops AS o
JOIN labeled AS l ON l.run = o.run AND l.rank = o.rank AND l.class = o.class AND l.name = o.name
GROUP BY o.run, o.rank, o.class, l.is_kept, CASE WHEN l.is_kept THEN o.name ELSE 'others' END
ORDER BY o.run, o.rank, o.class, l.is_kept DESC, sum_ns DESC, name
