-- Events that no other table takes.
SELECT
    j.run,
    j.rank,
    own_id(x.event_id) AS event_id,
    x.ts - j.first_ts AS ts,
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
JOIN rank_frame AS j ON j.part = part_of(x.event_id)
ORDER BY x.event_id
