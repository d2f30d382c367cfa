-- Advice: gradients are filled with zeros instead of given up, for 0.5 % of the steps or more.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_zeroed_gradients(
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
        WHERE k.annotation LIKE 'Optimizer.zero_grad%'
        GROUP BY k.run, k.rank
    )
SELECT
    f.run, f.rank, 'zeroed_gradients' AS rule, 'Give gradients up instead of zeroing them' AS title, f.subject, f.event_count, f.own_ns, least(f.own_ns, s.compute_ns + s.memory_ns) AS ceiling_ns, 'high' AS confidence, f.event_id,
    printf('zero_grad launches %d operations that take %.1f %% of the steps.', f.event_count, 100 * (f.own_ns / nullif(s.step_ns, 0))) AS finding,
    'optimizer.zero_grad(set_to_none=True), the default since PyTorch 2.0.' AS remedy,
    format('FROM gpu_ops WHERE run = ''{}'' AND rank = {} AND name = ''{}'' ORDER BY dur DESC', replace(f.run, '''', ''''''), f.rank, replace(f.kernel, '''', '''''')) AS evidence_sql,
    'user_annotation_breakdown' AS next_analysis
FROM _found AS f
JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
WHERE f.own_ns >= 0.005 * s.step_ns
