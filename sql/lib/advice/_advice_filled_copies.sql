-- Advice: filling tensors on the host and copying them to the device costs at least 1 % of step time.
--
-- The pattern is torch's ExtraCUDACopyPattern, which has no threshold. The cost is the device idle time during this
-- work, plus the duration of the copies if nothing else runs on the device.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_filled_copies(
    -- Name of a relation with the columns of lib._advice_host.
    host
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _found AS (
        SELECT h.*, least(h.affected_ns, h.exposed_ns + least(h.device_ns, h.memory_ns)) AS ceiling_ns
        FROM query_table(host) AS h
        WHERE h.kind = 'filled copy'
    )
SELECT
    f.run, f.rank, 'filled_copies' AS rule, f.subject, f.event_count, f.affected_ns, f.ceiling_ns, 'medium' AS confidence, f.event_id,
    lib.message('advice.filled_copies', {'copy_count': f.event_count, 'share_pct': f.affected_pct}) AS message,
    f.evidence_sql, 'ops_by_name' AS next_analysis
FROM _found AS f
WHERE f.ceiling_ns >= 0.01 * f.recorded_ns
