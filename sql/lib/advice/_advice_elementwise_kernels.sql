-- Advice: long elementwise kernels and reductions take at least 10 % of step time.
--
-- Each kernel reads and writes memory for a single operation; a fused kernel does so once for several operations.
-- Only kernels of at least 10 us count: shorter ones belong to small_kernels, pure data movement to memory_traffic,
-- and optimizer kernels to unfused_optimizer and zeroed_gradients.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_elementwise_kernels(
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
            AND regexp_matches(k.name, 'elementwise_kernel|reduce_kernel|FillFunctor')
            AND NOT regexp_matches(k.name, '(?i)multi_tensor|direct_copy|index|gather|scatter')
            AND NOT coalesce(starts_with(k.annotation, 'Optimizer.'), false)
    )
SELECT
    f.run, f.rank, 'elementwise_kernels' AS rule, f.subject, f.event_count, f.affected_ns, least(f.affected_ns, f.compute_ns) AS ceiling_ns, 'medium' AS confidence, f.event_id,
    lib.message('advice.elementwise_kernels', {'kernel_count': f.event_count, 'share_pct': f.affected_pct}) AS message,
    f.evidence_sql,
    'launching_operators' AS next_analysis
FROM lib.summed_kernels('_chosen', spans) AS f
WHERE f.affected_ns >= 0.1 * f.recorded_ns
