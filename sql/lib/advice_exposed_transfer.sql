-- Advice: transfers of collectives that no computation hides take 5 % of the steps or more.
--
-- The share is that of TraceLens; waits for late ranks are not in it.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_exposed_transfer(
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
            arg_max(k.name, (k.total_ns, k.name)) AS subject,
            arg_max(k.name, (k.total_ns, k.name)) AS kernel,
            sum(k.event_count)::BIGINT AS event_count,
            sum(k.total_ns)::BIGINT AS own_ns,
            arg_max(k.event_id, (k.total_ns, -k.event_id)) AS event_id
        FROM query_table(kernels) AS k
        WHERE k.class = 'communication'
        GROUP BY k.run, k.rank
    )
SELECT
    f.run, f.rank, 'exposed_transfer' AS rule, 'Hide transfers behind computation' AS title, f.subject, f.event_count, f.own_ns, s.transfer_ns AS ceiling_ns, 'high' AS confidence, f.event_id,
    printf('No computation hides %.1f %% of the steps, in which data is transferred.', 100 * (s.transfer_ns / nullif(s.step_ns, 0))) AS finding,
    'Overlap it: larger or smaller gradient buckets (bucket_cap_mb), prefetching in FSDP, computation that does not need the result put between; send less: 16 bit, fewer and larger messages.' AS remedy,
    format('FROM gpu_ops WHERE run = ''{}'' AND rank = {} AND name = ''{}'' ORDER BY dur DESC', replace(f.run, '''', ''''''), f.rank, replace(f.kernel, '''', '''''')) AS evidence_sql,
    'process_group_costs' AS next_analysis
FROM _found AS f
JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
WHERE s.transfer_ns >= 0.05 * s.step_ns
