-- Products of matrices that each step ran: their operations, and the time that these take at the peak of their types.
--
-- GEMM, convolution and attention. Of a kernel it is known whether and what it multiplies, or there is a reason why
-- not; steps have a row for each reason, and one for all that is known.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.matrix_work(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks,
    -- Profiler steps to include; NULL means every step and all activity outside steps.
    steps,
    -- Whether to include the last profiler step.
    include_last_profiler_step,
    -- Peak of all arithmetic [TFLOP/s] in place of the list of devices; NULL: as listed.
    custom_tflops
) AS TABLE
-- Columns:
--   run             VARCHAR         Run name.
--   rank            INTEGER         Rank of the process.
--   step            BIGINT          Profiler step that launched them; NULL outside of steps.
--   reason_code     VARCHAR         Code of the message in the table messages that says what is unknown; NULL: nothing is.
--   computation_ns  BIGINT [ns]     Sum of the durations of computation kernels.
--   covered_ns      BIGINT [ns]     Those of which it is known whether, and what, they multiply.
--   matrix_ns       BIGINT [ns]     Those of them that multiply matrices.
--   flops           BIGINT [1]      Their operations; NULL where none multiplies.
--   peak_ps         BIGINT [1]      Time that these take at the peak, in picoseconds.
--   unknown_count   BIGINT [count]  Calls of which it is not known whether, or what, they multiply.
--   peakless_count  BIGINT [count]  Calls whose operations are known and the peak is not.
WITH
    _calls AS (
        SELECT
            c.run, c.rank, c.step, c.device_ns, c.is_matrix, c.flops, c.reason_code,
            c.is_matrix IS FALSE OR coalesce(c.is_matrix AND c.flops IS NOT NULL, false) AS is_covered,
            -- Whole picoseconds: sums are exact in any order.
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
