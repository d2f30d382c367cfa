-- Advice: the allocator holds more than 90 % of a device's memory.
--
-- The share is that of the TensorBoard profiler plugin. Beyond it the allocator gives memory back and asks again, or fails.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.advice_memory_near_limit(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks
) AS TABLE
-- Columns: those of advice_data_loading.
WITH
    _peaks AS (
        SELECT
            m.run, m.rank, m.device, m.event_count, m.capacity_bytes,
            greatest(m.peak_reserved_bytes, m.peak_allocated_bytes) AS taken,
            CASE WHEN m.peak_allocated_bytes > m.peak_reserved_bytes THEN m.peak_id ELSE coalesce(m.reserved_peak_id, m.peak_id) END AS event_id
        FROM lib.memory_peaks(runs, ranks, NULL, false) AS m
        WHERE m.device_type = 1
    )
SELECT
    p.run, p.rank, 'memory_near_limit' AS rule, 'Leave memory free' AS title, printf('device %d', p.device) AS subject, p.event_count, NULL::BIGINT AS own_ns, NULL::BIGINT AS ceiling_ns, 'high' AS confidence, p.event_id,
    printf('%.1f of %.1f GB are taken at the peak.', p.taken / 1e9, p.capacity_bytes / 1e9) AS finding,
    'Activation checkpointing, a smaller micro-batch, sharded optimizer states (FSDP, ZeRO), expandable_segments:True against fragmentation.' AS remedy,
    format('FROM memory_events WHERE run = {} AND rank = {} AND event_id = {}', lib.sql_literal(p.run), p.rank, p.event_id) AS evidence_sql,
    'memory_peaks' AS next_analysis
FROM _peaks AS p
WHERE p.taken > 0.9 * p.capacity_bytes
