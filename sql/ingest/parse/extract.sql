-- Events of one batch that keep all their arguments, by staged table. The other tables are extracted by statements
-- generated from arguments.csv.

-- name: flows
-- Flow events of one batch: arrows between events (host ▸ device, forward ▸ backward).
SELECT e.event_id, e.ts, e.pid, e.tid, e.name, e.cat, e.ph AS phase, e.id AS flow_id, e.bp AS binding_point, e.args
FROM batch_events AS e
WHERE e.target = 'flows';

-- name: counters
-- Counter samples of one batch, one row per series of an event.
WITH
    samples AS (
        SELECT e.event_id, e.ts, e.pid, e.tid, e.name, e.cat, e.args, map_entries(TRY_CAST(e.args AS MAP(VARCHAR, VARCHAR))) AS series
        FROM batch_events AS e
        WHERE e.target = 'counters'
    ),
    series AS (
        SELECT s.event_id, unnest(s.series) AS entry
        FROM samples AS s
    )
SELECT
    s.event_id,
    s.ts,
    s.pid,
    s.tid,
    s.name,
    s.cat,
    v.entry.key AS series,
    -- An integer above 2^53 may not be exact as DOUBLE, so it stays in the arguments.
    CASE WHEN abs(TRY_CAST(v.entry.value AS DOUBLE)) <= 9_007_199_254_740_992 THEN TRY_CAST(v.entry.value AS DOUBLE) END AS value,
    s.args
FROM samples AS s
LEFT JOIN series AS v ON v.event_id = s.event_id;

-- name: other_events
-- Events of one batch that belong to no other table, with all their fields.
SELECT e.event_id, e.ts, e.dur, e.pid, e.tid, e.name, e.cat, e.ph AS phase, e.id AS flow_id, e.scope, e.args
FROM batch_events AS e
WHERE e.target = 'other_events';
