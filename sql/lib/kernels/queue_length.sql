-- Launch queue length of each device stream: one point per change.
--
-- A launch adds its operations to the queue at the start of the call; an operation leaves the queue when it starts on
-- the device. Changes in the same nanosecond form one point, or none if they cancel out, so the order of equal times
-- does not matter. If an operation appears to start before its launch because of clock error, it counts as never
-- queued, so the queue length is never negative. Operations without a launch in the trace are excluded.
CREATE OR REPLACE MACRO lib.queue_length(
    runs,
    ranks,
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns: those of queue_length_series_v1.
WITH
    _ops AS (
        SELECT g.run, g.rank, g.span, g.device, g.stream, g.event_id, g.ts, g.launch_id, least(g.launch_ts, g.ts) AS queued_ts
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        WHERE g.launch_id IS NOT NULL
    ),
    _moves AS (
        SELECT o.run, o.rank, o.span, o.device, o.stream, o.queued_ts AS move_ts, o.launch_id AS move_id, 1 AS change
        FROM _ops AS o
        UNION ALL
        SELECT o.run, o.rank, o.span, o.device, o.stream, o.ts, o.event_id, -1
        FROM _ops AS o
    ),
    _changes AS (
        SELECT
            m.run, m.rank, m.span, m.device, m.stream, m.move_ts,
            sum(m.change) AS change,
            CASE
                WHEN sum(m.change) > 0 THEN max(m.move_id) FILTER (m.change > 0)
                ELSE max(m.move_id) FILTER (m.change < 0)
            END AS event_id
        FROM _moves AS m
        GROUP BY m.run, m.rank, m.span, m.device, m.stream, m.move_ts
        HAVING sum(m.change) <> 0
    )
SELECT
    c.run,
    c.rank,
    c.device,
    c.stream,
    c.move_ts AS ts,
    lead(c.move_ts) OVER _in_time - c.move_ts AS dur,
    (sum(c.change) OVER (_in_time ROWS UNBOUNDED PRECEDING))::BIGINT AS queue_length,
    c.event_id
FROM _changes AS c
WINDOW _in_time AS (PARTITION BY c.run, c.rank, c.span, c.device, c.stream ORDER BY c.move_ts)
