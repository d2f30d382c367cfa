-- Histograms of kernel duration, launch call duration and launch delay.
--
-- The launches are the same as in cuda_kernel_launch_stats, combined over all requested ranks. Bin edges are round
-- numbers, six per decade (1, 1.5, 2, 3, 5, 7); the first bin is from 0 to 1 ns. An outlier is a kernel shorter than
-- its launch call, a call longer than runtime_cutoff_ns, or a delay longer than launch_delay_cutoff_ns. Empty bins
-- have no row.
--
-- Title: Launch durations and delays
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_cuda_kernel_launch_stats, the three histograms
-- Needs: GPU activity and runtime calls
-- Report: chart
CREATE OR REPLACE MACRO launch_histograms_v1(
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
--   run            VARCHAR         Run name.
--   measure        VARCHAR         Measured quantity: kernel_duration, call_duration or launch_delay.
--   low_ns         BIGINT [ns]     Lower edge of the bin, inclusive.
--   high_ns        BIGINT [ns]     Upper edge of the bin, exclusive.
--   launch_count   BIGINT [count]  Number of launches in the bin.
--   outlier_count  BIGINT [count]  Number of outliers in the bin.
--   cutoff_ns      BIGINT [ns]     Longest value that is not an outlier; NULL for kernel_duration.
WITH
    pairs AS (
        SELECT g.run, g.dur, g.launch_dur, greatest(0, g.ts - g.launch_ts - g.launch_dur) AS delay
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        WHERE g.launch_id IS NOT NULL AND (include_memory_events OR g.kind = 'kernel')
    ),
    values_ns AS (
        SELECT p.run, 'kernel_duration' AS measure, p.dur AS ns, NULL::BIGINT AS cutoff,
            p.dur < p.launch_dur AND p.launch_dur <= runtime_cutoff_ns AS is_outlier
        FROM pairs AS p
        UNION ALL
        SELECT p.run, 'call_duration', p.launch_dur, runtime_cutoff_ns, p.launch_dur > runtime_cutoff_ns
        FROM pairs AS p
        UNION ALL
        SELECT p.run, 'launch_delay', p.delay, launch_delay_cutoff_ns, p.delay > launch_delay_cutoff_ns
        FROM pairs AS p
    ),
    digits AS (
        SELECT unnest([10, 15, 20, 30, 50, 70]) AS digit
    ),
    -- Times are integral nanoseconds, so 1.5 ns is not an edge.
    edges AS (
        SELECT unnest([0, 1, 2, 3, 5, 7])::BIGINT AS low
        UNION ALL
        SELECT d.digit * pow(10, e.exponent)::BIGINT
        FROM digits AS d
        CROSS JOIN range(17) AS e(exponent)
    ),
    bins AS (
        SELECT e.low, lead(e.low) OVER (ORDER BY e.low) AS high
        FROM edges AS e
    )
SELECT
    v.run,
    v.measure,
    b.low AS low_ns,
    b.high AS high_ns,
    count(*) AS launch_count,
    count(*) FILTER (v.is_outlier) AS outlier_count,
    v.cutoff AS cutoff_ns
FROM values_ns AS v
ASOF JOIN bins AS b ON v.ns >= b.low
GROUP BY v.run, v.measure, b.low, b.high, v.cutoff
ORDER BY v.run, array_position(['kernel_duration', 'call_duration', 'launch_delay'], v.measure), b.low
