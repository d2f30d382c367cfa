-- Device time of each kernel, longest first: state here in one sentence which question the analysis answers.
--
-- State here what is counted and what is not. Concurrent kernels are all counted; the last profiler step is excluded by
-- default, because profilers stop in the middle of it.
--
-- Title: Device time of each kernel
-- Status: experimental
-- Needs: GPU activity
-- Report: table
CREATE OR REPLACE MACRO new_analysis_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step, in the middle of which profilers stop.
    include_last_profiler_step BOOLEAN := false,
    -- Minimum number of executions of a kernel.
    min_count BIGINT := 1
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   kernel        VARCHAR         Kernel name.
--   kernel_count  BIGINT [count]  Number of executions.
--   device_ns     BIGINT [ns]     Total duration.
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
