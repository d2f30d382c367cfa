-- Detect traces written by the Ascend profiler.

-- name: staged_by_ascend
-- One row if the trace was written by the Ascend profiler, otherwise none.
SELECT 1
FROM staged_other_events AS o
WHERE o.phase = 'M' AND o.name = 'process_name' AND o.args ->> '$.name' = 'Ascend Hardware'
LIMIT 1;

-- name: parsed_by_ascend
-- Trace numbers of the batch whose traces were written by the Ascend profiler.
SELECT DISTINCT p.chunk >> 32
FROM parsed_events AS p
WHERE p.target = 'other_events' AND p.ph = 'M' AND p.name = 'process_name' AND p.args ->> '$.name' = 'Ascend Hardware';
