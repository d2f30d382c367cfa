-- Profiler steps of the host.
SELECT
    j.run,
    j.rank,
    x.event_id,
    x.step,
    x.ts - j.first_ts AS ts,
    x.end_ts - x.ts AS dur,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    x.name,
    x.is_last
FROM profiler_steps AS x
CROSS JOIN rank_frame AS j
ORDER BY x.ts, x.event_id
