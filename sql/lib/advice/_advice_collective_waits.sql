-- Advice: waiting for other ranks in collectives takes at least 5 % of step time, without a straggler, slow stage or
-- slow link, or it is unknown which rank is the straggler.
--
-- Waits are measured by matching collectives with the traces of other ranks. If a rank has no match, its wait is the
-- time that collectives take beyond what their messages need (`_advice_message_sizes`); for example, 128 bytes do not
-- need 200 us.
CREATE OR REPLACE MACRO lib._advice_collective_waits(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib._advice_message_sizes.
    sizes,
    -- Name of a relation with the columns of lib.device_ranks.
    with_device,
    -- Name of a relation with the columns of lib._advice_by_rule: findings about runs that a rank, stage or link
    -- delays.
    straggling,
    -- Name of a relation with the columns of lib.late_ranks.
    verdicts
) AS TABLE
-- Columns: those of _advice_by_rule.
WITH
    _waits AS (
        SELECT
            s.run, s.rank, s.recorded_ns, m.collective, m.excess_count, m.excess_ns, m.median_bytes, m.event_id,
            s.wait_ns,
            coalesce((s.unmatched_ns * (m.excess_ns / nullif(m.total_ns, 0)))::BIGINT, 0) AS sized_ns
        FROM query_table(spans) AS s
        LEFT JOIN query_table(sizes) AS m ON m.run = s.run AND m.rank = s.rank
        WHERE s.run NOT IN (SELECT t.run FROM query_table(straggling) AS t)
    ),
    _suspected AS (
        SELECT v.run, count(*) AS rank_count, string_agg(v.rank::VARCHAR, ', ' ORDER BY v.rank) AS ranks
        FROM query_table(verdicts) AS v
        WHERE v.verdict = 'suspected'
        GROUP BY v.run
    ),
    _unknown AS (
        SELECT v.run, count_if(v.verdict = 'unknown') AS unknown_count, count(*) AS rank_count
        FROM query_table(verdicts) AS v
        GROUP BY v.run
        HAVING 2 * count_if(v.verdict = 'unknown') > count(*)
    )
SELECT
    w.run, w.rank, 'collective_waits' AS rule, w.collective AS subject, w.excess_count AS event_count, w.excess_ns AS affected_ns, w.sized_ns AS saved_ns, 'medium' AS confidence,
    w.event_id,
    lib.message('advice.collective_waits_by_size', {'share_pct': 100 * (w.sized_ns / w.recorded_ns), 'collective_count': w.excess_count, 'median_bytes': w.median_bytes}) AS message,
    format('FROM collectives_v1(runs := [{}], ranks := [{}])', lib.sql_literal(w.run), w.rank) AS evidence_sql,
    'collectives' AS next_analysis
FROM _waits AS w
WHERE w.sized_ns >= 0.05 * w.recorded_ns AND w.sized_ns >= w.wait_ns
UNION ALL
SELECT
    w.run, w.rank, 'collective_waits', NULL, NULL, w.wait_ns, w.wait_ns,
    CASE WHEN u.run IS NULL THEN 'high' ELSE 'medium' END, NULL,
    CASE
        WHEN p.run IS NULL AND u.run IS NOT NULL
            THEN lib.message('advice.collective_waits_unknown', {'share_pct': 100 * (w.wait_ns / w.recorded_ns), 'unknown_count': u.unknown_count, 'rank_count': u.rank_count})
        WHEN p.run IS NULL AND d.run IS NULL THEN lib.message('advice.collective_waits_on_host', {'share_pct': 100 * (w.wait_ns / w.recorded_ns)})
        WHEN p.run IS NULL THEN lib.message('advice.collective_waits', {'share_pct': 100 * (w.wait_ns / w.recorded_ns)})
        ELSE lib.message('advice.collective_waits_suspected', {'share_pct': 100 * (w.wait_ns / w.recorded_ns), 'rank_count': p.rank_count, 'ranks': p.ranks})
    END,
    format('FROM collective_waits_v1(runs := [{}], ranks := [{}])', lib.sql_literal(w.run), w.rank),
    'collective_waits'
FROM _waits AS w
LEFT JOIN _suspected AS p ON p.run = w.run
LEFT JOIN _unknown AS u ON u.run = w.run
LEFT JOIN query_table(with_device) AS d ON d.run = w.run AND d.rank = w.rank
WHERE w.wait_ns >= 0.05 * w.recorded_ns AND w.wait_ns > w.sized_ns
