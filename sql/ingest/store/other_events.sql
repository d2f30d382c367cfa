-- Events that belong to no other table.
SELECT
    frame_of($frames, x.event_id).run AS run,
    frame_of($frames, x.event_id).rank AS rank,
    own_id(x.event_id) AS event_id,
    x.ts - frame_of($frames, x.event_id).first_ts AS ts,
    x.dur,
    x.pid,
    x.tid,
    x.name,
    x.cat AS category,
    x.phase,
    x.flow_id,
    x.scope,
    x.args
FROM staged_other_events AS x
