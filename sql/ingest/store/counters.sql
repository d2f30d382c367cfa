-- Counter samples, one row per series of an event.
SELECT
    j.run,
    j.rank,
    x.event_id,
    x.ts - j.first_ts AS ts,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    x.name,
    x.series,
    x.value
FROM staged_counters AS x
CROSS JOIN rank_frame AS j
ORDER BY x.event_id, x.series
