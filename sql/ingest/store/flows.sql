-- Arrows between events.
SELECT
    j.run,
    j.rank,
    x.event_id,
    x.ts - j.first_ts AS ts,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    x.name,
    x.cat AS category,
    x.phase,
    x.flow_id,
    x.binding_point
FROM staged_flows AS x
CROSS JOIN rank_frame AS j
ORDER BY x.event_id
