-- Iterations of serving engines from the period of their graph replays.
--
-- An engine reads the sampled tokens back at the end of each iteration. The copies to the host on the thread that replays
-- graphs therefore cut its launches into segments. If the number of replays in a segment, and whether it has copies to the
-- device, repeat with a period over all segments, at least twice, a period is an iteration. It starts at its only segment
-- with copies to the device: an engine that copies something to the host in each layer, and a capture shorter than an
-- iteration, have none. The first segment may be cut; it is, if it starts with another operation than the others. A rank
-- that replays a single graph has one iteration. In all other cases, the iterations are unknown.
CREATE OR REPLACE MACRO lib._periodic_iterations(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run       VARCHAR      Run name.
--   rank      INTEGER      Rank of the process.
--   span      INTEGER      Recording of the rank.
--   event_id  BIGINT       event_id of the first call of the iteration that replays a graph; NULL if the rank's iterations are unknown.
--   pid       BIGINT       Process id of the host thread.
--   tid       BIGINT       Thread id.
--   name      VARCHAR      Name of the call.
--   ts        BIGINT [ns]  Start of the first launch, relative to the run's first event.
--   end_ts    BIGINT [ns]  End of the last launch.
WITH
    _replays AS MATERIALIZED (
        SELECT c.run, c.rank, c.span, c.event_id, c.pid, c.tid, c.name, c.ts, c.ts + c.dur AS end_ts
        FROM runtime_calls AS c
        WHERE contains(c.name, 'GraphLaunch') AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
    ),
    _threads AS MATERIALIZED (
        SELECT r.run, r.rank, r.span, r.pid, r.tid, count(*) AS replay_count
        FROM _replays AS r
        GROUP BY r.run, r.rank, r.span, r.pid, r.tid
        QUALIFY row_number() OVER (PARTITION BY r.run, r.rank, r.span ORDER BY count(*) DESC, min(r.ts)) = 1
    ),
    -- Launches in order; kinds: R replay, D copy to the host, H copy to the device, O other.
    _launches AS MATERIALIZED (
        SELECT r.run, r.rank, r.span, 'R' AS kind, r.event_id, r.name, r.name AS op_name, r.ts, r.end_ts
        FROM _replays AS r
        SEMI JOIN _threads AS t ON t.run = r.run AND t.rank = r.rank AND t.span = r.span AND t.pid = r.pid AND t.tid = r.tid
        UNION ALL
        SELECT
            g.run, g.rank, g.span,
            CASE
                WHEN bool_or(g.class = 'memory' AND regexp_matches(g.name, 'DtoH|Device -> Host|DeviceToHost')) THEN 'D'
                WHEN bool_or(g.class = 'memory' AND regexp_matches(g.name, 'HtoD|Host -> Device|HostToDevice')) THEN 'H'
                ELSE 'O'
            END,
            g.launch_id, NULL, arg_min(g.name, g.ts), any_value(g.launch_ts), any_value(g.launch_ts + g.launch_dur)
        FROM gpu_ops AS g
        JOIN _threads AS t ON t.run = g.run AND t.rank = g.rank AND t.span = g.span AND t.pid = g.launch_pid AND t.tid = g.launch_tid
        WHERE g.class <> 'sync' AND NOT g.is_suspect AND g.launch_id IS NOT NULL
        GROUP BY g.run, g.rank, g.span, g.launch_id
        HAVING (g.run, g.rank, g.launch_id) NOT IN (SELECT (r.run, r.rank, r.event_id) FROM _replays AS r)
    ),
    _cut AS (
        SELECT l.*, l.kind = 'D' AND lead(l.kind) OVER in_order IS DISTINCT FROM 'D' AS is_end
        FROM _launches AS l
        WINDOW in_order AS (PARTITION BY l.run, l.rank, l.span ORDER BY l.ts, l.event_id)
    ),
    _placed AS (
        SELECT
            c.*,
            coalesce(count_if(c.is_end) OVER (PARTITION BY c.run, c.rank, c.span ORDER BY c.ts, c.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) + 1 AS segment
        FROM _cut AS c
    ),
    _segments AS MATERIALIZED (
        SELECT
            p.run, p.rank, p.span, p.segment, count_if(p.kind = 'R') AS replay_count, bool_or(p.kind = 'H') AS has_input, bool_or(p.is_end) AS is_whole,
            min(p.ts) AS ts, max(p.end_ts) AS end_ts,
            arg_min(p.op_name, (p.ts, p.event_id)) AS first_name,
            arg_min(p.event_id, p.ts) FILTER (p.kind = 'R') AS event_id, arg_min(p.name, p.ts) FILTER (p.kind = 'R') AS name
        FROM _placed AS p
        GROUP BY p.run, p.rank, p.span, p.segment
    ),
    _compared AS (
        SELECT
            a.run, a.rank, a.span, b.segment - a.segment AS period,
            -- The first segment may be cut unless it starts like the others; the last one may be cut.
            bool_and(CASE
                WHEN (a.segment = 1 AND a.first_name <> b.first_name) OR NOT b.is_whole THEN least(a.replay_count, b.replay_count) = CASE WHEN a.segment = 1 THEN a.replay_count ELSE b.replay_count END
                ELSE a.replay_count = b.replay_count AND a.has_input = b.has_input
            END) AS is_equal,
            count_if(b.is_whole AND a.replay_count = b.replay_count AND a.has_input = b.has_input) + period AS whole_count
        FROM _segments AS a
        JOIN _segments AS b ON b.run = a.run AND b.rank = a.rank AND b.span = a.span AND b.segment BETWEEN a.segment + 1 AND a.segment + 64
        GROUP BY a.run, a.rank, a.span, b.segment - a.segment
    ),
    _periods AS (
        SELECT c.run, c.rank, c.span, min(c.period) AS period
        FROM _compared AS c
        WHERE c.is_equal AND c.whole_count >= 2 * c.period
        GROUP BY c.run, c.rank, c.span
    ),
    -- The segment of a period with which an iteration starts.
    _phases AS (
        SELECT
            s.run, s.rank, s.span, p.period,
            CASE
                WHEN count_if(s.has_input) = 1 THEN min(s.segment % p.period) FILTER (s.has_input)
            END AS phase
        FROM _segments AS s
        JOIN _periods AS p ON p.run = s.run AND p.rank = s.rank AND p.span = s.span
        WHERE s.segment BETWEEN 2 AND p.period + 1
        GROUP BY s.run, s.rank, s.span, p.period
        HAVING max(s.replay_count) > 0
    ),
    _numbered AS (
        SELECT s.*, p.period, (s.segment - p.phase + p.period) // p.period AS iteration
        FROM _segments AS s
        JOIN _phases AS p ON p.run = s.run AND p.rank = s.rank AND p.span = s.span
        WHERE p.phase IS NOT NULL
    ),
    _joined AS (
        SELECT
            n.run, n.rank, n.span, n.iteration, sum(n.replay_count) AS replay_count, count(*) AS segment_count, bool_and(n.is_whole) AS is_whole,
            any_value(n.period) AS period, arg_min(n.first_name, n.segment) AS first_name, min(n.ts) AS ts, max(n.end_ts) AS end_ts,
            min(n.event_id) AS event_id, arg_min(n.name, n.event_id) AS name
        FROM _numbered AS n
        GROUP BY n.run, n.rank, n.span, n.iteration
    ),
    _iterations AS (
        SELECT j.*
        FROM _joined AS j
        QUALIFY
            j.is_whole AND j.segment_count = j.period AND j.replay_count = max(j.replay_count) OVER (PARTITION BY j.run, j.rank, j.span)
            AND (j.iteration > min(j.iteration) OVER (PARTITION BY j.run, j.rank, j.span) OR j.first_name = lead(j.first_name) OVER (PARTITION BY j.run, j.rank, j.span ORDER BY j.iteration))
        UNION ALL BY NAME
        SELECT s.run, s.rank, s.span, s.ts, s.end_ts, s.event_id, s.name
        FROM _segments AS s
        JOIN _threads AS t ON t.run = s.run AND t.rank = s.rank AND t.span = s.span
        WHERE t.replay_count = 1 AND s.replay_count = 1
    )
SELECT t.run, t.rank, t.span, i.event_id, t.pid, t.tid, i.name, i.ts, i.end_ts
FROM _threads AS t
LEFT JOIN _iterations AS i ON i.run = t.run AND i.rank = t.rank AND i.span = t.span
