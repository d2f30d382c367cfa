-- Advice: gradients are filled with zeros instead of given up, for 0.5 % of the steps or more.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_zeroed_gradients(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib.advice_kernels.
    kernels,
    -- Name of a relation with the columns of lib.advice_host.
    host
) AS TABLE
-- Columns: those of advice_data_loading.
WITH
    _chosen AS (
        SELECT k.*
        FROM query_table(kernels) AS k
        WHERE k.annotation LIKE 'Optimizer.zero_grad%'
    )
SELECT
    f.run, f.rank, 'zeroed_gradients' AS rule, 'Give gradients up instead of zeroing them' AS title, f.subject, f.event_count, f.own_ns, least(f.own_ns, f.compute_ns + f.memory_ns) AS ceiling_ns, 'high' AS confidence, f.event_id,
    printf('zero_grad launches %,d operations that take %.1f %% of the steps.', f.event_count, f.own_pct) AS finding,
    'optimizer.zero_grad(set_to_none=True), the default since PyTorch 2.0.' AS remedy,
    f.evidence_sql,
    'user_annotation_breakdown' AS next_analysis
FROM lib.summed_kernels('_chosen', spans) AS f
WHERE f.own_ns >= 0.005 * f.step_ns
UNION ALL
SELECT
    h.run, h.rank, 'zeroed_gradients', 'Give gradients up instead of zeroing them', h.subject, h.event_count, h.own_ns, h.exposed_ns, 'high', h.event_id,
    printf('zero_grad fills %,d gradients with zeros, %.1f %% of the steps; there is no GPU in the trace.', h.event_count, h.own_pct),
    'optimizer.zero_grad(set_to_none=True), the default since PyTorch 2.0.',
    h.evidence_sql, 'user_annotation_breakdown'
FROM query_table(host) AS h
WHERE h.kind = 'zeroed gradients' AND h.own_ns >= 0.005 * h.step_ns
