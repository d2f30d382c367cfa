-- Matrix products of each rank call by call against the roofline of its device, in groups of one operator.
--
-- Kernels of 10 us or more on average: shorter ones are bound by their launch. Products in full single precision, misaligned ones,
-- and those of an attention that is not fused are left out, which other rules are about.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_products(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks,
    -- Profiler steps to include; NULL means every step.
    steps,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run          VARCHAR         Run name.
--   rank         INTEGER         Rank of the process.
--   name         VARCHAR         Operator.
--   is_far       BOOLEAN         Less than half of its time is the least time of the device.
--   is_memory    BOOLEAN         Its bytes take longer than its operations.
--   event_count  BIGINT [count]  Kernels.
--   total_ns     BIGINT [ns]     Their durations.
--   least_ns     BIGINT [ns]     The least time.
WITH
    _calls AS (
        SELECT
            c.run, c.rank, c.name, 2 * c.roofline_ns < c.device_ns AS is_far,
            c.flops / c.peak_tflops < c.moved_bytes / c.peak_tbps AS is_memory,
            c.kernel_count, c.device_ns, round(c.roofline_ns)::BIGINT AS least_ns
        FROM lib.modeled_calls(runs, ranks, steps, include_last_profiler_step, NULL, NULL) AS c
        WHERE
            c.is_matrix AND c.flops > 0 AND c.roofline_ns IS NOT NULL AND c.device_ns >= 10000 * c.kernel_count
            AND NOT regexp_matches(c.name, '(b|baddb)mm$|matmul$|einsum$')
            AND NOT regexp_matches(c.kernels, '(?i)(^|_)[sf]gemm|simt|_ffma|_align[12]($|[^0-9])')
    )
SELECT
    c.run, c.rank, c.name, c.is_far, c.is_memory, sum(c.kernel_count)::BIGINT AS event_count, sum(c.device_ns)::BIGINT AS total_ns, sum(least(c.least_ns, c.device_ns))::BIGINT AS least_ns
FROM _calls AS c
GROUP BY ALL
