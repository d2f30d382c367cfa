-- Advice: copies that nothing hides take 5 % of the steps or more, other than pageable ones.
--
-- The share is that of TraceLens.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_exposed_copies(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib.advice_kernels.
    kernels
) AS TABLE
-- Columns: those of advice_data_loading.
WITH
    _chosen AS (
        SELECT k.*
        FROM query_table(kernels) AS k
        WHERE k.class = 'memory' AND regexp_matches(k.name, 'HtoD|DtoH|HostToDevice|DeviceToHost') AND NOT contains(k.name, 'Pageable')
    )
SELECT
    f.run, f.rank, 'exposed_copies' AS rule, 'Hide copies behind computation' AS title, f.kernel AS subject, f.event_count, f.own_ns, least(f.own_ns, f.memory_ns) AS ceiling_ns, 'high' AS confidence, f.event_id,
    printf('%,d copies between host and device take %.1f %% of the steps; %.1f %% are under no kernel.', f.event_count, f.own_pct, 100 * (f.memory_ns / nullif(f.step_ns, 0))) AS finding,
    'Copy the next batch on a stream of its own while this one is computed; keep on the device what is used again; copy once what is copied in pieces.' AS remedy,
    f.evidence_sql,
    'memory_bandwidth_summary' AS next_analysis
FROM lib.summed_kernels('_chosen', spans) AS f
WHERE least(f.own_ns, f.memory_ns) >= 0.05 * f.step_ns
