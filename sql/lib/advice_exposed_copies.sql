-- Advice: copies that nothing hides take 5 % of the steps or more, other than pageable ones.
--
-- The share is that of TraceLens.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_exposed_copies(
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
        WHERE k.class = 'memory' AND regexp_matches(k.name, 'HtoD|DtoH|HostToDevice|DeviceToHost') AND NOT contains(k.name, 'Pageable')
        GROUP BY k.run, k.rank
    )
SELECT
    f.run, f.rank, 'exposed_copies' AS rule, 'Hide copies behind computation' AS title, f.subject, f.event_count, f.own_ns, least(f.own_ns, s.memory_ns) AS ceiling_ns, 'high' AS confidence, f.event_id,
    printf('%d copies between host and device take %.1f %% of the steps; %.1f %% are under no kernel.', f.event_count, 100 * (f.own_ns / nullif(s.step_ns, 0)), 100 * (s.memory_ns / nullif(s.step_ns, 0))) AS finding,
    'Copy the next batch on a stream of its own while this one is computed; keep on the device what is used again; copy once what is copied in pieces.' AS remedy,
    format('FROM gpu_ops WHERE run = ''{}'' AND rank = {} AND name = ''{}'' ORDER BY dur DESC', replace(f.run, '''', ''''''), f.rank, replace(f.kernel, '''', '''''')) AS evidence_sql,
    'memory_bandwidth_summary' AS next_analysis
FROM _found AS f
JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
WHERE least(f.own_ns, s.memory_ns) >= 0.05 * s.step_ns
