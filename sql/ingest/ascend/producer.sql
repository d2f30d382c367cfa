-- Which traces the Ascend profiler wrote.

-- name: staged_by_ascend
-- Whether the trace was written by the Ascend profiler: one row if so.
SELECT 1
FROM staged_other_events AS o
WHERE o.phase = 'M' AND o.name = 'process_name' AND o.args ->> '$.name' = 'Ascend Hardware'
LIMIT 1;

-- name: parsed_by_ascend
-- The traces of the batch that the Ascend profiler wrote.
SELECT DISTINCT p.chunk >> 32
FROM parsed_events AS p
WHERE p.target = 'other_events' AND p.ph = 'M' AND p.name = 'process_name' AND p.args ->> '$.name' = 'Ascend Hardware';
