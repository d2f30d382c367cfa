-- Counter samples, one row per series of an event.
CREATE OR REPLACE TEMP VIEW stored_counters AS
SELECT
    j.run,
    j.rank,
    x.event_id,
    x.ts - k.first_ts AS ts,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    x.name,
    x.series,
    x.value
FROM staged_counters AS x
CROSS JOIN job AS j
CROSS JOIN rank_clock AS k
ORDER BY x.event_id
