-- Step durations of each rank: mean, spread, percentiles, the slowest step, and the interval between step starts.
--
-- Steps are profiler steps on the host. A step is slow if it exceeds the rank's median by at least slow_z standard
-- deviations. The standard deviation is estimated from the median absolute deviation, and is at least 1 % of the
-- median. The interval is the time from the start of a step to the start of the next; gaps between steps lengthen it.
--
-- Title: Duration of steps
-- Shown: rank, step_count, mean_ns, median_ns, p99_ns, max_ns, longest_step, slow_count
-- Also: step time, iteration time, step duration, slow steps, outlier, outliers
-- Status: stable
-- Since: 0.1
-- Reference: Nsight Systems pace recipes
-- Needs: profiler steps (prof.step())
-- Report: table
CREATE OR REPLACE MACRO step_time_stats_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Minimum distance above the median at which a step is slow, in standard deviations.
    slow_z DOUBLE := 3.5
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   rank              INTEGER         Rank of the process.
--   step_count        BIGINT [count]  Number of steps.
--   mean_ns           DOUBLE [ns]     Mean duration.
--   std_ns            DOUBLE [ns]     Sample standard deviation; NULL for a single step.
--   min_ns            BIGINT [ns]     Shortest duration.
--   median_ns         DOUBLE [ns]     Median duration.
--   p90_ns            DOUBLE [ns]     90th percentile of the durations.
--   p99_ns            DOUBLE [ns]     99th percentile of the durations.
--   max_ns            BIGINT [ns]     Longest duration.
--   longest_step      BIGINT          Number of the longest step; the lowest number if several steps are equally long.
--   slow_count        BIGINT [count]  Number of slow steps; NULL for fewer than three steps.
--   unrecorded_step_count  BIGINT [count]  Number of steps in which the device ran work that is not in the trace.
--   mean_interval_ns  DOUBLE [ns]     Mean time from the start of a step to the start of the next; NULL for a single step.
--   interval_std_ns   DOUBLE [ns]     Sample standard deviation of the interval; NULL for fewer than three steps.
WITH
    timed AS (
        SELECT
            p.run, p.rank, p.step, p.step_ns, p.recorded_ns,
            lead(p.ts) OVER in_order - p.ts AS interval_ns,
            median(p.step_ns) OVER of_rank AS middle
        FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS p
        WHERE p.step IS NOT NULL
        WINDOW
            in_order AS (PARTITION BY p.run, p.rank, p.span ORDER BY p.ts, p.step),
            of_rank AS (PARTITION BY p.run, p.rank)
    ),
    spread AS (
        SELECT
            t.*,
            greatest(1.4826 * median(abs(t.step_ns - t.middle)) OVER (PARTITION BY t.run, t.rank), 0.01 * t.middle) AS scale
        FROM timed AS t
    )
SELECT
    s.run,
    s.rank,
    count(*) AS step_count,
    avg(s.step_ns) AS mean_ns,
    lib.exact_std(s.step_ns) AS std_ns,
    min(s.step_ns) AS min_ns,
    median(s.step_ns)::DOUBLE AS median_ns,
    quantile_cont(s.step_ns, 0.9)::DOUBLE AS p90_ns,
    quantile_cont(s.step_ns, 0.99)::DOUBLE AS p99_ns,
    max(s.step_ns) AS max_ns,
    arg_max(s.step, (s.step_ns, -s.step)) AS longest_step,
    CASE WHEN count(*) >= 3 THEN count_if(s.step_ns - s.middle >= slow_z * s.scale AND s.step_ns > s.middle)::BIGINT END AS slow_count,
    count_if(s.recorded_ns < s.step_ns)::BIGINT AS unrecorded_step_count,
    avg(s.interval_ns) AS mean_interval_ns,
    lib.exact_std(s.interval_ns) AS interval_std_ns
FROM spread AS s
GROUP BY s.run, s.rank
ORDER BY s.run, s.rank
