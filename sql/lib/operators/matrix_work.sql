-- Matrix products of each step, with their operations and their time at the peak rate of the data types.
--
-- Covers GEMM, convolution and attention. For each kernel, either its matrix operations are known, or there is a
-- reason why they are unknown. Each step has one row per reason, and one row for everything that is known.
CREATE OR REPLACE MACRO lib.matrix_work(
    runs,
    ranks,
    steps,
    include_last_profiler_step,
    -- Peak compute rate for all data types [TFLOP/s], instead of device_peaks; NULL: from device_peaks.
    custom_tflops
) AS TABLE
-- Columns:
--   run             VARCHAR         Run name.
--   rank            INTEGER         Rank of the process.
--   step            BIGINT          Profiler step that launched the kernels; NULL outside steps.
--   reason_code     VARCHAR         Code, in the table messages, of the reason why something is unknown; NULL if nothing is unknown.
--   computation_ns  BIGINT [ns]     Total duration of computation kernels.
--   covered_ns      BIGINT [ns]     Part of computation_ns in kernels whose matrix operations are known, including those with none.
--   matrix_ns       BIGINT [ns]     Part of covered_ns in kernels with matrix products.
--   flops           BIGINT [1]      Operations of these products; NULL if there are none.
--   peak_ps         BIGINT [1]      Time of these products at the peak rate, in picoseconds.
--   unknown_count   BIGINT [count]  Number of calls with unknown matrix operations.
--   peakless_count  BIGINT [count]  Number of calls with known operations and an unknown peak.
WITH
    _calls AS (
        SELECT
            c.run, c.rank, c.step, c.device_ns, c.is_matrix, c.flops, c.reason_code,
            c.is_matrix IS FALSE OR coalesce(c.is_matrix AND c.flops IS NOT NULL, false) AS is_covered,
            -- Whole picoseconds, so sums are exact in any order.
            CASE WHEN c.is_matrix THEN round(c.flops / c.peak_tflops)::BIGINT END AS peak_ps
        FROM lib.modeled_calls(runs, ranks, steps, include_last_profiler_step, custom_tflops, NULL) AS c
    )
SELECT
    c.run AS run, c.rank AS rank, c.step AS step,
    CASE WHEN NOT c.is_covered OR c.is_matrix AND c.peak_ps IS NULL THEN c.reason_code END AS reason_code,
    sum(c.device_ns)::BIGINT AS computation_ns,
    coalesce(sum(c.device_ns) FILTER (c.is_covered), 0)::BIGINT AS covered_ns,
    coalesce(sum(c.device_ns) FILTER (c.is_covered AND c.is_matrix), 0)::BIGINT AS matrix_ns,
    TRY_CAST(sum(c.flops) FILTER (c.is_matrix) AS BIGINT) AS flops,
    sum(c.peak_ps)::BIGINT AS peak_ps,
    count_if(NOT c.is_covered)::BIGINT AS unknown_count,
    count_if(c.is_covered AND c.is_matrix AND c.peak_ps IS NULL)::BIGINT AS peakless_count
FROM _calls AS c
GROUP BY ALL
