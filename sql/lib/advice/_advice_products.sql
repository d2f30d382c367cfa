-- Matrix products of each rank, compared call by call with the device's roofline and grouped by operator.
--
-- Only calls whose kernels take at least 10 us on average count, because shorter kernels are launch-bound. Products
-- in full single precision, misaligned products, and products of unfused attention are excluded; other rules cover
-- them.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_products(
    -- Name of a relation with the columns of lib.modeled_calls.
    calls
) AS TABLE
-- Columns:
--   run          VARCHAR         Run name.
--   rank         INTEGER         Rank of the process.
--   name         VARCHAR         Name of the operator.
--   is_far       BOOLEAN         Whether the roofline time is less than half of total_ns.
--   is_memory    BOOLEAN         Whether the product is memory-bound: moving its bytes takes longer than its floating-point operations.
--   event_count  BIGINT [count]  Number of kernels.
--   total_ns     BIGINT [ns]     Total duration of the kernels.
--   least_ns     BIGINT [ns]     Roofline time of the kernels.
WITH
    _calls AS (
        SELECT
            c.run, c.rank, c.name, 2 * c.roofline_ns < c.device_ns AS is_far,
            c.flops / c.peak_tflops < c.moved_bytes / c.peak_tbps AS is_memory,
            c.kernel_count, c.device_ns, round(c.roofline_ns)::BIGINT AS least_ns
        FROM query_table(calls) AS c
        WHERE
            c.is_matrix AND c.flops > 0 AND c.roofline_ns IS NOT NULL AND c.device_ns >= 10000 * c.kernel_count
            AND NOT regexp_matches(c.name, '(b|baddb)mm$|matmul$|einsum$')
            AND NOT regexp_matches(c.kernels, '(?i)(^|_)[sf]gemm|simt|_ffma|_align[12]($|[^0-9])')
    )
SELECT
    c.run, c.rank, c.name, c.is_far, c.is_memory, sum(c.kernel_count)::BIGINT AS event_count, sum(c.device_ns)::BIGINT AS total_ns, sum(least(c.least_ns, c.device_ns))::BIGINT AS least_ns
FROM _calls AS c
GROUP BY ALL
