-- Advice: indexing a tensor element by element in a Python loop takes at least 1 % of step time; if there is a
-- device, only time during which the device waits counts.
--
-- The pattern is torch's ForLoopIndexingPattern, which has no threshold.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_indexing_loops(
    -- Name of a relation with the columns of lib._advice_host.
    host
) AS TABLE
-- Columns: those of _advice_data_loading.
SELECT
    h.run, h.rank, 'indexing_loops' AS rule, 'aten::select' AS subject, h.event_count, h.affected_ns, h.exposed_ns AS ceiling_ns, 'medium' AS confidence, h.event_id,
    CASE
        WHEN h.has_device
            THEN lib.message('advice.indexing_loops', {'index_count': h.event_count, 'operator': h.subject, 'share_pct': h.affected_pct, 'exposed_pct': h.exposed_pct})
        ELSE lib.message('advice.indexing_loops_without_gpu', {'index_count': h.event_count, 'operator': h.subject, 'share_pct': h.affected_pct})
    END AS message,
    h.evidence_sql, 'ops_by_name' AS next_analysis
FROM query_table(host) AS h
WHERE h.kind = 'indexing loop' AND h.exposed_ns >= 0.01 * h.recorded_ns
