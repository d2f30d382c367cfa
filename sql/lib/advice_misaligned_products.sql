-- Advice: matrix products that cannot load whole vectors take 1 % of the steps or more.
--
-- The kernel says so in its name (align1, align2): a dimension or an offset of an operand is odd.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_misaligned_products(
    -- Name of a relation with the columns of lib.advice_spans.
    spans,
    -- Name of a relation with the columns of lib.advice_kernels.
    kernels
) AS TABLE
-- Columns: those of advice_data_loading.
WITH
    _found AS (
        SELECT
            k.run, k.rank,
            arg_max(coalesce(k.op_name, k.name), (k.total_ns, k.name)) AS subject,
            arg_max(k.name, (k.total_ns, k.name)) AS kernel,
            sum(k.event_count)::BIGINT AS event_count,
            sum(k.total_ns)::BIGINT AS own_ns,
            arg_max(k.event_id, (k.total_ns, -k.event_id)) AS event_id
        FROM query_table(kernels) AS k
        WHERE k.class = 'computation' AND regexp_matches(k.name, '(?i)(gemm|conv|fprop|dgrad|wgrad|cutlass).*_align[12]($|[^0-9])')
        GROUP BY k.run, k.rank
    )
SELECT
    f.run, f.rank, 'misaligned_products' AS rule, 'Align the operands of matrix products' AS title, f.subject, f.event_count, f.own_ns, least(f.own_ns, s.compute_ns) AS ceiling_ns, 'medium' AS confidence, f.event_id,
    printf('%d matrix products on operands that are not aligned take %.1f %% of the steps.', f.event_count, 100 * (f.own_ns / nullif(s.step_ns, 0))) AS finding,
    'Pad channels, heads and vocabulary to multiples of 8 (16 bit) or 16 (8 bit), and keep views contiguous.' AS remedy,
    format('FROM gpu_ops WHERE run = ''{}'' AND rank = {} AND name = ''{}'' ORDER BY dur DESC', replace(f.run, '''', ''''''), f.rank, replace(f.kernel, '''', '''''')) AS evidence_sql,
    'operator_unique_args' AS next_analysis
FROM _found AS f
JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
WHERE f.own_ns >= 0.01 * s.step_ns
