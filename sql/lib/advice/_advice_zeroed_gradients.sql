-- Advice: filling gradients with zeros instead of releasing them takes at least 0.5 % of step time.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_zeroed_gradients(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_kernels.
    kernels,
    -- Name of a relation with the columns of lib._advice_host.
    host
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _chosen AS (
        SELECT k.*
        FROM query_table(kernels) AS k
        WHERE k.annotation LIKE 'Optimizer.zero_grad%'
    )
SELECT
    f.run, f.rank, 'zeroed_gradients' AS rule, f.subject, f.event_count, f.affected_ns, least(f.affected_ns, f.compute_ns + f.memory_ns) AS ceiling_ns, 'high' AS confidence, f.event_id,
    lib.message('advice.zeroed_gradients', {'operation_count': f.event_count, 'share_pct': f.affected_pct}) AS message,
    f.evidence_sql,
    'special_operators' AS next_analysis
FROM lib.summed_kernels('_chosen', spans) AS f
WHERE f.affected_ns >= 0.005 * f.recorded_ns
UNION ALL
SELECT
    h.run, h.rank, 'zeroed_gradients', h.subject, h.event_count, h.affected_ns, h.exposed_ns, 'high', h.event_id,
    lib.message('advice.zeroed_gradients_without_gpu', {'gradient_count': h.event_count, 'share_pct': h.affected_pct}),
    h.evidence_sql, 'special_operators'
FROM query_table(host) AS h
WHERE h.kind = 'zeroed gradients' AND h.affected_ns >= 0.005 * h.recorded_ns
