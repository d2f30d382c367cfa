-- Calls that block their thread until the device is done; for a call with copies, only the time after the first copy begins.
--
-- A copy through host memory is blocking if its call ends after the copy. A call may have several such copies: the
-- launch of a graph, or a large copy that the driver divides. It has one row.
CREATE OR REPLACE MACRO lib.blocking_calls(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run       VARCHAR      Run name.
--   rank      INTEGER      Rank of the process.
--   pid       BIGINT       Process id of the thread.
--   tid       BIGINT       Thread id.
--   event_id  BIGINT       event_id of the call.
--   name      VARCHAR      Name of the call.
--   ts        BIGINT [ns]  Start of the wait: the start of the call, or of its first blocking copy.
--   end_ts    BIGINT [ns]  End of the call.
--   copy_ns   BIGINT [ns]  Time in blocking copies; NULL for a synchronization.
WITH
    _blocking_copies AS (
        SELECT {'run': g.run, 'rank': g.rank, 'launch_id': g.launch_id} AS lane, g.ts, g.dur
        FROM gpu_ops AS g
        JOIN runtime_calls AS r ON r.run = g.run AND r.rank = g.rank AND r.event_id = g.launch_id
        WHERE
            g.class = 'memory' AND regexp_matches(g.name, 'DtoH|Pageable|Device -> Host|DeviceToHost')
            AND NOT g.is_suspect AND r.ts + r.dur > g.ts + g.dur AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    ),
    -- Copies of a graph may overlap.
    _copying AS (
        SELECT m.lane, min(m.ts) AS ts, sum(m.dur)::BIGINT AS copy_ns
        FROM lib.merged_intervals('_blocking_copies') AS m
        GROUP BY m.lane
    )
SELECT r.run, r.rank, r.pid, r.tid, r.event_id, r.name, r.ts, r.ts + r.dur AS end_ts, NULL::BIGINT AS copy_ns
FROM runtime_calls AS r
WHERE contains(r.name, 'Synchronize') AND r.dur > 0 AND lib.is_requested(runs, r.run) AND lib.is_requested(ranks, r.rank)
UNION ALL
SELECT r.run, r.rank, r.pid, r.tid, r.event_id, r.name, c.ts, r.ts + r.dur, c.copy_ns
FROM _copying AS c
JOIN runtime_calls AS r ON r.run = c.lane.run AND r.rank = c.lane.rank AND r.event_id = c.lane.launch_id
