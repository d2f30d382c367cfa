-- Events that no other table takes.
CREATE OR REPLACE TEMP VIEW stored_other_events AS
SELECT
    j.run,
    j.rank,
    x.event_id,
    x.ts - k.first_ts AS ts,
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
CROSS JOIN job AS j
CROSS JOIN rank_clock AS k
ORDER BY x.event_id
