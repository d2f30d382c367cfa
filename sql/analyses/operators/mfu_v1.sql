-- Model FLOPs utilization: share of each step that its matrix products would take at the peak rate of the device.
--
-- GEMMs, convolutions and attention count, in the forward and the backward pass, each at the peak rate of its data
-- type (device_peaks): peak_tflops is the mean that results, so products in FP32 are measured against the FP32 peak, which
-- leaves tensor cores out. Recomputation in the backward pass counts too; other tools count recomputation only as hardware
-- FLOPs. Kernels of all other known operators count as covered, with zero FLOPs. Kernels of compiler templates, graphs
-- and other libraries are not covered. mfu_pct is a lower bound, because it counts only covered kernels, whose share
-- of computation kernel time is covered_pct.
--
-- Title: Model FLOPs utilization (MFU)
-- Shown: rank, step, mfu_pct, peak_tflops, covered_pct, achieved_tflops, step_ns, flops, reason
-- Also: model flops utilization, hfu, flops
-- Status: stable
-- Since: 0.1
-- Reference: msprof-analyze OperatorMFU; PaLM, appendix B
-- Needs: GPU activity with operators, record_shapes, and a device in the list of peaks, or a custom peak
-- Report: table; at most 64 ranks
CREATE OR REPLACE MACRO mfu_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step, or the whole trace if it has no steps.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Whether to return one row per step; otherwise all steps of a rank are combined.
    by_step BOOLEAN := true,
    -- Peak compute rate for all data types [TFLOP/s], instead of device_peaks; NULL: from device_peaks.
    custom_peak_tflops DOUBLE := NULL
) AS TABLE
-- Columns:
--   run              VARCHAR           Run name.
--   rank             INTEGER           Rank of the process.
--   step             BIGINT            Profiler step; NULL for all steps together, and for a trace without steps.
--   step_count       BIGINT [count]    Number of steps.
--   step_ns          BIGINT [ns]       Total step time on the host.
--   recorded_ns      BIGINT [ns]       step_ns minus unrecorded time (unrecorded_time); the denominator of rates and shares.
--   computation_ns   BIGINT [ns]       Total duration of computation kernels launched in the steps.
--   matrix_ns        BIGINT [ns]       Part of computation_ns in matrix products with known FLOPs.
--   flops            BIGINT [1]        Floating-point operations of these products; NULL: unknown.
--   achieved_tflops  DOUBLE [TFLOP/s]  flops / recorded_ns.
--   peak_tflops      DOUBLE [TFLOP/s]  Peak rate of these products: flops / peak_ns, the mean over their data types; NULL: unknown.
--   peak_ns          DOUBLE [ns]       Time that these products would take at the peak rate; NULL: unknown.
--   matrix_peak_pct  DOUBLE [%]        peak_ns as a share of matrix_ns: efficiency of these kernels while they run.
--   mfu_pct          DOUBLE [%]        peak_ns as a share of recorded_ns.
--   covered_pct      DOUBLE [%]        Share of computation_ns in kernels whose FLOPs are known, including kernels without FLOPs.
--   unknown_count    BIGINT [count]    Number of calls that are not covered.
--   reason_code      VARCHAR           Code of the reason in the table messages.
--   reason           VARCHAR           Why FLOPs are unknown for most of the uncovered time.
WITH
    windows AS MATERIALIZED (
        SELECT w.run, w.rank, w.step, CASE WHEN by_step THEN w.step END AS shown_step, w.step_ns, w.recorded_ns
        FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS w
    ),
    work AS MATERIALIZED (
        SELECT w.run, w.rank, w.shown_step, m.* EXCLUDE (run, rank, step)
        FROM lib.matrix_work(runs, ranks, steps, include_last_profiler_step, custom_peak_tflops) AS m
        JOIN windows AS w ON w.run = m.run AND w.rank = m.rank AND w.step IS NOT DISTINCT FROM m.step
    ),
    stepped AS (
        SELECT w.run, w.rank, w.shown_step, count(*) AS step_count, sum(w.step_ns)::BIGINT AS step_ns, sum(w.recorded_ns)::BIGINT AS recorded_ns
        FROM windows AS w
        GROUP BY w.run, w.rank, w.shown_step
    ),
    worked AS (
        SELECT
            k.run, k.rank, k.shown_step, sum(k.computation_ns)::BIGINT AS computation_ns, sum(k.covered_ns)::BIGINT AS covered_ns,
            sum(k.matrix_ns)::BIGINT AS matrix_ns, sum(k.peak_ps)::BIGINT AS peak_ps, sum(k.peakless_count) AS peakless_count,
            sum(k.unknown_count)::BIGINT AS unknown_count,
            -- Without matrix products, FLOPs are 0 only if all kernels are covered.
            CASE
                WHEN count(k.flops) = 0 AND sum(k.covered_ns) = sum(k.computation_ns) THEN 0
                ELSE TRY_CAST(sum(k.flops) AS BIGINT)
            END AS flops
        FROM work AS k
        GROUP BY k.run, k.rank, k.shown_step
    ),
    reasons AS (
        SELECT k.run, k.rank, k.shown_step, k.reason_code, sum(k.computation_ns) AS computation_ns
        FROM work AS k
        WHERE k.reason_code IS NOT NULL
        GROUP BY k.run, k.rank, k.shown_step, k.reason_code
    ),
    most AS (
        SELECT r.run, r.rank, r.shown_step, arg_min(r.reason_code, (-r.computation_ns, r.reason_code)) AS reason_code
        FROM reasons AS r
        GROUP BY r.run, r.rank, r.shown_step
    ),
    timed AS (
        SELECT
            s.run, s.rank, s.shown_step AS step, s.step_count, s.step_ns, s.recorded_ns, k.computation_ns, k.covered_ns, k.matrix_ns, k.flops, k.unknown_count,
            CASE WHEN k.flops = 0 THEN 0 WHEN k.peakless_count = 0 THEN k.peak_ps END AS full_peak_ps
        FROM stepped AS s
        LEFT JOIN worked AS k ON k.run = s.run AND k.rank = s.rank AND k.shown_step IS NOT DISTINCT FROM s.shown_step
    )
SELECT
    t.run,
    t.rank,
    t.step,
    t.step_count,
    t.step_ns,
    t.recorded_ns,
    t.computation_ns,
    t.matrix_ns,
    t.flops,
    t.flops / nullif(t.recorded_ns, 0) / 1000 AS achieved_tflops,
    t.flops / nullif(t.full_peak_ps, 0) AS peak_tflops,
    t.full_peak_ps / 1000 AS peak_ns,
    t.full_peak_ps / nullif(t.matrix_ns, 0) / 10 AS matrix_peak_pct,
    t.full_peak_ps / nullif(t.recorded_ns, 0) / 10 AS mfu_pct,
    100 * (t.covered_ns / nullif(t.computation_ns, 0)) AS covered_pct,
    t.unknown_count,
    m.reason_code,
    w.message AS reason
FROM timed AS t
LEFT JOIN most AS m ON m.run = t.run AND m.rank = t.rank AND m.shown_step IS NOT DISTINCT FROM t.step
LEFT JOIN messages AS w ON w.code = m.reason_code
ORDER BY t.run, t.rank, t.step
