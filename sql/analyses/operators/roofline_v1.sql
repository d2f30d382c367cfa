-- How far operators are from what the device can do: achieved TFLOP/s and TB/s against the roofline, by operator and
-- shapes; those that waste most time first.
--
-- The roofline of a call is the longer of two times: its floating-point operations at the peak of their type, and its
-- bytes at the peak of the memory, every input read once and every output written once. wasted_ns is the time of its
-- kernels above that. Below 0, with a share above 100 %, inputs came from a cache. Computation kernels only; what a
-- list of peaks (device_peaks), formulas (lib._operator_models) or the trace do not tell is NULL, with the reason,
-- and covered_pct says how much of the time is known. Peaks are those of the makers, without sparsity.
--
-- Title: Roofline: operators against device peaks
-- Status: stable
-- Since: 0.1
-- Reference: TraceLens perf models, XProf op profile (wasted time)
-- Needs: GPU activity with operators, record_shapes, and a device in the list of peaks, or both peaks given
-- Report: first 5; at most 64 ranks
-- Ranks: independent
CREATE OR REPLACE MACRO roofline_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step and all activity outside steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false,
    -- Whether calls with other input shapes are a row of their own.
    by_shapes BOOLEAN := true,
    -- Whether calls that launch other kernels are.
    by_kernel BOOLEAN := false,
    -- Peak of the arithmetic of all types [TFLOP/s], in place of the list; NULL: as listed.
    custom_peak_tflops DOUBLE := NULL,
    -- Peak of the memory [TB/s], likewise.
    custom_peak_tbps DOUBLE := NULL
) AS TABLE
-- Columns:
--   run              VARCHAR           Run name.
--   rank             INTEGER           Rank of the process.
--   name             VARCHAR           Operator without its overload, [graph replay] or [no operator].
--   category         VARCHAR           Kind of work.
--   input_shapes     VARCHAR           Input shapes as JSON; NULL where not told apart, or not recorded.
--   kernels          VARCHAR           Kernels of a call, with ' -> ' between them; NULL where not told apart.
--   call_count       BIGINT [count]    Calls that launched kernels; without an operator, kernels.
--   kernel_count     BIGINT [count]    Kernels.
--   device_ns        BIGINT [ns]       Sum of their durations.
--   device_pct       DOUBLE [%]        Share of the rank's time of computation kernels.
--   flops            BIGINT [1]        Floating-point operations; NULL: unknown, as in what follows.
--   moved_bytes      BIGINT [bytes]    Bytes to read and to write at least.
--   intensity        DOUBLE [1]        Operations for each byte.
--   math_type        VARCHAR           Arithmetic: bf16, tf32, … products of matrices, fp32_vector and fp64_vector all else.
--   achieved_tflops  DOUBLE [TFLOP/s]  Operations in the time of the kernels.
--   peak_tflops      DOUBLE [TFLOP/s]  Peak of that arithmetic.
--   achieved_tbps    DOUBLE [TB/s]     Bytes in the time of the kernels.
--   peak_tbps        DOUBLE [TB/s]     Peak of the memory.
--   bound            VARCHAR           compute or memory: what the roofline is made of.
--   roofline_ns      DOUBLE [ns]       The least time.
--   peak_pct         DOUBLE [%]        roofline_ns as a share of device_ns.
--   wasted_ns        BIGINT [ns]       device_ns above roofline_ns.
--   covered_pct      DOUBLE [%]        Share of the rank's time of computation kernels of which the roofline is known.
--   unknown_count    BIGINT [count]    Rows of the rank without a roofline.
--   reason_code      VARCHAR           Code of the reason in the table messages.
--   reason           VARCHAR           Why it is not known.
WITH
    -- Least times in whole picoseconds: sums are exact in any order.
    calls AS (
        SELECT c.*, round(1000 * c.roofline_ns)::BIGINT AS roofline_ps
        FROM lib.modeled_calls(runs, ranks, steps, include_last_profiler_step, custom_peak_tflops, custom_peak_tbps) AS c
    ),
    summed AS (
        SELECT
            c.run, c.rank, c.name, c.category, CASE WHEN by_shapes THEN c.input_shapes END AS input_shapes,
            CASE WHEN by_kernel THEN c.kernels END AS kernels, c.math_type, c.peak_tflops, c.peak_tbps, c.reason_code,
            -- Within one type of arithmetic calls may be bound otherwise.
            CASE
                WHEN c.roofline_ns IS NULL THEN NULL
                WHEN c.flops > 0 AND c.flops / c.peak_tflops > c.moved_bytes / c.peak_tbps THEN 'compute'
                ELSE 'memory'
            END AS bound,
            count(*) AS call_count, sum(c.kernel_count)::BIGINT AS kernel_count, sum(c.device_ns)::BIGINT AS device_ns,
            CASE WHEN count(c.flops) = count(*) THEN TRY_CAST(sum(c.flops) AS BIGINT) END AS flops,
            CASE WHEN count(c.moved_bytes) = count(*) THEN sum(c.moved_bytes)::BIGINT END AS moved_bytes,
            CASE WHEN count(c.roofline_ps) = count(*) THEN sum(c.roofline_ps)::BIGINT END AS roofline_ps
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
    s.run, s.rank, wasted_ns DESC NULLS LAST, s.device_ns DESC, s.name, s.input_shapes, s.category, s.kernels, s.math_type, s.bound, s.reason_code
