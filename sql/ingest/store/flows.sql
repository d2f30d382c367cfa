-- Flow arrows between events.
SELECT
    frame_of($frames, x.event_id).run AS run,
    frame_of($frames, x.event_id).rank AS rank,
    own_id(x.event_id) AS event_id,
    x.ts - frame_of($frames, x.event_id).first_ts AS ts,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    x.name,
    x.cat AS category,
    x.phase,
    x.flow_id,
    x.binding_point
FROM staged_flows AS x
