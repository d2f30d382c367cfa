-- Idle time of each rank's devices in steps, split into parts: before the next operation is launched, after its
-- launch, and with an unknown launch. Unrecorded work of the device is a separate part.
--
-- A gap is a time during which no stream of the rank is active. It is cut at step boundaries, and at the end of the
-- call that launches the next operation. Time before the cut is attributed to the host, time after it to the device.
-- After the last operation of a trace, all time is attributed to the host. Intervals of `unrecorded_time` are removed
-- first. The parts of a step sum to the three idle and the three unrecorded times of `step_parts`. A rank without
-- device activity has no parts.
CREATE OR REPLACE MACRO lib.idle_parts(
    runs,
    ranks,
    -- Profiler steps to include; NULL means every step.
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run         VARCHAR      Run name.
--   rank        INTEGER      Rank of the process.
--   part        BIGINT [1]   Number of the part, independent of the thread count; parts do not overlap.
--   waits_for   VARCHAR      What the idle part waits for: host, device, unknown, or unrecorded (the device is not idle).
--   ts          BIGINT [ns]  Start of the part.
--   dur         BIGINT [ns]  Length of the part, above 0.
--   next_id     BIGINT       event_id of the operation that ends the gap; NULL after the last operation.
--   pid         BIGINT       Process id of the thread that launches that operation; after the last operation, of the thread that launched it.
--   tid         BIGINT       Thread id of that thread; NULL if unknown.
--   drain_id    BIGINT       event_id of the blocking call of that thread during which the gap began; NULL if there is none.
--   in_steps    BIGINT[]     Steps that contain the part (steps may overlap); [NULL] in a trace without steps.
WITH
    _windows AS MATERIALIZED (
        SELECT p.run, p.rank, p.span, p.step, p.ts, p.ts + p.step_ns AS end_ts
        FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS p
    ),
    _bounds AS (
        SELECT w.run, w.rank, w.span, w.ts, 0 AS change FROM _windows AS w
        UNION ALL
        SELECT w.run, w.rank, w.span, w.end_ts, 0 FROM _windows AS w
        UNION ALL
        SELECT u.run, u.rank, u.span, u.ts, 1
        FROM unrecorded_time AS u
        WHERE u.kind <> 'undecided' AND lib.is_requested(runs, u.run) AND lib.is_requested(ranks, u.rank)
        UNION ALL
        SELECT u.run, u.rank, u.span, u.ts + u.dur, -1
        FROM unrecorded_time AS u
        WHERE u.kind <> 'undecided' AND lib.is_requested(runs, u.run) AND lib.is_requested(ranks, u.rank)
    ),
    _cuts AS MATERIALIZED (
        SELECT b.run, b.rank, b.span, b.ts, sum(b.change)::INTEGER AS change
        FROM _bounds AS b
        GROUP BY b.run, b.rank, b.span, b.ts
    ),
    -- Everything between two cuts is in the same steps.
    _places AS (
        SELECT c.run, c.rank, c.span, c.ts, list(w.step ORDER BY w.ts, w.step) AS steps
        FROM _cuts AS c
        JOIN _windows AS w ON w.run = c.run AND w.rank = c.rank AND w.span = c.span AND w.ts <= c.ts AND w.end_ts > c.ts
        GROUP BY c.run, c.rank, c.span, c.ts
    ),
    _ops AS MATERIALIZED (
        SELECT
            g.run, g.rank, g.span, g.ts, g.ts + g.dur AS end_ts, g.event_id, g.launch_id,
            g.launch_ts + g.launch_dur AS launch_end
        FROM gpu_ops AS g
        WHERE
            g.class IN ('computation', 'communication', 'memory')
            AND NOT g.is_suspect AND g.dur > 0 AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    ),
    -- If several operations start simultaneously, take the first one in the sweep.
    _behind AS (
        SELECT
            c.run, c.rank, c.span, c.ts,
            arg_min({'id': o.event_id, 'launch_id': o.launch_id, 'launch_end': o.launch_end}, (o.end_ts, o.event_id)) AS next_op
        FROM _cuts AS c
        ASOF JOIN _ops AS n ON n.run = c.run AND n.rank = c.rank AND n.span = c.span AND c.ts <= n.ts
        JOIN _ops AS o ON o.run = n.run AND o.rank = n.rank AND o.span = n.span AND o.ts = n.ts
        GROUP BY c.run, c.rank, c.span, c.ts
    ),
    _latest AS (
        SELECT o.run, o.rank, o.span, arg_max(o.launch_id, (o.ts, o.event_id)) AS launch_id
        FROM _ops AS o
        GROUP BY o.run, o.rank, o.span
    ),
    -- A cut gets the launch of the next operation; a cut after the last operation gets the thread of the last launch.
    _marks AS (
        SELECT
            o.run, o.rank, o.span, o.ts, o.end_ts, o.end_ts AS own_end, o.event_id, o.event_id AS next_id, o.launch_id,
            o.launch_end, 0 AS change
        FROM _ops AS o
        UNION ALL
        SELECT
            c.run, c.rank, c.span, c.ts, c.ts, NULL, -1, n.next_op.id,
            CASE WHEN n.ts IS NULL THEN l.launch_id ELSE n.next_op.launch_id END,
            CASE WHEN n.ts IS NOT NULL THEN n.next_op.launch_end WHEN l.launch_id IS NOT NULL THEN c.ts END,
            c.change
        FROM _cuts AS c
        JOIN _latest AS l ON l.run = c.run AND l.rank = c.rank AND l.span = c.span
        LEFT JOIN _behind AS n ON n.run = c.run AND n.rank = c.rank AND n.span = c.span AND n.ts = c.ts
    ),
    _swept AS (
        SELECT
            m.*, max(m.end_ts) OVER earlier AS ended, max(m.own_end) OVER earlier AS gap_ts,
            sum(m.change) OVER earlier > 0 AS is_unrecorded
        FROM _marks AS m
        WINDOW earlier AS (
            PARTITION BY m.run, m.rank, m.span
            ORDER BY m.ts, m.end_ts, m.event_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
    ),
    _gaps AS (
        SELECT
            s.run, s.rank, s.span, s.ended AS ts, s.ts AS end_ts, s.gap_ts, s.next_id, s.launch_id, s.launch_end,
            s.is_unrecorded, p.steps
        FROM _swept AS s
        ASOF JOIN _cuts AS c ON c.run = s.run AND c.rank = s.rank AND c.span = s.span AND s.ended >= c.ts
        JOIN _places AS p ON p.run = c.run AND p.rank = c.rank AND p.span = c.span AND p.ts = c.ts
        WHERE s.ts > s.ended
    ),
    _pieces AS (
        SELECT
            g.run, g.rank, g.span, 'host' AS waits_for, g.ts, least(g.launch_end, g.end_ts) AS end_ts,
            g.gap_ts, g.next_id, g.launch_id, g.steps
        FROM _gaps AS g
        WHERE g.launch_end > g.ts AND NOT g.is_unrecorded
        UNION ALL
        SELECT g.run, g.rank, g.span, 'unrecorded', g.ts, g.end_ts, g.gap_ts, g.next_id, g.launch_id, g.steps
        FROM _gaps AS g
        WHERE g.is_unrecorded
        UNION ALL
        SELECT
            g.run, g.rank, g.span, CASE WHEN g.launch_end IS NULL THEN 'unknown' ELSE 'device' END,
            greatest(g.ts, g.launch_end), g.end_ts, g.gap_ts, g.next_id, g.launch_id, g.steps
        FROM _gaps AS g
        WHERE NOT g.is_unrecorded AND (g.launch_end IS NULL OR g.launch_end < g.end_ts)
    ),
    _threaded AS (
        SELECT p.*, r.pid, r.tid
        FROM _pieces AS p
        LEFT JOIN runtime_calls AS r ON r.run = p.run AND r.rank = p.rank AND r.event_id = p.launch_id
    ),
    _drains AS (
        SELECT
            b.run, b.rank, lib.span_of(b.event_id) AS span, b.pid, b.tid, b.ts,
            arg_max({'id': b.event_id, 'end_ts': b.end_ts}, (b.end_ts, b.event_id)) AS call
        FROM lib.blocking_calls(runs, ranks) AS b
        GROUP BY b.run, b.rank, lib.span_of(b.event_id), b.pid, b.tid, b.ts
    )
SELECT
    t.run, t.rank, row_number() OVER (ORDER BY t.run, t.rank, t.ts) AS part, t.waits_for, t.ts, t.end_ts - t.ts AS dur,
    t.next_id, t.pid, t.tid,
    CASE WHEN d.call.end_ts > t.gap_ts THEN d.call.id END AS drain_id,
    t.steps AS in_steps
FROM _threaded AS t
ASOF LEFT JOIN _drains AS d
    ON d.run = t.run AND d.rank = t.rank AND d.span = t.span AND d.pid = t.pid AND d.tid = t.tid AND t.gap_ts >= d.ts
