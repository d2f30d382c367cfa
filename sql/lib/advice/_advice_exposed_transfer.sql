-- Advice: exposed communication, without known waits for other ranks, takes at least 5 % of step time.
--
-- The threshold is that of TraceLens. Waits are measured by matching collectives with the traces of other ranks. If
-- most of a rank's exposed communication is unmatched, its wait is the time that collectives take beyond what their
-- messages need (`_advice_message_sizes`). Confidence is high if most of it is matched and no rank is missing, because a wait
-- for a missing rank looks like a transfer. If most is unmatched, it is medium if at least half of the unmatched time is in
-- collectives with a known message size. Otherwise, it is low.
CREATE OR REPLACE MACRO lib._advice_exposed_transfer(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_device.
    device_time,
    -- Name of a relation with the columns of lib._advice_message_sizes.
    sizes
) AS TABLE
-- Columns: those of _advice_by_rule.
WITH
    _jobs AS (
        SELECT r.run, count(DISTINCT r.rank) > 1 AS has_peers, count(DISTINCT r.rank) >= coalesce(max(r.world_size), 0) AS is_whole
        FROM ranks AS r
        GROUP BY r.run
    ),
    _split AS (
        SELECT
            f.*, s.recorded_ns, s.transfer_ns, s.unmatched_ns, s.unmatched_ns <= s.transfer_ns AS is_matched, 2 * m.sized_ns >= m.total_ns AS is_sized, j.is_whole, j.is_whole AND j.has_peers AS is_complete,
            s.transfer_ns + CASE
                WHEN s.unmatched_ns <= s.transfer_ns THEN 0
                ELSE s.unmatched_ns - (s.unmatched_ns * (coalesce(m.excess_ns, 0) / nullif(m.total_ns, 0)))::BIGINT
            END AS known_ns
        FROM query_table(device_time) AS f
        JOIN query_table(spans) AS s ON s.run = f.run AND s.rank = f.rank
        LEFT JOIN query_table(sizes) AS m ON m.run = f.run AND m.rank = f.rank
        JOIN _jobs AS j ON j.run = f.run
        WHERE f.rule = 'exposed_transfer'
    ),
    _exposed AS (
        SELECT s.*, coalesce(s.known_ns, s.transfer_ns + s.unmatched_ns) AS exposed_ns FROM _split AS s
    )
SELECT
    f.run, f.rank, f.rule, f.subject, f.event_count, f.affected_ns, f.exposed_ns AS saved_ns,
    CASE WHEN f.is_matched AND f.is_whole THEN 'high' WHEN f.is_sized AND NOT f.is_matched THEN 'medium' ELSE 'low' END AS confidence, f.event_id,
    CASE
        WHEN f.is_matched AND f.is_whole THEN lib.message('advice.exposed_transfer', {'exposed_pct': 100 * (f.exposed_ns / nullif(f.recorded_ns, 0))})
        WHEN f.is_complete THEN lib.message('advice.exposed_transfer_unmatched', {'exposed_pct': 100 * (f.exposed_ns / nullif(f.recorded_ns, 0))})
        WHEN f.is_sized AND NOT f.is_matched THEN lib.message('advice.exposed_transfer_by_size', {'exposed_pct': 100 * (f.exposed_ns / nullif(f.recorded_ns, 0))})
        ELSE lib.message('advice.exposed_transfer_or_wait', {'exposed_pct': 100 * (f.exposed_ns / nullif(f.recorded_ns, 0))})
    END AS message,
    f.evidence_sql,
    CASE WHEN f.is_complete AND NOT f.is_matched THEN 'collectives' ELSE 'process_group_costs' END AS next_analysis
FROM _exposed AS f
WHERE f.exposed_ns >= 0.05 * f.recorded_ns
