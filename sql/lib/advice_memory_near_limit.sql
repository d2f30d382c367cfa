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
            m.run, m.rank, m.device, max(m.total_reserved_bytes) AS reserved, max(m.total_allocated_bytes) AS allocated, count(*) AS event_count,
            arg_max(m.event_id, (greatest(m.total_reserved_bytes, m.total_allocated_bytes), -m.event_id)) AS event_id
        FROM memory_events AS m
        WHERE m.device_type = 1 AND lib.wanted(runs, m.run) AND lib.wanted(ranks, m.rank)
        GROUP BY m.run, m.rank, m.device
    )
SELECT
    p.run, p.rank, 'memory_near_limit' AS rule, 'Leave memory free' AS title, printf('device %d', p.device) AS subject, p.event_count, NULL::BIGINT AS own_ns, NULL::BIGINT AS ceiling_ns, 'high' AS confidence, p.event_id,
    printf('%.1f of %.1f GB are taken at the peak.', greatest(p.reserved, p.allocated) / 1e9, d.total_memory_bytes / 1e9) AS finding,
    'Activation checkpointing, a smaller micro-batch, sharded optimizer states (FSDP, ZeRO), expandable_segments:True against fragmentation.' AS remedy,
    format('FROM memory_events WHERE run = {} AND rank = {} AND event_id = {}', lib.sql_literal(p.run), p.rank, p.event_id) AS evidence_sql,
    'memory_peaks' AS next_analysis
FROM _peaks AS p
JOIN devices AS d ON d.run = p.run AND d.rank = p.rank AND d.device = p.device
WHERE greatest(p.reserved, p.allocated) > 0.9 * d.total_memory_bytes
