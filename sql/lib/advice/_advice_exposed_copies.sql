-- Advice: exposed copies, other than pageable ones, take at least 5 % of step time.
--
-- The threshold is that of TraceLens.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_exposed_copies(
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
        WHERE k.class = 'memory' AND regexp_matches(k.name, 'HtoD|DtoH|HostToDevice|DeviceToHost') AND NOT contains(k.name, 'Pageable')
    )
SELECT
    f.run, f.rank, 'exposed_copies' AS rule, f.kernel AS subject, f.event_count, f.affected_ns, least(f.affected_ns, f.memory_ns) AS ceiling_ns, 'high' AS confidence, f.event_id,
    lib.message('advice.exposed_copies', {'copy_count': f.event_count, 'share_pct': f.affected_pct, 'exposed_pct': 100 * (f.memory_ns / nullif(f.recorded_ns, 0))}) AS message,
    f.evidence_sql,
    'memory_bandwidth_summary' AS next_analysis
FROM lib.summed_kernels('_chosen', spans) AS f
WHERE least(f.affected_ns, f.memory_ns) >= 0.05 * f.recorded_ns
