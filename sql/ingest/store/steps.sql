-- Profiler steps on the host.
SELECT
    j.run,
    j.rank,
    own_id(x.event_id) AS event_id,
    x.step,
    x.ts - j.first_ts AS ts,
    x.end_ts - x.ts AS dur,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    x.name,
    x.is_last
FROM profiler_steps AS x
JOIN rank_frame AS j ON j.part = part_of(x.event_id)
ORDER BY x.ts, x.event_id
