-- Device time of each kernel, longest first: say here in one sentence what it answers.
--
-- Say here what is counted and what is not. Kernels that overlap count twice; the last profiler step is left out by
-- default, since profilers stop in the middle of it.
--
-- Title: Device time of each kernel
-- Status: experimental
-- Needs: GPU activity
-- Report: table
CREATE OR REPLACE MACRO new_analysis_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step and all activity outside steps.
    steps BIGINT[] := NULL,
    -- Include the last profiler step, in the middle of which profilers stop.
    include_last_profiler_step BOOLEAN := false,
    -- Leave out kernels that ran fewer times.
    min_count BIGINT := 1
) AS TABLE
-- Columns:
--   run           VARCHAR         Run.
--   rank          INTEGER         Rank.
--   kernel        VARCHAR         Name of the kernel.
--   kernel_count  BIGINT [count]  How often it ran.
--   device_ns     BIGINT [ns]     Sum of its durations.
WITH
    kernels AS (
        SELECT g.run, g.rank, g.name AS kernel, count(*) AS kernel_count, sum(g.dur)::BIGINT AS device_ns
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        WHERE g.kind = 'kernel'
        GROUP BY g.run, g.rank, g.name
    )
SELECT k.run, k.rank, k.kernel, k.kernel_count, k.device_ns
FROM kernels AS k
WHERE k.kernel_count >= min_count
ORDER BY k.run, k.rank, k.device_ns DESC, k.kernel;
