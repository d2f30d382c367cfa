-- Advice: elementwise kernels shorter than 10 us take at least 5 % of step time and are at least 30 % of all kernels.
--
-- Each kernel reads and writes memory for a single operation; a fused kernel does so once for several operations.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_small_kernels(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_kernels.
    kernels
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _chosen AS (
        SELECT k.* REPLACE (k.small_count AS event_count, k.small_ns AS total_ns)
        FROM query_table(kernels) AS k
        WHERE k.class = 'computation' AND regexp_matches(k.name, 'elementwise_kernel|CatArrayBatchedCopy|index_elementwise|FillFunctor|direct_copy_kernel') AND k.small_count > 0
    ),
    _all AS (
        SELECT k.run, k.rank, sum(k.event_count)::BIGINT AS event_count
        FROM query_table(kernels) AS k
        WHERE k.class = 'computation'
        GROUP BY k.run, k.rank
    )
SELECT
    f.run, f.rank, 'small_kernels' AS rule, f.subject, f.event_count, f.affected_ns, least(f.affected_ns, f.compute_ns) AS ceiling_ns, 'medium' AS confidence, f.event_id,
    lib.message('advice.small_kernels', {'small_count': f.event_count, 'kernel_count': a.event_count, 'share_pct': f.affected_pct}) AS message,
    f.evidence_sql,
    'launching_operators' AS next_analysis
FROM lib.summed_kernels('_chosen', spans) AS f
JOIN _all AS a ON a.run = f.run AND a.rank = f.rank
WHERE f.affected_ns >= 0.05 * f.recorded_ns AND 10 * f.event_count >= 3 * a.event_count
