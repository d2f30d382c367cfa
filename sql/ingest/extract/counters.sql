-- Counter samples of one batch, one row per series of an event.
WITH
    samples AS (
        SELECT e.event_id, e.ts, e.pid, e.tid, e.name, e.args, map_entries(TRY_CAST(e.args AS MAP(VARCHAR, VARCHAR))) AS series
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
    v.entry.key AS series,
    -- A whole number beyond 2^53 has no DOUBLE of its own: it stays in the arguments.
    CASE WHEN abs(TRY_CAST(v.entry.value AS DOUBLE)) <= 9_007_199_254_740_992 THEN TRY_CAST(v.entry.value AS DOUBLE) END AS value,
    s.args
FROM samples AS s
LEFT JOIN series AS v ON v.event_id = s.event_id
