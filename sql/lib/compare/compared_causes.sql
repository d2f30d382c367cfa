-- Causes of the longer steps of one side, by rank: idle time by host activity, and additional device work.
--
-- Waiting for another rank is an effect, not a cause, and is excluded; so is work that takes no longer but is less
-- overlapped. A cause belongs to the ranks on which it grew at least half as much as on the rank with the largest
-- growth. It counts if it grew in the same direction as the step time, by at least 1 % of the step time and a fifth
-- of the difference in step time. If each side has a single rank, the two ranks are compared regardless of their
-- numbers.
CREATE OR REPLACE MACRO lib.compared_causes(
    -- Name of a relation with the columns of lib.step_contents: the control.
    control_contents,
    -- Name of a relation with the columns of lib.step_contents: the test.
    test_contents,
    -- Name of a relation with run, rank, cause, name, call and idle_ns, as in idle_causes: idle time of the control.
    control_idle_rows,
    -- Name of a relation with run, rank, cause, name, call and idle_ns, as in idle_causes: idle time of the test.
    test_idle_rows,
    -- Name of a relation with rank, is_straggler and cause, as in stragglers: ranks of the control.
    control_late_rows,
    -- Name of a relation with rank, is_straggler and cause, as in stragglers: ranks of the test.
    test_late_rows
) AS TABLE
-- Columns:
--   position      BIGINT [1]   Position by growth; 1 is the largest.
--   on_ranks      INTEGER[]    Ranks on which the cause grew; NULL if it grew on all ranks, or if there is a single rank.
--   part          VARCHAR      Part of the step: idle, compute, transfer, memory or host.
--   cause         VARCHAR      Cause of idle time as in idle_causes; otherwise NULL.
--   name          VARCHAR      Host activity or operator; NULL if no host event was open.
--   control_ns    BIGINT [ns]  Mean time per step of these ranks in the control.
--   test_ns       BIGINT [ns]  Mean time per step of these ranks in the test.
--   diff_ns       BIGINT [ns]  Test minus control.
--   is_straggler  BOOLEAN      Whether one of these ranks is a straggler on the slower side and not on the other.
WITH
    _contents AS (
        SELECT 'control' AS side, c.* FROM query_table(control_contents) AS c
        UNION ALL
        SELECT 'test', t.* FROM query_table(test_contents) AS t
    ),
    _numbers AS (
        SELECT count(DISTINCT c.rank) FILTER (c.side = 'control') = 1 AND count(DISTINCT c.rank) FILTER (c.side = 'test') = 1 AS is_pair
        FROM _contents AS c
    ),
    _lanes AS (
        SELECT c.side, c.rank, CASE WHEN n.is_pair THEN -1 ELSE c.rank END AS pair_rank, count(DISTINCT coalesce(c.step, -1)) AS step_count, sum(c.self_ns) AS total_ns
        FROM _contents AS c
        CROSS JOIN _numbers AS n
        GROUP BY c.side, c.rank, n.is_pair
    ),
    _both AS (
        SELECT l.pair_rank FROM _lanes AS l GROUP BY l.pair_rank HAVING count(DISTINCT l.side) = 2
    ),
    _rank_count AS (
        SELECT count(*) AS rank_count FROM _both AS b
    ),
    _steps AS (
        SELECT
            sum(l.total_ns) FILTER (l.side = 'control') / sum(l.step_count) FILTER (l.side = 'control') AS control_ns,
            sum(l.total_ns) FILTER (l.side = 'test') / sum(l.step_count) FILTER (l.side = 'test') AS test_ns
        FROM _lanes AS l
    ),
    -- Computation waits for the copies of a straggler whose cause they are, also while a transfer hides them.
    _late AS MATERIALIZED (
        SELECT
            l.rank, bool_or(l.is_straggler AND l.side = 'control') AS in_control, bool_or(l.is_straggler AND l.side = 'test') AS in_test,
            bool_or(l.is_straggler AND l.cause = 'copies') AS is_copying
        FROM (
            SELECT 'control' AS side, c.rank, coalesce(c.is_straggler, false) AS is_straggler, c.cause FROM query_table(control_late_rows) AS c
            UNION ALL
            SELECT 'test', t.rank, coalesce(t.is_straggler, false), t.cause FROM query_table(test_late_rows) AS t
        ) AS l
        GROUP BY l.rank
    ),
    _costs AS (
        SELECT
            c.side, c.rank, c.part, NULL AS cause, coalesce(c.operator, c.kernel) AS name,
            CASE WHEN c.part = 'memory' AND k.is_copying THEN c.dur_ns ELSE c.self_ns END AS ns, c.dur_ns AS whole_ns
        FROM _contents AS c
        LEFT JOIN _late AS k ON k.rank = c.rank
        WHERE c.part IN ('compute', 'transfer', 'memory', 'host')
        UNION ALL
        SELECT 'control', i.rank, 'idle', i.cause, coalesce(i.name, i.call), i.idle_ns, i.idle_ns FROM query_table(control_idle_rows) AS i
        UNION ALL
        SELECT 'test', i.rank, 'idle', i.cause, coalesce(i.name, i.call), i.idle_ns, i.idle_ns FROM query_table(test_idle_rows) AS i
    ),
    _items AS (
        SELECT
            l.pair_rank, c.part, c.cause, c.name,
            coalesce(round(sum(c.ns) FILTER (c.side = 'control') / max(l.step_count) FILTER (c.side = 'control')), 0)::BIGINT AS control_ns,
            coalesce(round(sum(c.ns) FILTER (c.side = 'test') / max(l.step_count) FILTER (c.side = 'test')), 0)::BIGINT AS test_ns,
            coalesce(round(sum(c.whole_ns) FILTER (c.side = 'control') / max(l.step_count) FILTER (c.side = 'control')), 0)::BIGINT AS control_whole_ns,
            coalesce(round(sum(c.whole_ns) FILTER (c.side = 'test') / max(l.step_count) FILTER (c.side = 'test')), 0)::BIGINT AS test_whole_ns
        FROM _costs AS c
        JOIN _lanes AS l ON l.side = c.side AND l.rank = c.rank
        JOIN _both AS b ON b.pair_rank = l.pair_rank
        GROUP BY l.pair_rank, c.part, c.cause, c.name
    ),
    -- Work that takes no longer but is less overlapped is also an effect.
    _signed AS (
        SELECT
            i.*,
            least(
                sign(s.test_ns - s.control_ns) * (i.test_ns - i.control_ns),
                sign(s.test_ns - s.control_ns) * (i.test_whole_ns - i.control_whole_ns)
            ) AS grown_ns
        FROM _items AS i
        CROSS JOIN _steps AS s
    ),
    -- Renamed work did not grow. The whole part of the rank must therefore grow by at least half as much, and device
    -- work must exist on both sides (the comparison analysis pairs renamed work) or on some of the ranks only.
    _credible AS (
        SELECT s.*
        FROM _signed AS s
        CROSS JOIN _steps AS t
        CROSS JOIN _rank_count AS n
        QUALIFY
            (
                s.part = 'idle' OR s.control_ns > 0 AND s.test_ns > 0
                OR count(*) OVER (PARTITION BY s.part, s.cause, s.name) < n.rank_count
            )
            AND s.grown_ns <= 2 * sum(sign(t.test_ns - t.control_ns) * (s.test_ns - s.control_ns)) OVER (PARTITION BY s.pair_rank, s.part)
    ),
    _grown AS (
        SELECT s.*
        FROM _credible AS s
        QUALIFY s.grown_ns > 0 AND s.grown_ns >= 0.5 * max(s.grown_ns) OVER (PARTITION BY s.part, s.cause, s.name)
    ),
    _causes AS (
        SELECT
            g.part, g.cause, g.name, list(g.pair_rank::INTEGER ORDER BY g.pair_rank) AS ranks, count(*) AS grown_count,
            round(avg(g.control_ns))::BIGINT AS control_ns, round(avg(g.test_ns))::BIGINT AS test_ns, round(avg(g.grown_ns))::BIGINT AS grown_ns,
            coalesce(bool_or(CASE WHEN s.test_ns > s.control_ns THEN l.in_test AND NOT l.in_control ELSE l.in_control AND NOT l.in_test END), false) AS is_straggler
        FROM _grown AS g
        CROSS JOIN _steps AS s
        LEFT JOIN _late AS l ON l.rank = g.pair_rank
        GROUP BY g.part, g.cause, g.name
    )
SELECT
    row_number() OVER (ORDER BY c.grown_ns DESC, c.part, c.cause, c.name) AS position,
    CASE WHEN c.grown_count < n.rank_count THEN c.ranks END AS on_ranks,
    c.part AS part, c.cause AS cause, c.name AS name, c.control_ns AS control_ns, c.test_ns AS test_ns, c.test_ns - c.control_ns AS diff_ns, c.is_straggler AS is_straggler
FROM _causes AS c
CROSS JOIN _rank_count AS n
CROSS JOIN _steps AS s
WHERE c.grown_ns >= greatest(0.01 * s.control_ns, 0.2 * abs(s.test_ns - s.control_ns))
