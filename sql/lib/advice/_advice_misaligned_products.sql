-- Advice: matrix products that cannot use full vector loads take at least 1 % of step time.
--
-- The kernel name contains the alignment; align1 or align2 means that a dimension or offset of an operand is not a
-- multiple of the vector width. Kernels in full single precision (simt) load single elements by design and do not
-- count. Attention products that unfused_attention covers do not count either.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_misaligned_products(
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
        WHERE k.class = 'computation' AND regexp_matches(k.name, '(?i)(gemm|conv|fprop|dgrad|wgrad|cutlass).*_align[12]($|[^0-9])') AND NOT regexp_matches(k.name, '(?i)simt|sgemm')
    )
SELECT
    f.run, f.rank, 'misaligned_products' AS rule, f.subject, f.event_count, f.affected_ns, least(f.affected_ns, f.compute_ns) AS ceiling_ns, 'medium' AS confidence, f.event_id,
    lib.message('advice.misaligned_products', {'product_count': f.event_count, 'share_pct': f.affected_pct}) AS message,
    f.evidence_sql,
    'kernel_table' AS next_analysis
FROM lib.summed_kernels('_chosen', spans) AS f
WHERE f.affected_ns >= 0.01 * f.recorded_ns
