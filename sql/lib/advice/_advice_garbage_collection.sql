-- Advice: Python garbage collection takes at least 1 % of step time; if there is a device, only time during which the
-- device waits counts.
--
-- Collections are recorded with the profiler option record_python_gc_info, or as a frame of gc.collect()
-- (with_stack=True).
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_garbage_collection(
    -- Name of a relation with the columns of lib._advice_host.
    host
) AS TABLE
-- Columns: those of _advice_data_loading.
SELECT
    h.run, h.rank, 'garbage_collection' AS rule, h.subject, h.event_count, h.affected_ns, h.exposed_ns AS ceiling_ns, 'high' AS confidence, h.event_id,
    CASE
        WHEN h.has_device THEN lib.message('advice.garbage_collection', {'collection_count': h.event_count, 'share_pct': h.affected_pct, 'exposed_pct': h.exposed_pct})
        ELSE lib.message('advice.garbage_collection_without_gpu', {'collection_count': h.event_count, 'share_pct': h.affected_pct})
    END AS message,
    h.evidence_sql, 'source_lines' AS next_analysis
FROM query_table(host) AS h
WHERE h.kind = 'garbage collection' AND h.exposed_ns >= 0.01 * h.recorded_ns
