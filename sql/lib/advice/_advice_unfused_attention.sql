-- Advice: attention is not fused, because softmax kernels next to batched matrix products take at least 3 % of step
-- time.
--
-- Fused attention has no softmax kernel. The softmax of a loss or a router is short, and log_softmax does not count.
-- The cost is the total time of the softmax kernels and the batched products. No other rule counts these kernels.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_unfused_attention(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_kernels.
    kernels
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _chosen AS (
        SELECT k.* FROM query_table(kernels) AS k WHERE k.attention_part IS NOT NULL
    ),
    _pieces AS (
        SELECT
            c.run, c.rank,
            coalesce(sum(c.total_ns) FILTER (c.attention_part = 'softmax'), 0) AS softmax_ns,
            coalesce(sum(c.event_count) FILTER (c.attention_part = 'product'), 0)::BIGINT AS product_count
        FROM _chosen AS c
        GROUP BY c.run, c.rank
    )
SELECT
    f.run, f.rank, 'unfused_attention' AS rule, f.subject, f.event_count, f.affected_ns, least(f.affected_ns, f.compute_ns) AS ceiling_ns, 'medium' AS confidence, f.event_id,
    lib.message('advice.unfused_attention', {'share_pct': f.affected_pct, 'product_count': p.product_count}) AS message,
    f.evidence_sql,
    'launching_operators' AS next_analysis
FROM lib.summed_kernels('_chosen', spans) AS f
JOIN _pieces AS p ON p.run = f.run AND p.rank = f.rank
WHERE p.softmax_ns >= 0.03 * f.recorded_ns AND p.product_count >= 2
