-- Profiler steps of the host.
CREATE OR REPLACE TEMP VIEW stored_steps AS
SELECT
    j.run,
    j.rank,
    x.event_id,
    x.step,
    x.ts - k.first_ts AS ts,
    x.end_ts - x.ts AS dur,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    x.name,
    x.is_last
FROM profiler_steps AS x
CROSS JOIN job AS j
CROSS JOIN rank_clock AS k
ORDER BY x.ts, x.event_id
