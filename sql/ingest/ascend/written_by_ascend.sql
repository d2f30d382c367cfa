-- The traces of the batch that the Ascend profiler wrote.
SELECT DISTINCT p.chunk >> 32
FROM parsed_events AS p
WHERE p.target = 'other_events' AND p.ph = 'M' AND p.name = 'process_name' AND p.args ->> '$.name' = 'Ascend Hardware'
