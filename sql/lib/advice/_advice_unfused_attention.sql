-- Advice: attention is computed in pieces: softmax kernels take 3 % of the steps or more beside batched matrix products.
--
-- Fused attention has no softmax kernel. That of a loss or of a router is short, and log_softmax does not count.
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
        SELECT k.*
        FROM query_table(kernels) AS k
        WHERE k.class = 'computation' AND regexp_matches(k.name, '(?i)softmax') AND NOT regexp_matches(k.name, '(?i)log_?softmax|flash|fmha|fwd_splitkv|attn')
    ),
    _products AS (
        SELECT k.run, k.rank, sum(k.event_count)::BIGINT AS event_count
        FROM query_table(kernels) AS k
        WHERE k.class = 'computation' AND regexp_matches(k.op_name, '(b|baddb)mm$|matmul$|einsum$')
        GROUP BY k.run, k.rank
    )
SELECT
    f.run, f.rank, 'unfused_attention' AS rule, f.subject, f.event_count, f.affected_ns, least(f.affected_ns, f.compute_ns) AS ceiling_ns, 'medium' AS confidence, f.event_id,
    lib.message('advice.unfused_attention', {'share_pct': f.affected_pct, 'product_count': b.event_count}) AS message,
    f.evidence_sql,
    'launching_operators' AS next_analysis
FROM lib.summed_kernels('_chosen', spans) AS f
JOIN _products AS b ON b.run = f.run AND b.rank = f.rank
WHERE f.affected_ns >= 0.03 * f.step_ns AND b.event_count >= 2
