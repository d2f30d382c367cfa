-- Calls that block their thread until the device is done; for a copy, only the time after the copy begins.
--
-- A copy through host memory is blocking if its call ends after the copy.
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
--   ts        BIGINT [ns]  Start of the wait: the start of the call, or of the copy.
--   end_ts    BIGINT [ns]  End of the call.
--   copy_id   BIGINT       event_id of the copy; NULL for a synchronization.
SELECT r.run, r.rank, r.pid, r.tid, r.event_id, r.name, r.ts, r.ts + r.dur AS end_ts, NULL::BIGINT AS copy_id
FROM runtime_calls AS r
WHERE contains(r.name, 'Synchronize') AND r.dur > 0 AND lib.is_requested(runs, r.run) AND lib.is_requested(ranks, r.rank)
UNION ALL
SELECT r.run, r.rank, r.pid, r.tid, r.event_id, r.name, g.ts, r.ts + r.dur, g.event_id
FROM gpu_ops AS g
JOIN runtime_calls AS r ON r.run = g.run AND r.rank = g.rank AND r.event_id = g.launch_id
WHERE
    g.class = 'memory' AND regexp_matches(g.name, 'DtoH|Pageable|Device -> Host|DeviceToHost')
    AND NOT g.is_suspect AND r.ts + r.dur > g.ts + g.dur AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
