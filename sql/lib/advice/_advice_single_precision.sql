-- Advice: matrix products and convolutions in full single precision take at least 3 % of step time on a device with
-- tensor cores.
--
-- Tensor cores run eight times as many operations per second in TF32 (A100: 156 versus 19.5 TFLOP/s) or 16 bits
-- (V100: 125 versus 15.7). At best, an eighth of the time remains.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_single_precision(
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
        WHERE k.class = 'computation' AND regexp_matches(k.name, '(?i)(^|_)[sf]gemm|simt_sgemm|gemmSN|f32f32_f32f32_f32|_ffma|implicit_convolve_sgemm|winograd.*fp32|Cijk_.*_SB_') AND NOT regexp_matches(k.name, '(?i)tf32|1688')
    ),
    _devices AS (
        SELECT d.run, d.rank, min(d.compute_major) AS major
        FROM devices AS d
        GROUP BY d.run, d.rank
    )
SELECT
    f.run, f.rank, 'single_precision' AS rule, f.subject, f.event_count, f.affected_ns, least(f.affected_ns, f.compute_ns) - least(f.affected_ns, f.compute_ns) // 8 AS ceiling_ns, 'medium' AS confidence, f.event_id,
    CASE
        WHEN v.major >= 8 THEN lib.message('advice.single_precision', {'product_count': f.event_count, 'share_pct': f.affected_pct})
        ELSE lib.message('advice.single_precision_without_tf32', {'product_count': f.event_count, 'share_pct': f.affected_pct})
    END AS message,
    f.evidence_sql,
    'operator_unique_args' AS next_analysis
FROM lib.summed_kernels('_chosen', spans) AS f
JOIN _devices AS v ON v.run = f.run AND v.rank = f.rank
WHERE f.affected_ns >= 0.03 * f.recorded_ns AND v.major >= 7
