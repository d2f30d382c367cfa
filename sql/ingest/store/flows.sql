-- Arrows between events.
CREATE OR REPLACE TEMP VIEW stored_flows AS
SELECT
    j.run,
    j.rank,
    x.event_id,
    x.ts - k.first_ts AS ts,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    x.name,
    x.cat AS category,
    x.phase,
    x.flow_id,
    x.binding_point
FROM staged_flows AS x
CROSS JOIN job AS j
CROSS JOIN rank_clock AS k
ORDER BY x.event_id
