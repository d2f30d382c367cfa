-- Advice: copies from or to pageable memory that nothing hides take 1 % of the steps or more.
--
-- Such a copy goes through a buffer of the driver and holds up the host, also with non_blocking=True.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_pageable_copies(
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
        WHERE k.class = 'memory' AND contains(k.name, 'Pageable')
        GROUP BY k.run, k.rank
    )
SELECT
    f.run, f.rank, 'pageable_copies' AS rule, 'Copy from pinned memory' AS title, f.subject, f.event_count, f.own_ns, least(f.own_ns, s.memory_ns) AS ceiling_ns, 'high' AS confidence, f.event_id,
    printf('%d copies from or to pageable memory take %.1f %% of the steps.', f.event_count, 100 * (f.own_ns / nullif(s.step_ns, 0))) AS finding,
    'pin_memory=True in the data loader or .pin_memory() on the tensor, then .to(device, non_blocking=True).' AS remedy,
    format('FROM gpu_ops WHERE run = ''{}'' AND rank = {} AND name = ''{}'' ORDER BY dur DESC', replace(f.run, '''', ''''''), f.rank, replace(f.kernel, '''', '''''')) AS evidence_sql,
    'memory_bandwidth_summary' AS next_analysis
FROM _found AS f
JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
WHERE least(f.own_ns, s.memory_ns) >= 0.01 * s.step_ns
