-- Events of a rank, for traces that are written from its file and for data frames.

-- name: one
SELECT e.name, e.ts, coalesce(e.dur, 0) AS dur, e.pid, e.tid
FROM events AS e
WHERE e.run = $run AND e.rank = $rank AND e.event_id = $event_id;

-- name: window_of_steps
-- Time from the start of the first step to the end of all work that the steps launch, which may run after their end.
SELECT min(e.ts) AS start, max(e.ts + coalesce(e.dur, 0)) AS until
FROM events AS e
WHERE e.run = $run AND list_contains($ranks, e.rank) AND list_contains($steps, e.step);

-- name: within
-- Events that overlap a window and have one of the categories; NULL stands for all.
SELECT e.event_id
FROM events AS e
WHERE
    e.run = $run AND e.rank = $rank
    AND ($from_ns IS NULL OR (e.ts < $until_ns AND e.ts + coalesce(e.dur, 0) >= $from_ns))
    AND ($categories IS NULL OR list_contains($categories, e.category));

-- name: by_track
-- Events with a duration on each track, outer events before those that they contain.
SELECT e.pid, e.tid, e.ts, e.ts + e.dur AS until, e.event_id, e.table_name = 'gpu_ops' AS is_on_device
FROM events AS e
WHERE e.run = $run AND e.rank = $rank AND e.dur > 0 AND e.pid IS NOT NULL AND e.tid IS NOT NULL
ORDER BY e.pid, e.tid, e.ts, e.dur DESC, e.event_id;

-- name: names
-- Names of the complete events.
SELECT DISTINCT e.name
FROM events AS e
WHERE e.run = $run AND e.rank = $rank AND e.name IS NOT NULL AND e.table_name <> 'other_events'
ORDER BY e.name;

-- name: framed
-- Events of HTA's data frames; $ids is NULL for all.
SELECT e.*
FROM trace_events_v1(
    runs := $runs, ranks := $ranks, include_last_profiler_step := $include_last_profiler_step
) AS e
WHERE $ids IS NULL OR e.event_id IN (SELECT unnest($ids::BIGINT[]))
ORDER BY e.event_id;

-- name: symbols
-- Names and categories of HTA's data frames.
WITH
    texts AS (
        SELECT e.name, e.category
        FROM trace_events_v1(runs := $runs, include_last_profiler_step := true) AS e
        GROUP BY ALL
    )
SELECT DISTINCT unnest([t.name, t.category]) AS symbol
FROM texts AS t
ORDER BY symbol;
