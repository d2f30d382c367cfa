-- Idle time that the rules of advice_rules concern, by rule.
--
-- The kind of idle time is its cause, except:
--
-- - synchronization: also idle time that is the effect of a synchronization.
-- - launching, host work: the host was in an operator, module, function or annotation, or nothing was open. It is
--   launching unless the gaps of an operator or function are longer than launching explains (lib.exceeds_launching).
CREATE OR REPLACE MACRO lib._advice_idle(
    -- Name of a relation with the columns of lib.step_sums.
    spans,
    -- Name of a relation with the columns of lib.caused_idle.
    idle,
    -- Name of a relation with the columns of lib.launch_lengths.
    launch_lengths
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   rule          VARCHAR         Name of the rule.
--   kind          VARCHAR         Kind of idle time.
--   subject       VARCHAR         Host activity with the most idle time, synchronizations first; NULL if nothing was open.
--   event_count   BIGINT [count]  Number of gaps, regardless of the number of causes; a gap across a step boundary counts as two.
--   affected_ns   BIGINT [ns]     Total idle time.
--   saved_ns      BIGINT [ns]     The same: all of the idle time can be saved.
--   event_id      BIGINT          Event to inspect in the longest gap; NULL if unknown.
--   is_late       BOOLEAN         Whether the host causes idle time of at least 10 % of recorded step time on the rank.
--   evidence_sql  VARCHAR         Query that returns the idle time.
WITH
    _late AS (
        SELECT s.run, s.rank, sum(i.idle_ns) >= 0.1 * s.recorded_ns AS is_late
        FROM query_table(spans) AS s
        JOIN query_table(idle) AS i ON i.run = s.run AND i.rank = s.rank
        WHERE i.cause NOT IN ('device queue', 'unrecorded', 'unknown')
        GROUP BY s.run, s.rank, s.recorded_ns
    ),
    _kinds AS (
        SELECT i.cause AS kind, format('cause = {}', lib.sql_literal(i.cause)) AS condition, i.*
        FROM query_table(idle) AS i
        WHERE i.cause NOT IN ('synchronization', 'runtime call')
        UNION ALL
        SELECT 'runtime call', 'cause = ''runtime call''', i.* REPLACE (coalesce(i.call, i.name) AS name)
        FROM query_table(idle) AS i
        WHERE i.cause = 'runtime call'
        UNION ALL
        SELECT 'synchronization', 'cause = ''synchronization'' OR relation = ''effect''', i.*
        FROM query_table(idle) AS i
        WHERE i.cause = 'synchronization' OR i.relation = 'effect'
        UNION ALL
        SELECT
            CASE WHEN lib.exceeds_launching(i.idle_ns, i.gap_count, l.launch_ns) THEN 'host work' ELSE 'launching' END,
            'relation = ''cause''', i.*
        FROM query_table(idle) AS i
        JOIN query_table(launch_lengths) AS l ON l.run = i.run AND l.rank = i.rank
        WHERE i.relation = 'cause' AND i.cause IN ('host operator', 'module', 'python', 'annotation') OR i.cause = 'no event'
    ),
    _lined AS (
        SELECT k.*, replace(coalesce(k.name, ''), chr(10), ' ') AS line FROM _kinds AS k
    ),
    _lines AS (
        SELECT k.kind, string_agg(DISTINCT k.line, chr(10)) AS lines FROM _lined AS k GROUP BY k.kind
    ),
    _covered AS (
        SELECT r.rule, r.kind, unnest(lib.matching_lines(l.lines, r.pattern)) AS line
        FROM _lines AS l
        JOIN advice_rules AS r ON r.kind = l.kind
    )
SELECT
    k.run, k.rank, c.rule, k.kind,
    arg_max(coalesce(k.name, k.call), (k.cause = 'synchronization', k.idle_ns, k.name)) AS subject,
    len(list_distinct(flatten(list(k.gap_parts)))) AS event_count,
    sum(k.idle_ns)::BIGINT AS affected_ns,
    sum(k.idle_ns)::BIGINT AS saved_ns,
    arg_max(k.event_id, (k.longest_ns, -k.longest_ts, -k.event_id)) AS event_id,
    coalesce(any_value(h.is_late), false) AS is_late,
    format('FROM idle_causes_v1(runs := [{}], ranks := [{}]) WHERE {}', lib.sql_literal(k.run), k.rank, any_value(k.condition)) AS evidence_sql
FROM _lined AS k
JOIN _covered AS c ON c.kind = k.kind AND c.line = k.line
LEFT JOIN _late AS h ON h.run = k.run AND h.rank = k.rank
GROUP BY k.run, k.rank, c.rule, k.kind
