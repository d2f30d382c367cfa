-- Idle time with selected causes on each rank, next to the rank's step time: the input of an advice rule.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.summed_idle(
    -- Name of a relation with the columns of lib.caused_idle: the selected rows.
    chosen,
    -- Name of a relation with the columns of lib.step_sums.
    spans
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   subject       VARCHAR         Host activity with the most idle time, synchronizations first; NULL if nothing was open.
--   event_count   BIGINT [count]  Number of gaps, regardless of the number of causes; a gap across a step boundary counts as two.
--   affected_ns   BIGINT [ns]     Total idle time.
--   affected_pct  DOUBLE [%]      affected_ns as a share of recorded step time.
--   event_id      BIGINT          Event to inspect in the longest gap; NULL if unknown.
--   evidence_sql  VARCHAR         Query that returns all causes on the rank.
--   recorded_ns   BIGINT [ns]     Total recorded step time.
WITH
    _summed AS (
        SELECT
            i.run, i.rank,
            arg_max(coalesce(i.name, i.call), (i.cause = 'synchronization', i.idle_ns, i.name)) AS subject,
            len(list_distinct(flatten(list(i.gap_parts)))) AS event_count,
            sum(i.idle_ns)::BIGINT AS affected_ns,
            arg_max(i.event_id, (i.longest_ns, -i.longest_ts, -i.event_id)) AS event_id
        FROM query_table(chosen) AS i
        GROUP BY i.run, i.rank
    )
SELECT
    u.run, u.rank, u.subject, u.event_count, u.affected_ns, 100 * (u.affected_ns / nullif(s.recorded_ns, 0)) AS affected_pct, u.event_id,
    format('FROM idle_causes_v1(runs := [{}], ranks := [{}])', lib.sql_literal(u.run), u.rank) AS evidence_sql,
    s.recorded_ns
FROM _summed AS u
JOIN query_table(spans) AS s ON s.run = u.run AND s.rank = u.rank
