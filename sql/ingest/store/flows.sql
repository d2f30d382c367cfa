-- Arrows between events.
SELECT
    j.run,
    j.rank,
    own_id(x.event_id) AS event_id,
    x.ts - j.first_ts AS ts,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    x.name,
    x.cat AS category,
    x.phase,
    x.flow_id,
    x.binding_point
FROM staged_flows AS x
JOIN rank_frame AS j ON j.part = part_of(x.event_id)
ORDER BY x.event_id
