-- Roofline analysis: achieved TFLOP/s and TB/s against device peaks by operator and shapes, most wasted time first.
--
-- The roofline time of a call is the longer of its compute time (floating-point operations at the peak rate of their
-- type) and its memory time (bytes at peak memory bandwidth, if each input is read once and each output is written
-- once). wasted_ns is the kernel time beyond the roofline time. A negative wasted_ns (peak_pct above 100 %) means that
-- inputs came from a cache. Only computation kernels are included. If the peak (device_peaks), the formula
-- (lib._operator_models) or the recorded arguments are missing, values are NULL and reason explains why. covered_pct
-- is the share of time with a known roofline. Peaks are the vendors' figures, without sparsity.
--
-- Title: Roofline: operators against device peaks
-- Shown: rank, device_ns, peak_pct, bound, name, input_shapes, wasted_ns, achieved_tflops, reason
-- Also: arithmetic intensity, flops by operator
-- Status: stable
-- Since: 0.1
-- Reference: TraceLens perf models, XProf op profile (wasted time)
-- Needs: GPU activity with operators, record_shapes, and a device in the list of peaks, or both custom peaks
-- Report: first 5; at most 64 ranks
-- Ranks: independent
CREATE OR REPLACE MACRO roofline_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Whether calls with different input shapes have separate rows.
    by_shapes BOOLEAN := true,
    -- Whether calls that launch different kernels have separate rows.
    by_kernel BOOLEAN := false,
    -- Peak compute rate for all data types [TFLOP/s], instead of device_peaks; NULL: from device_peaks.
    custom_peak_tflops DOUBLE := NULL,
    -- Peak memory bandwidth [TB/s], instead of device_peaks; NULL: from device_peaks.
    custom_peak_tbps DOUBLE := NULL
) AS TABLE
-- Columns:
--   run              VARCHAR           Run name.
--   rank             INTEGER           Rank of the process.
--   name             VARCHAR           Operator name without overload, [graph replay] or [no operator].
--   match_method     VARCHAR           How replayed kernels were matched with the capture that provides the operator, as in graph_matches; NULL if the operator does not come from a capture.
--   category         VARCHAR           Kind of work.
--   input_shapes     VARCHAR           Input shapes as JSON; NULL without by_shapes, or if not recorded.
--   kernels          VARCHAR           Kernels of a call, separated by ' -> '; NULL without by_kernel.
--   call_count       BIGINT [count]    Number of calls that launched kernels; for kernels without an operator, number of kernels.
--   kernel_count     BIGINT [count]    Number of kernels.
--   device_ns        BIGINT [ns]       Total duration of these kernels.
--   device_pct       DOUBLE [%]        Share of the rank's computation kernel time.
--   flops            BIGINT [1]        Floating-point operations; NULL if unknown.
--   moved_bytes      BIGINT [bytes]    Minimum number of bytes to read and write.
--   intensity        DOUBLE [1]        Arithmetic intensity: floating-point operations per byte.
--   math_type        VARCHAR           Arithmetic type: bf16, tf32, … for matrix products, otherwise fp32_vector or fp64_vector.
--   achieved_tflops  DOUBLE [TFLOP/s]  flops / device_ns.
--   peak_tflops      DOUBLE [TFLOP/s]  Peak compute rate for math_type.
--   achieved_tbps    DOUBLE [TB/s]     moved_bytes / device_ns.
--   peak_tbps        DOUBLE [TB/s]     Peak memory bandwidth.
--   bound            VARCHAR           Resource that limits the roofline: compute or memory.
--   roofline_ns      DOUBLE [ns]       Roofline time: lower bound of the duration.
--   peak_pct         DOUBLE [%]        roofline_ns as a share of device_ns.
--   wasted_ns        BIGINT [ns]       device_ns minus roofline_ns.
--   covered_pct      DOUBLE [%]        Share of the rank's computation kernel time with a known roofline.
--   unknown_count    BIGINT [count]    Number of the rank's rows with an unknown roofline.
--   reason_code      VARCHAR           Code of the reason in the table messages.
--   reason           VARCHAR           Why the roofline is unknown.
WITH
    -- Round roofline times to whole picoseconds, so that sums do not depend on the order.
    calls AS (
        SELECT c.*, round(1000::DOUBLE * c.roofline_ns)::HUGEINT AS roofline_ps
        FROM lib.modeled_calls(runs, ranks, steps, include_last_profiler_step, custom_peak_tflops, custom_peak_tbps) AS c
    ),
    summed AS (
        SELECT
            c.run, c.rank, c.name, c.match_method, c.category, CASE WHEN by_shapes THEN c.input_shapes END AS input_shapes,
            CASE WHEN by_kernel THEN c.kernels END AS kernels, c.math_type, c.peak_tflops, c.peak_tbps, c.reason_code,
            -- Calls with the same arithmetic type may be bound by different resources.
            CASE
                WHEN c.roofline_ns IS NULL THEN NULL
                WHEN c.flops > 0 AND c.flops / c.peak_tflops > c.moved_bytes / c.peak_tbps THEN 'compute'
                ELSE 'memory'
            END AS bound,
            count(*) AS call_count, sum(c.kernel_count)::BIGINT AS kernel_count, sum(c.device_ns)::BIGINT AS device_ns,
            CASE WHEN count(c.flops) = count(*) THEN TRY_CAST(sum(c.flops) AS BIGINT) END AS flops,
            CASE WHEN count(c.moved_bytes) = count(*) THEN sum(c.moved_bytes)::BIGINT END AS moved_bytes,
            CASE WHEN count(c.roofline_ps) = count(*) THEN sum(c.roofline_ps) END AS roofline_ps
        FROM calls AS c
        GROUP BY ALL
    ),
    shares AS (
        SELECT
            s.*,
            sum(s.device_ns) OVER of_rank AS rank_ns,
            coalesce(sum(s.device_ns) FILTER (s.roofline_ps IS NOT NULL) OVER of_rank, 0) AS covered_ns,
            count(*) FILTER (s.roofline_ps IS NULL) OVER of_rank AS unknown_count
        FROM summed AS s
        WINDOW of_rank AS (PARTITION BY s.run, s.rank)
    )
SELECT
    s.run,
    s.rank,
    s.name,
    s.match_method,
    s.category,
    s.input_shapes,
    s.kernels,
    s.call_count,
    s.kernel_count,
    s.device_ns,
    100 * (s.device_ns / nullif(s.rank_ns, 0)) AS device_pct,
    s.flops,
    s.moved_bytes,
    s.flops / nullif(s.moved_bytes, 0) AS intensity,
    s.math_type,
    s.flops / nullif(s.device_ns, 0) / 1000 AS achieved_tflops,
    s.peak_tflops,
    s.moved_bytes / nullif(s.device_ns, 0) / 1000 AS achieved_tbps,
    s.peak_tbps,
    s.bound,
    s.roofline_ps / 1000 AS roofline_ns,
    s.roofline_ps / nullif(s.device_ns, 0) / 10 AS peak_pct,
    round(s.device_ns - s.roofline_ps / 1000)::BIGINT AS wasted_ns,
    100 * (s.covered_ns / nullif(s.rank_ns, 0)) AS covered_pct,
    s.unknown_count,
    s.reason_code,
    t.message AS reason
FROM shares AS s
LEFT JOIN messages AS t ON t.code = s.reason_code
ORDER BY
    s.run, s.rank, wasted_ns DESC NULLS LAST, s.device_ns DESC, s.name, s.input_shapes, s.category, s.kernels, s.math_type, s.bound, s.reason_code, s.match_method
