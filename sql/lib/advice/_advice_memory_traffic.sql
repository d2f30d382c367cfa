-- Advice: kernels that only move data (index, gather, permute, copy, concatenate) take at least 5 % of step time.
--
-- Only kernels of at least 10 us count; shorter ones belong to small_kernels.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_memory_traffic(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_kernels.
    kernels
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _chosen AS (
        SELECT k.* REPLACE (k.event_count - k.small_count AS event_count, k.total_ns - k.small_ns AS total_ns)
        FROM query_table(kernels) AS k
        WHERE
            k.class = 'computation' AND k.event_count > k.small_count
            AND regexp_matches(k.name, '(?i)direct_copy_kernel|CatArrayBatchedCopy|index_(elementwise|select|put|add|copy|kernel)|indexSelect|indexFunc|gather_kernel|scatter_(gather|add|kernel)|vectorized_gather|permute|transpose_(kernel|readWrite)|batch_transpose')
            AND NOT regexp_matches(k.name, '(?i)gemm|Cijk_|conv|nccl|rccl|attn|attention|flash|fmha|embedding')
            AND NOT coalesce(starts_with(k.annotation, 'Optimizer.'), false)
    )
SELECT
    f.run, f.rank, 'memory_traffic' AS rule, f.subject, f.event_count, f.affected_ns, least(f.affected_ns, f.compute_ns) AS ceiling_ns, 'medium' AS confidence, f.event_id,
    lib.message('advice.memory_traffic', {'kernel_count': f.event_count, 'share_pct': f.affected_pct}) AS message,
    f.evidence_sql,
    'launching_operators' AS next_analysis
FROM lib.summed_kernels('_chosen', spans) AS f
WHERE f.affected_ns >= 0.05 * f.recorded_ns
