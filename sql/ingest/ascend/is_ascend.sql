-- Whether the trace was written by the Ascend profiler: one row if so.
SELECT 1
FROM staged_other_events AS o
WHERE o.phase = 'M' AND o.name = 'process_name' AND o.args ->> '$.name' = 'Ascend Hardware'
LIMIT 1
