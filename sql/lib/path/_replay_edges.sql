-- Dependencies of each node of a replay: on the stream, collectives, computation and, if the host waits, the device.
--
-- Traces record launches and the order of streams, but not which stream waits for which other stream. These waits are
-- inferred. A collective, or a copy on a stream without computation, waits for the computation launched before it if two
-- conditions hold for all of the same kind and stream: they almost never start before that computation ends, and at least
-- one in five starts just as it ends. The computation launched after it waits for it by the same rule, with one in twenty
-- instead of one in five. Otherwise, a collective is awaited at the position in the step at which computation most
-- often started just as the collective ended. An operation that starts as soon as it is launched has waited for
-- nothing. An operation that starts later than its known dependencies allow was released by the last operation that
-- ended on its rank.
--
-- A host call waits for the operation that ended last before the call returned. If a rank has no waiting calls, a
-- launch after a pause of at least three times the usual length waited for the device, provided that everything
-- launched before it had ended.
--
-- How soon is "just as" is measured in usual lengths of a launch (`launch_ns`, about 5 us on GPUs): the delay after an
-- event is at most two of them on a stream, and six between streams.
CREATE OR REPLACE MACRO lib._replay_edges(
    -- Name of a relation with the columns of lib.replay_nodes.
    replay_nodes
) AS TABLE
-- Columns:
--   run        VARCHAR  Run name.
--   node_id    BIGINT   Node that waits.
--   from_id    BIGINT   Operation whose end the node waits for.
--   edge_type  VARCHAR  stream, await, release, or host (the call or launch waits).
WITH
    _operations AS MATERIALIZED (
        SELECT
            o.run, o.rank, o.span, o.node_id, o.class, o.step, o.stage, o.lane_id, o.name_id, o.start_ns, o.end_ns, o.return_ns, o.tolerance_ns, o.launch_ns,
            o.key_ns, o.last_key_ns, o.is_send, o.queued_ns,
            bool_or(o.class = 'computation') OVER (PARTITION BY o.run, o.rank, o.span, o.lane_id) AS computes
        FROM query_table(replay_nodes) AS o
        WHERE o.kind = 'operation'
    ),
    _streams AS MATERIALIZED (
        SELECT o.run, o.node_id, lag(o.node_id) OVER line AS from_id, lag(o.end_ns) OVER line AS ready_ns,
            lag(o.last_key_ns) OVER line <= o.key_ns AND lag(o.end_ns) OVER line <= o.key_ns + o.tolerance_ns AS is_cause
        FROM _operations AS o
        WINDOW line AS (PARTITION BY o.run, o.rank, o.span, o.lane_id ORDER BY o.node_id)
    ),
    -- Calls that wait, with the operation that ended last before the call returned, if that operation was launched
    -- before the call.
    _returned AS (
        SELECT
            e.run, e.node_id, e.call_ns, last_value(e.ended_id IGNORE NULLS) OVER line AS from_id,
            last_value(CASE WHEN e.ended_id IS NOT NULL THEN e.queued_ns END IGNORE NULLS) OVER line AS queued_ns
        FROM (
            SELECT o.run, o.rank, o.span, o.end_ns AS at_ns, o.node_id, o.node_id AS ended_id, o.queued_ns, NULL::BIGINT AS call_ns FROM _operations AS o
            UNION ALL
            SELECT h.run, h.rank, h.span, h.end_ns + h.launch_ns, h.node_id, NULL, NULL, h.call_ns
            FROM query_table(replay_nodes) AS h
            WHERE h.kind = 'wait'
        ) AS e
        WHERE EXISTS (FROM query_table(replay_nodes) AS h WHERE h.kind = 'wait' AND h.run = e.run AND h.rank = e.rank AND h.span = e.span)
        WINDOW line AS (PARTITION BY e.run, e.rank, e.span ORDER BY e.at_ns, e.call_ns NULLS FIRST, e.node_id ROWS UNBOUNDED PRECEDING)
    ),
    _drained AS MATERIALIZED (
        SELECT
            o.run, o.rank, o.span, o.node_id, o.return_ns, o.launch_ns, lag(o.return_ns) OVER line AS earlier_ns,
            max({'end_ns': o.end_ns, 'id': o.node_id}) OVER (line ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS last
        FROM _operations AS o
        WHERE
            o.return_ns IS NOT NULL
            AND NOT EXISTS (FROM query_table(replay_nodes) AS h WHERE h.kind = 'wait' AND h.run = o.run AND h.rank = o.rank AND h.span = o.span)
        WINDOW line AS (PARTITION BY o.run, o.rank, o.span ORDER BY o.return_ns, o.node_id)
    ),
    _pauses AS (
        SELECT d.run, d.rank, d.span, greatest(10 * any_value(d.launch_ns), 3 * median(d.return_ns - d.earlier_ns)) AS least_ns FROM _drained AS d GROUP BY d.run, d.rank, d.span
    ),
    _host AS (
        SELECT r.run, r.node_id, r.from_id FROM _returned AS r WHERE r.call_ns IS NOT NULL AND r.queued_ns <= r.call_ns
        UNION ALL
        SELECT d.run, d.node_id, d.last.id
        FROM _drained AS d
        JOIN _pauses AS p ON p.run = d.run AND p.rank = d.rank AND p.span = d.span
        WHERE d.last.end_ns <= d.return_ns AND d.return_ns - d.earlier_ns >= p.least_ns AND d.last.end_ns > d.earlier_ns
    ),
    -- Computation launched before and after each collective and each copy on a stream without computation.
    _queue AS MATERIALIZED (
        SELECT
            o.run, o.node_id, last_value(o.other_id IGNORE NULLS) OVER before AS earlier_id,
            first_value(o.other_id IGNORE NULLS) OVER after AS later_id
        FROM (
            SELECT q.*, CASE WHEN q.class <> 'communication' AND q.computes THEN q.node_id END AS other_id FROM _operations AS q
        ) AS o
        WINDOW
            before AS (PARTITION BY o.run, o.rank, o.span ORDER BY o.queued_ns, o.node_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
            after AS (PARTITION BY o.run, o.rank, o.span ORDER BY o.queued_ns, o.node_id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
    ),
    _transfers AS MATERIALIZED (
        SELECT
            c.*, e.node_id AS earlier_id, e.lane_id <> c.lane_id AS earlier_is_other, l.node_id AS later_id, l.lane_id <> c.lane_id AS later_is_other,
            c.start_ns >= e.end_ns - c.tolerance_ns AS is_after_earlier,
            c.start_ns - e.end_ns BETWEEN -c.tolerance_ns AND greatest(6 * c.launch_ns, 2 * c.tolerance_ns) AND coalesce(c.return_ns <= e.end_ns, true)
                AS is_just_after_earlier,
            l.start_ns >= c.end_ns - c.tolerance_ns AS is_before_later,
            l.start_ns - c.end_ns BETWEEN -c.tolerance_ns AND greatest(2 * c.launch_ns, 2 * c.tolerance_ns) AND coalesce(l.return_ns <= c.end_ns, true)
                AS is_just_before_later,
            row_number() OVER (PARTITION BY c.run, c.rank, c.span, c.step, c.lane_id ORDER BY c.node_id) AS place
        FROM _operations AS c
        JOIN _queue AS q ON q.run = c.run AND q.node_id = c.node_id
        LEFT JOIN _operations AS e ON e.run = q.run AND e.node_id = q.earlier_id
        LEFT JOIN _operations AS l ON l.run = q.run AND l.node_id = q.later_id
        WHERE c.class = 'communication' OR NOT c.computes
    ),
    _rules AS (
        SELECT
            c.run, c.stage, c.lane_id, c.name_id,
            avg(c.is_after_earlier::INTEGER) FILTER (c.earlier_is_other) >= 0.98
                AND avg(c.is_just_after_earlier::INTEGER) FILTER (c.earlier_is_other) >= 0.2 AS waits_for_earlier,
            avg(c.is_before_later::INTEGER) FILTER (c.later_is_other) >= 0.98
                AND avg(c.is_just_before_later::INTEGER) FILTER (c.later_is_other) >= 0.05 AS holds_later
        FROM _transfers AS c
        GROUP BY c.run, c.stage, c.lane_id, c.name_id
    ),
    _ruled AS MATERIALIZED (
        SELECT c.*, coalesce(r.waits_for_earlier, false) AS waits_for_earlier, coalesce(r.holds_later, false) AS holds_later,
            c.class = 'communication' AND NOT coalesce(r.holds_later, false) AND NOT c.is_send AS is_awaited_elsewhere
        FROM _transfers AS c
        JOIN _rules AS r
            ON r.run = c.run AND r.stage = c.stage AND r.lane_id = c.lane_id AND r.name_id = c.name_id
    ),
    -- Computation with its position: the number of collectives launched before it in the step, and its number among
    -- the computation since the last collective.
    _segments AS MATERIALIZED (
        SELECT
            o.run, o.rank, o.span, o.step, o.node_id, o.class, o.start_ns, o.end_ns, o.return_ns, o.queued_ns,
            count_if(o.class = 'communication')
                OVER (PARTITION BY o.run, o.rank, o.span, o.step ORDER BY o.queued_ns, o.node_id ROWS UNBOUNDED PRECEDING) AS segment
        FROM _operations AS o
        WHERE o.class <> 'memory' AND EXISTS (FROM _ruled AS r WHERE r.run = o.run AND r.is_awaited_elsewhere)
    ),
    _computations AS MATERIALIZED (
        SELECT
            s.run, s.rank, s.span, s.step, s.node_id, s.start_ns, s.return_ns,
            (s.segment << 32) + row_number() OVER (PARTITION BY s.run, s.rank, s.span, s.step, s.segment ORDER BY s.queued_ns, s.node_id) AS place,
            s.start_ns - max(s.end_ns) OVER (PARTITION BY s.run, s.rank, s.span ORDER BY s.node_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
                AS idle_ns
        FROM _segments AS s
        WHERE s.class = 'computation'
    ),
    _starts AS (
        SELECT c.run, c.rank, c.span, c.start_ns AS at_ns, 1 AS level, c.node_id, NULL::BIGINT AS collective_node FROM _computations AS c
        UNION ALL
        SELECT r.run, r.rank, r.span, r.end_ns - r.tolerance_ns, 0, NULL, r.node_id
        FROM _ruled AS r
        WHERE r.is_awaited_elsewhere
    ),
    _next AS (
        SELECT s.run, s.collective_node, first_value(s.node_id IGNORE NULLS) OVER line AS node_id
        FROM _starts AS s
        WINDOW line AS (PARTITION BY s.run, s.rank, s.span ORDER BY s.at_ns, s.level, s.node_id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
    ),
    _seen AS MATERIALIZED (
        SELECT r.run, r.rank, r.span, r.stage, r.lane_id, r.place, c.place AS awaiting_place
        FROM _next AS x
        JOIN _ruled AS r ON r.run = x.run AND r.node_id = x.collective_node
        JOIN _computations AS c ON c.run = x.run AND c.node_id = x.node_id
        WHERE
            c.start_ns - r.end_ns <= greatest(2 * r.launch_ns, 2 * r.tolerance_ns) AND coalesce(c.idle_ns > 3 * r.launch_ns // 5, true) AND r.step IS NOT DISTINCT FROM c.step
            AND coalesce(c.return_ns <= r.end_ns, true)
    ),
    _seen_on_rank AS (
        SELECT s.run, s.rank, s.span, s.lane_id, s.place, mode(s.awaiting_place ORDER BY s.awaiting_place) AS awaiting_place, count(*) AS seen_count
        FROM _seen AS s
        GROUP BY s.run, s.rank, s.span, s.lane_id, s.place
    ),
    _step_counts AS (
        SELECT r.run, r.rank, r.span, count(DISTINCT r.step) AS n FROM _ruled AS r GROUP BY r.run, r.rank, r.span
    ),
    _seen_in_stage AS (
        SELECT s.run, s.stage, s.lane_id, s.place, mode(s.awaiting_place ORDER BY s.awaiting_place) AS awaiting_place
        FROM _seen AS s
        GROUP BY s.run, s.stage, s.lane_id, s.place
    ),
    _awaits AS MATERIALIZED (
        SELECT r.run, r.node_id, r.earlier_id AS from_id
        FROM _ruled AS r
        WHERE r.waits_for_earlier AND r.is_after_earlier AND r.earlier_is_other
        UNION ALL
        SELECT r.run, r.later_id, r.node_id
        FROM _ruled AS r
        WHERE r.holds_later AND r.is_before_later AND r.later_is_other AND NOT r.is_send
        UNION ALL
        SELECT r.run, c.node_id, r.node_id
        FROM _ruled AS r
        JOIN _step_counts AS k ON k.run = r.run AND k.rank = r.rank AND k.span = r.span
        LEFT JOIN _seen_on_rank AS a
            ON a.run = r.run AND a.rank = r.rank AND a.span = r.span AND a.lane_id = r.lane_id AND a.place = r.place AND 2 * a.seen_count > k.n
        LEFT JOIN _seen_in_stage AS b ON b.run = r.run AND b.stage = r.stage AND b.lane_id = r.lane_id AND b.place = r.place
        JOIN _computations AS c
            ON c.run = r.run AND c.rank = r.rank AND c.span = r.span AND c.step IS NOT DISTINCT FROM r.step
                AND c.place = coalesce(a.awaiting_place, b.awaiting_place)
        WHERE r.is_awaited_elsewhere AND c.start_ns >= r.end_ns - r.tolerance_ns
    ),
    -- Time at which each operation could have started.
    _ready AS (
        SELECT a.run, a.node_id, max(f.end_ns) AS ready_ns
        FROM _awaits AS a
        JOIN _operations AS f ON f.run = a.run AND f.node_id = a.from_id
        GROUP BY a.run, a.node_id
    ),
    _late AS (
        SELECT o.run, o.rank, o.span, o.node_id, o.start_ns + o.tolerance_ns AS at_ns, o.start_ns, o.return_ns, o.tolerance_ns, o.launch_ns
        FROM _operations AS o
        JOIN _streams AS s ON s.run = o.run AND s.node_id = o.node_id
        LEFT JOIN _ready AS r ON r.run = o.run AND r.node_id = o.node_id
        WHERE o.start_ns - greatest(r.ready_ns, s.ready_ns, o.return_ns, 0) > greatest(4 * o.launch_ns, 2 * o.tolerance_ns)
    ),
    _moments AS (
        SELECT o.run, o.rank, o.span, o.end_ns AS at_ns, 0 AS level, o.node_id, o.node_id AS ended_id, o.end_ns FROM _operations AS o WHERE NOT o.is_send
        UNION ALL
        SELECT l.run, l.rank, l.span, l.at_ns, 1, l.node_id, NULL, NULL FROM _late AS l
    ),
    _latest AS (
        SELECT
            m.run, m.node_id, m.level, last_value(m.ended_id IGNORE NULLS) OVER line AS ended_id, last_value(m.end_ns IGNORE NULLS) OVER line AS end_ns
        FROM _moments AS m
        WINDOW line AS (PARTITION BY m.run, m.rank, m.span ORDER BY m.at_ns, m.level, m.node_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ),
    _released AS (
        SELECT l.run, l.node_id, x.ended_id AS from_id
        FROM _latest AS x
        JOIN _late AS l ON l.run = x.run AND l.node_id = x.node_id
        WHERE x.level = 1 AND x.ended_id <> l.node_id AND (l.return_ns IS NULL OR l.start_ns - x.end_ns <= greatest(6 * l.launch_ns, 2 * l.tolerance_ns))
    ),
    _inferred AS (
        SELECT h.run, h.node_id, h.from_id, 'host' AS edge_type FROM _host AS h
        UNION ALL
        SELECT DISTINCT a.run, a.node_id, a.from_id, 'await' FROM _awaits AS a
        UNION ALL
        SELECT r.run, r.node_id, r.from_id, 'release' FROM _released AS r
    ),
    -- Materialized, so that no plan joins all nodes of a run with each other first.
    _waiting AS MATERIALIZED (
        SELECT i.run, i.node_id, i.from_id, i.edge_type, n.return_ns, n.key_ns, n.tolerance_ns
        FROM _inferred AS i
        JOIN query_table(replay_nodes) AS n ON n.run = i.run AND n.node_id = i.node_id
    )
SELECT w.run, w.node_id, w.from_id, w.edge_type
FROM _waiting AS w
JOIN query_table(replay_nodes) AS f ON f.run = w.run AND f.node_id = w.from_id
-- An operation that ends later cannot have released the node.
WHERE
    CASE
        WHEN w.edge_type = 'host' THEN f.last_key_ns < w.return_ns AND f.end_ns <= w.return_ns + w.tolerance_ns
        ELSE f.node_id < w.node_id AND f.last_key_ns <= w.key_ns AND f.end_ns <= w.key_ns + w.tolerance_ns
    END
UNION ALL
SELECT s.run, s.node_id, s.from_id, 'stream'
FROM _streams AS s
WHERE s.is_cause
