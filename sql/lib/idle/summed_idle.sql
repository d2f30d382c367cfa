-- Idle time of some causes on each rank, beside its steps: what a rule of advice speaks of.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.summed_idle(
    -- Name of a relation with the columns of lib.caused_idle: the rows that count.
    chosen,
    -- Name of a relation with the columns of lib.step_sums.
    spans
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   subject       VARCHAR         What the host was in longest, in synchronizations first; NULL if nothing was open.
--   event_count   BIGINT [count]  Gaps, each once, however many causes it has; one over the bound of two steps is two.
--   affected_ns   BIGINT [ns]     Idle time.
--   affected_pct  DOUBLE [%]      The same as a share of the steps.
--   event_id      BIGINT          What to look at in the longest gap; NULL if unknown.
--   evidence_sql  VARCHAR         Query of all causes on the rank.
--   step_ns       BIGINT [ns]     The steps.
WITH
    _summed AS (
        SELECT
            i.run, i.rank,
            arg_max(coalesce(i.name, i.call), (i.cause = 'synchronization', i.idle_ns, i.name)) AS subject,
            len(list_distinct(flatten(list(i.gap_parts)))) AS event_count,
            sum(i.idle_ns)::BIGINT AS affected_ns,
            arg_max(i.event_id, (i.longest_ns, -i.event_id)) AS event_id
        FROM query_table(chosen) AS i
        GROUP BY i.run, i.rank
    )
SELECT
    u.run, u.rank, u.subject, u.event_count, u.affected_ns, 100 * (u.affected_ns / nullif(s.step_ns, 0)) AS affected_pct, u.event_id,
    format('FROM idle_causes_v1(runs := [{}], ranks := [{}])', lib.sql_literal(u.run), u.rank) AS evidence_sql,
    s.step_ns
FROM _summed AS u
JOIN query_table(spans) AS s ON s.run = u.run AND s.rank = u.rank
