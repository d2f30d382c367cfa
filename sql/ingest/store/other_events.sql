-- Events that no other table takes.
SELECT
    j.run,
    j.rank,
    x.event_id,
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
CROSS JOIN rank_frame AS j
ORDER BY x.event_id
