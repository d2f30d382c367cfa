-- Advice: matrix products that read their weights for few rows take 30 % of the steps or more.
--
-- The memory bounds them, and they reach half of its peak or more, as in decoding with a small batch. A larger batch costs no
-- time, so that no time of a step is saved: there is no ceiling.
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
    _summed AS (
        SELECT
            p.run, p.rank, arg_max(p.name, (p.total_ns, p.name)) AS subject, sum(p.event_count)::BIGINT AS event_count,
            sum(p.total_ns)::BIGINT AS affected_ns, sum(p.least_ns)::BIGINT AS least_ns
        FROM query_table(products) AS p
        WHERE p.is_memory AND NOT p.is_far
        GROUP BY p.run, p.rank
    )
SELECT
    u.run, u.rank, 'memory_bound_products' AS rule, u.subject, u.event_count, u.affected_ns, NULL::BIGINT AS ceiling_ns, 'medium' AS confidence,
    NULL::BIGINT AS event_id,
    lib.message('advice.memory_bound_products', {'product_count': u.event_count, 'share_pct': 100 * (u.affected_ns / nullif(s.step_ns, 0)), 'peak_pct': 100 * (u.least_ns / u.affected_ns)}) AS message,
    format('FROM roofline_v1(runs := [{}], ranks := [{}])', lib.sql_literal(u.run), u.rank) AS evidence_sql,
    'roofline' AS next_analysis
FROM _summed AS u
JOIN query_table(spans) AS s ON s.run = u.run AND s.rank = u.rank
WHERE u.affected_ns >= 0.3 * s.step_ns
