-- Host time, device time and launch delay of every launched operation.
--
-- Every runtime or driver call that launches work is included, regardless of name and vendor; operations are matched
-- by correlation id. A graph launch has one row per kernel of the graph. The delay is the time from the end of the
-- call to the start of the operation, or 0 if the operation starts before the call returns.
--
-- Title: Every launch with its kernel
-- Shown: rank, name, launch_delay_ns, cpu_dur_ns, gpu_dur_ns, launch_name, stream
-- Also: launch overhead, launch delay, kernel launch
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_cuda_kernel_launch_stats
-- Needs: GPU activity and runtime calls
-- Drawn from: launch_histograms
CREATE OR REPLACE MACRO cuda_kernel_launch_stats_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Whether to include copies and memsets.
    include_memory_events BOOLEAN := true,
    -- Longest call duration that is not an outlier [ns].
    runtime_cutoff_ns BIGINT := 50000,
    -- Longest launch delay that is not an outlier [ns].
    launch_delay_cutoff_ns BIGINT := 100000
) AS TABLE
-- Columns:
--   run                      VARCHAR      Run name.
--   rank                     INTEGER      Rank of the process.
--   correlation              BIGINT       Correlation id.
--   launch_id                BIGINT       event_id of the launch call.
--   launch_name              VARCHAR      Name of the launch call.
--   event_id                 BIGINT       event_id of the launched operation.
--   name                     VARCHAR      Name of the launched operation.
--   kind                     VARCHAR      Kind of operation: kernel, memcpy or memset.
--   device                   BIGINT       Device number.
--   stream                   BIGINT       Device stream.
--   cpu_dur_ns               BIGINT [ns]  Duration of the launch call.
--   gpu_dur_ns               BIGINT [ns]  Duration of the launched operation.
--   launch_delay_ns          BIGINT [ns]  Time from the end of the call to the start of the operation, at least 0.
--   is_short_kernel          BOOLEAN      Whether the operation is shorter than its call, and the call is not a runtime outlier.
--   is_runtime_outlier       BOOLEAN      Whether the call takes longer than runtime_cutoff_ns.
--   is_launch_delay_outlier  BOOLEAN      Whether the delay is longer than launch_delay_cutoff_ns.
WITH
    pairs AS (
        SELECT g.*, greatest(0, g.ts - g.launch_ts - g.launch_dur) AS delay
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        WHERE g.launch_id IS NOT NULL AND (include_memory_events OR g.kind = 'kernel')
    )
SELECT
    p.run,
    p.rank,
    p.correlation,
    p.launch_id,
    c.name AS launch_name,
    p.event_id,
    p.name,
    p.kind,
    p.device,
    p.stream,
    p.launch_dur AS cpu_dur_ns,
    p.dur AS gpu_dur_ns,
    p.delay AS launch_delay_ns,
    p.dur < p.launch_dur AND p.launch_dur <= runtime_cutoff_ns AS is_short_kernel,
    p.launch_dur > runtime_cutoff_ns AS is_runtime_outlier,
    p.delay > launch_delay_cutoff_ns AS is_launch_delay_outlier
FROM pairs AS p
LEFT JOIN runtime_calls AS c ON c.run = p.run AND c.rank = p.rank AND c.event_id = p.launch_id
ORDER BY p.run, p.rank, p.ts, p.event_id
