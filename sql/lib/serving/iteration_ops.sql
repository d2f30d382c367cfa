-- Device operations of serving iterations, launched by the thread of an iteration between the iteration's start and
-- end.
--
-- All operations of a graph replay are included.
CREATE OR REPLACE MACRO lib.iteration_ops(
    -- Name of a relation with the columns of lib.serving_iterations.
    iterations,
    runs,
    ranks
) AS TABLE
-- Columns:
--   run           VARCHAR      Run name.
--   rank          INTEGER      Rank of the process.
--   iteration_id  BIGINT       event_id of the iteration in serving_iterations.
--   event_id      BIGINT       event_id of the operation.
--   ts            BIGINT [ns]  Start, relative to the run's first event.
--   dur           BIGINT [ns]  Duration.
--   replay_id     BIGINT       event_id of the call that replays the operation's graph; NULL outside replays.
WITH
    _ops AS (
        SELECT g.run, g.rank, g.span, g.event_id, g.ts, g.dur, g.launch_id, g.launch_pid, g.launch_tid, g.launch_ts
        FROM gpu_ops AS g
        WHERE g.class <> 'sync' AND NOT g.is_suspect AND g.launch_ts IS NOT NULL AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    )
SELECT
    o.run AS run, o.rank AS rank, i.event_id AS iteration_id, o.event_id AS event_id, o.ts AS ts, o.dur AS dur,
    CASE WHEN contains(c.name, 'GraphLaunch') THEN c.event_id END AS replay_id
FROM _ops AS o
ASOF JOIN query_table(iterations) AS i
    ON i.run = o.run AND i.rank = o.rank AND i.span = o.span AND i.pid = o.launch_pid AND i.tid = o.launch_tid AND o.launch_ts >= i.ts
LEFT JOIN runtime_calls AS c ON c.run = o.run AND c.rank = o.rank AND c.event_id = o.launch_id
WHERE o.launch_ts < i.end_ts
