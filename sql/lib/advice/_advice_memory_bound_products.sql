-- Advice: memory-bound matrix products with few rows take at least 30 % of step time.
--
-- The products read their weights for only a few rows, and reach at least half of peak memory bandwidth, as in
-- decoding with a small batch. A larger batch would take no additional time. This raises throughput but does not
-- shorten the step, so there is no ceiling.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_memory_bound_products(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_products.
    products
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _chosen AS (
        SELECT p.* FROM query_table(products) AS p WHERE p.is_memory AND NOT p.is_far
    )
SELECT
    f.run, f.rank, 'memory_bound_products' AS rule, f.subject, f.event_count, f.affected_ns, NULL::BIGINT AS ceiling_ns, 'medium' AS confidence,
    NULL::BIGINT AS event_id,
    lib.message('advice.memory_bound_products', {'product_count': f.event_count, 'share_pct': f.affected_pct, 'peak_pct': 100 * (f.least_ns / f.affected_ns)}) AS message,
    f.evidence_sql,
    'roofline' AS next_analysis
FROM lib.summed_products('_chosen', spans) AS f
WHERE f.affected_ns >= 0.3 * f.recorded_ns
