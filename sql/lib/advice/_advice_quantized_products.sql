-- Advice: products with quantized weights lose at least 5 % of step time by not running on tensor cores.
--
-- Kernels of ExLlama (GPTQ) and bitsandbytes multiply on CUDA cores; other kernels expand the weights to 16 bits
-- before each product. Kernels such as Marlin or Machete unpack weights for the tensor cores, which run eight times
-- as many operations per second. At best, an eighth of the time remains. Matrix-vector products gain nothing and are
-- not counted.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_quantized_products(
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
        WHERE k.class = 'computation' AND regexp_matches(k.name, '(?i)gemm_half_q_half|kgemm_4bit_inference_naive|kDequantizeBlockwise|dequantize_(block|weights)|(s8|u8|int8).*simt|simt.*(s8|u8|int8)')
    ),
    _found AS (
        SELECT f.*, least(f.affected_ns, f.compute_ns) - least(f.affected_ns, f.compute_ns) // 8 AS lost_ns
        FROM lib.summed_kernels('_chosen', spans) AS f
    )
SELECT
    f.run, f.rank, 'quantized_products' AS rule, f.subject, f.event_count, f.affected_ns, f.lost_ns AS ceiling_ns, 'low' AS confidence, f.event_id,
    lib.message('advice.quantized_products', {'kernel_count': f.event_count, 'share_pct': f.affected_pct}) AS message,
    f.evidence_sql,
    'kernel_table' AS next_analysis
FROM _found AS f
WHERE f.lost_ns >= 0.05 * f.recorded_ns
