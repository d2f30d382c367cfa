-- Advice: matrix products far from the roofline take at least 10 % of step time.
--
-- Far means below half of the rate that the device's peak compute rate or memory bandwidth allows.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_slow_products(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_products.
    products
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _chosen AS (
        SELECT p.* FROM query_table(products) AS p WHERE p.is_far
    )
SELECT
    f.run, f.rank, 'slow_products' AS rule, f.subject, f.event_count, f.affected_ns, (least(f.affected_ns, f.compute_ns)::HUGEINT * (f.affected_ns - f.least_ns) // f.affected_ns)::BIGINT AS ceiling_ns, 'medium' AS confidence,
    NULL::BIGINT AS event_id,
    lib.message('advice.slow_products', {'product_count': f.event_count, 'share_pct': f.affected_pct, 'peak_pct': 100 * (f.least_ns / f.affected_ns)}) AS message,
    f.evidence_sql,
    'roofline' AS next_analysis
FROM lib.summed_products('_chosen', spans) AS f
WHERE f.affected_ns >= 0.1 * f.recorded_ns
