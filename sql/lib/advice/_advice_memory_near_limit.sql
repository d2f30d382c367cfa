-- Advice: the allocator reserves more than 90 % of a device's memory.
--
-- The threshold is that of the TensorBoard profiler plugin. Above it, the allocator frees memory and requests it
-- again, or fails.
CREATE OR REPLACE MACRO lib._advice_memory_near_limit(
    runs,
    ranks
) AS TABLE
-- Columns: those of _advice_by_rule.
WITH
    _peaks AS (
        SELECT
            m.run, m.rank, m.device, m.event_count, m.capacity_bytes,
            greatest(m.peak_reserved_bytes, m.peak_allocated_bytes) AS taken,
            CASE WHEN m.peak_allocated_bytes > m.peak_reserved_bytes THEN m.peak_id ELSE coalesce(m.reserved_peak_id, m.peak_id) END AS event_id
        FROM lib.memory_peaks(runs, ranks, NULL, false) AS m
        WHERE m.device_type <> 0
    )
SELECT
    p.run, p.rank, 'memory_near_limit' AS rule, printf('device %d', p.device) AS subject, p.event_count, NULL::BIGINT AS affected_ns, NULL::BIGINT AS saved_ns, 'high' AS confidence, p.event_id,
    lib.message('advice.memory_near_limit', {'taken_bytes': p.taken, 'capacity_bytes': p.capacity_bytes}) AS message,
    format('FROM memory_events WHERE run = {} AND rank = {} AND event_id = {}', lib.sql_literal(p.run), p.rank, p.event_id) AS evidence_sql,
    'memory_peaks' AS next_analysis
FROM _peaks AS p
WHERE p.taken > 0.9 * p.capacity_bytes
